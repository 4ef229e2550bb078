/** Document `ImageList` and the output of `crigc images`: all images, largest first, with users and keep reasons. */

import type { ImageRecord } from "../../model/ledger.ts";
import type { ImagePlan } from "../../model/plan.ts";
import type { ImageKeepReason } from "../../model/reason.ts";
import { type Image, largerFirst } from "../../model/snapshot.ts";
import { type Instant, since } from "../../model/time.ts";
import { counted, dayOf, humanBytes, humanDuration } from "../bytes.ts";
import { document, type JsonObject, timeOf } from "../document/json.ts";
import { imageJson, recordJson } from "../document/node.ts";
import { imageKeep, userName, userWords } from "../image-reasons.ts";
import { imageName } from "../names.ts";
import { clean, type Screen } from "../terminal.ts";
import { hiddenLines, shortened } from "./groups.ts";
import { text } from "./plan.ts";
import { type Column, tableLines } from "./table.ts";

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
export function entriesOf(plan: ImagePlan): readonly ImageListEntry[] {
  return largestFirst([
    ...plan.kept.map((it) => ({
      image: it.image,
      record: it.record,
      reason: it.reason,
      place: null,
    })),
    ...plan.candidates.map((it, index) => ({
      image: it.image,
      record: it.record,
      reason: null,
      place: index + 1,
    })),
  ]);
}

/** Images as listed, not judged: what the agent serves from its cache. */
export const unjudged = (images: readonly Image[]): readonly ImageListEntry[] =>
  largestFirst(images.map((image) => ({ image, record: null, reason: null, place: null })));

export const imageListDocument = (report: ImageListReport): JsonObject =>
  document("ImageList", {
    observedAt: timeOf(report.observedAt),
    count: report.entries.length,
    sizeBytes: report.entries.reduce((sum, it) => sum + it.image.sizeBytes, 0n),
    images: report.entries.map(entryJson),
  });

const entryJson = (entry: ImageListEntry): JsonObject => ({
  ...imageJson(entry.image),
  ...(entry.record === null ? {} : recordJson(entry.record)),
  usedBy: entry.reason?.kind === "in-use" ? entry.reason.users.map((user) => ({ ...user })) : [],
  keptBy: entry.reason === null ? null : imageKeep.json(entry.reason),
  place: entry.place,
});

const COLUMNS: readonly Column[] = [
  { title: "IMAGE", minimumWidth: 16, cut: "middle" },
  { title: "ID" },
  { title: "SIZE", align: "right" },
  { title: "FIRST SEEN" },
  { title: "LAST USED" },
  { title: "IN USE BY", minimumWidth: 9 },
  { title: "KEPT BY", minimumWidth: 9 },
];
/** On a narrow terminal IDs are left out, and the reasons name the users. */
const NARROW: readonly Column[] = [
  { title: "IMAGE", minimumWidth: 16, cut: "middle" },
  { title: "SIZE", align: "right" },
  { title: "SEEN", align: "right" },
  { title: "USED", align: "right" },
  { title: "KEPT BY", minimumWidth: 18 },
];
const NARROW_MAX = 119;
/** As crigc rm and crictl take it. */
const ID_SHOWN = 12;
const NAMES: Column = { title: "NAMES" };

export function imageListTable(report: ImageListReport, screen: Screen): string {
  const total = report.entries.reduce((sum, it) => sum + it.image.sizeBytes, 0n);
  const { shown, hidden } = shortened(report.entries, screen);
  const isNarrow = screen.wide !== true && screen.width !== null && screen.width <= NARROW_MAX;
  const columns = screen.wide === true ? [...COLUMNS, NAMES] : isNarrow ? NARROW : COLUMNS;
  const row = isNarrow ? narrowRow : entryRow;
  return text([
    ...tableLines(
      columns,
      shown.map((it) => row(it, report.observedAt, screen)),
      screen,
    ),
    ...hiddenLines(hidden, keptTitle, screen),
    "",
    `${counted(report.entries.length, "image")}, ${humanBytes(total)} as reported`,
  ]);
}

function entryRow(entry: ImageListEntry, now: Instant, screen: Screen): readonly string[] {
  const { image, record } = entry;
  const isWide = screen.wide === true;
  return [
    imageName(image),
    isWide
      ? clean(image.id)
      : clean(image.id)
          .replace(/^sha256:/, "")
          .slice(0, ID_SHOWN),
    humanBytes(image.sizeBytes),
    record === null ? "-" : timeShown(record.firstSeenAt, now, screen),
    lastUsed(entry, now, screen),
    usedBy(entry, screen),
    keptBy(entry, screen),
    ...(isWide ? [[...image.repoTags, ...image.repoDigests].map(clean).join(",") || "-"] : []),
  ];
}

function narrowRow(entry: ImageListEntry, now: Instant, screen: Screen): readonly string[] {
  const [name = "", , size = "", firstSeen = "", used = "", users = "", kept = ""] = entryRow(
    entry,
    now,
    screen,
  );
  return [name, size, firstSeen, used, users === "-" ? kept : `${kept}: ${users}`];
}

/** How long ago, in one unit, on a terminal; else the date. */
function timeShown(at: Instant, now: Instant, screen: Screen): string {
  if (screen.width === null) return dayOf(at);
  return /^-?[^a-z]*[a-z]+/.exec(humanDuration(since(now, at)))?.[0] ?? "-";
}

function lastUsed({ reason, record }: ImageListEntry, now: Instant, screen: Screen): string {
  if (reason?.kind === "in-use") return "now";
  if (record === null) return "-";
  return record.lastUsedAt === null ? "never" : timeShown(record.lastUsedAt, now, screen);
}

function usedBy(entry: ImageListEntry, screen: Screen): string {
  if (entry.reason?.kind !== "in-use") return "-";
  const [first, ...rest] = entry.reason.users;
  if (first === undefined) return "-";
  const name = screen.width === null ? userWords(first) : userName(first);
  return rest.length === 0 ? name : `${name}, ${rest.length} more`;
}

// A short title on a terminal; else the whole sentence.
function keptBy(entry: ImageListEntry, screen: Screen): string {
  if (entry.reason === null) return entry.place === null ? "-" : `candidate ${entry.place}`;
  return screen.width === null ? imageKeep.text(entry.reason) : imageKeep.title(entry.reason.kind);
}

const keptTitle = ({ reason, place }: ImageListEntry): string =>
  reason === null ? (place === null ? "smaller" : "candidate") : imageKeep.title(reason.kind);

const largestFirst = (entries: readonly ImageListEntry[]): readonly ImageListEntry[] =>
  entries.toSorted((one, other) => largerFirst(one.image, other.image));
