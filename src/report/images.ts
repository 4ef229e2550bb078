/** Document `ImageList` and the output of `crigc images`: all images, largest first, with users and keep reasons. */

import type { ImageRecord } from "../model/ledger.ts";
import type { ImagePlan } from "../model/plan.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import { type Image, largerFirst } from "../model/snapshot.ts";
import { type Instant, since } from "../model/time.ts";
import { counted, dayOf, humanBytes, humanDuration, ordinal } from "./bytes.ts";
import { document, imageJson, type JsonObject, jsonOf, recordJson, timeOf } from "./document.ts";
import { imageKeep, userName, userWords } from "./image-reasons.ts";
import { imageName } from "./names.ts";
import { column, type Columns, NAME, Printer, RIGHT } from "./printer.ts";
import { andMore, clean, type Screen } from "./terminal.ts";

export interface ImageListEntry {
  readonly image: Image;
  /** `null`: the list comes from the runtime alone. */
  readonly record: ImageRecord | null;
  /** `null`: no rule keeps it, or it was not judged. */
  readonly reason: ImageKeepReason | null;
  /** Place in the order of removal, from 1; `null`: not a candidate. */
  readonly place: number | null;
}

export interface ImageListReport {
  readonly observedAt: Instant;
  readonly entries: readonly ImageListEntry[];
}

/** Every image of a plan, by descending size, then descending ID. */
export const entriesOf = (
  plan: Pick<ImagePlan, "kept" | "candidates">,
): readonly ImageListEntry[] =>
  largestFirst([
    ...plan.kept.map(({ image, record, reason }) => ({ image, record, reason, place: null })),
    ...plan.candidates.map(({ image, record }, index) => ({
      image,
      record,
      reason: null,
      place: index + 1,
    })),
  ]);

/** Images as listed, not judged: what the agent serves from its cache. */
export const unjudged = (images: readonly Image[]): readonly ImageListEntry[] =>
  largestFirst(images.map((image) => ({ image, record: null, reason: null, place: null })));

const largestFirst = (entries: readonly ImageListEntry[]): readonly ImageListEntry[] =>
  entries.toSorted((one, other) => largerFirst(one.image, other.image));

const sizeOf = ({ entries }: ImageListReport): bigint =>
  entries.reduce((sum, { image }) => sum + image.sizeBytes, 0n);

export const imageListDocument = (report: ImageListReport): JsonObject =>
  document("ImageList", {
    observedAt: timeOf(report.observedAt),
    count: report.entries.length,
    sizeBytes: sizeOf(report),
    images: report.entries.map(({ image, record, reason, place }) => ({
      ...imageJson(image),
      ...(record === null ? {} : recordJson(record)),
      usedBy: reason?.kind === "in-use" ? reason.users.map((user) => jsonOf(user)) : [],
      keptBy: reason === null ? null : imageKeep.json(reason),
      place,
    })),
  });

/** On a narrow terminal IDs are left out, and the reasons name the users. */
const NARROW_MAX = 119;

export function imageListTable(report: ImageListReport, screen: Screen): string {
  const printer = new Printer(screen);
  printer.table(imageColumns(report.observedAt, screen), report.entries, { groupOf: keptTitle });
  printer.gap();
  const size = `${humanBytes(sizeOf(report))} as reported`;
  printer.line(`${counted(report.entries.length, "image")}, ${size}`);
  return printer.text();
}

export function imageColumns(now: Instant, screen: Screen): Columns<ImageListEntry> {
  const isWide = screen.wide === true;
  const name = column<ImageListEntry>("IMAGE", ({ image }) => imageName(image), NAME);
  const size = column<ImageListEntry>("SIZE", ({ image }) => humanBytes(image.sizeBytes), RIGHT);
  const seen = (entry: ImageListEntry): string => firstSeen(entry, now, screen);
  const used = (entry: ImageListEntry): string => lastUsed(entry, now, screen);
  const kept = (entry: ImageListEntry): string => keptBy(entry, screen);
  const user = (entry: ImageListEntry): string | null => usedBy(entry, screen);
  if (!isWide && screen.width !== null && screen.width <= NARROW_MAX)
    return [
      name,
      size,
      column("SEEN", seen, RIGHT),
      column("USED", used, RIGHT),
      column("KEPT BY", (it) => [kept(it), user(it)].filter((words) => words !== null).join(": "), {
        minimumWidth: 18,
      }),
    ];
  return [
    name,
    column("ID", ({ image }) => (isWide ? clean(image.id) : crictlId(image))),
    size,
    column("FIRST SEEN", seen),
    column("LAST USED", used),
    column("IN USE BY", (it) => user(it) ?? "-", { minimumWidth: 9 }),
    column("KEPT BY", kept, { minimumWidth: 9 }),
    ...(isWide ? [column("PULL", pullOf), column("NAMES", namesOf)] : []),
  ];
}

const pullOf = ({ record }: ImageListEntry): string => record?.pull ?? "unknown";

const namesOf = ({ image }: ImageListEntry): string =>
  [...image.repoTags, ...image.repoDigests].map(clean).join(",") || "-";

/** As crigc rm and crictl take it. */
const crictlId = ({ id }: Image): string =>
  clean(id)
    .replace(/^sha256:/, "")
    .slice(0, 12);

/** How long ago, in one unit, on a terminal; else the date. */
function timeShown(at: Instant, now: Instant, screen: Screen): string {
  if (screen.width === null) return dayOf(at);
  return /^-?[^a-z]*[a-z]+/.exec(humanDuration(since(now, at)))?.[0] ?? "-";
}

const firstSeen = ({ record }: ImageListEntry, now: Instant, screen: Screen): string =>
  record === null ? "-" : timeShown(record.firstSeenAt, now, screen);

function lastUsed({ reason, record }: ImageListEntry, now: Instant, screen: Screen): string {
  if (reason?.kind === "in-use") return "now";
  if (record === null) return "-";
  return record.lastUsedAt === null ? "never" : timeShown(record.lastUsedAt, now, screen);
}

function usedBy({ reason }: ImageListEntry, screen: Screen): string | null {
  if (reason?.kind !== "in-use") return null;
  const first = reason.users.slice(0, 1).map(screen.width === null ? userWords : userName);
  return first.length === 0 ? null : andMore(first, reason.users.length);
}

// A short title on a terminal; else the whole sentence.
function keptBy({ reason, place }: ImageListEntry, screen: Screen): string {
  if (reason === null) return place === null ? "-" : `nothing (${ordinal(place)} to go)`;
  return screen.width === null ? imageKeep.text(reason) : imageKeep.title(reason.kind);
}

/** An image that was not judged has neither reason nor place: only its size matters. */
function keptTitle({ reason, place }: ImageListEntry): string {
  if (reason === null) return place === null ? "smaller" : "nothing";
  return imageKeep.title(reason.kind);
}
