/** Document `ImageList` and the output of `crigc images`: all images, largest first, with users and keep reasons. */

import type { ImageId } from "../model/ids.ts";
import type { ImageRecord } from "../model/ledger.ts";
import type { ImagePlan } from "../model/plan.ts";
import type { ImageKeepReason, ImageUser } from "../model/reason.ts";
import { type Image, largerFirst } from "../model/snapshot.ts";
import { type Instant, toRfc3339 } from "../model/time.ts";
import { document, imageJson, jsonOf, recordJson } from "./document.ts";
import { imageKeep, userName, userWords } from "./image-reasons.ts";
import { type Column, column, type Columns, NAME, Printer, RIGHT } from "./printer.ts";
import { andMore, clean, type Screen } from "./terminal.ts";
import { counted, dayOf, elapsed, humanBytes, humanDuration } from "./words.ts";

export interface ImageListEntry {
  readonly image: Image;
  /** `null`: the list comes from the runtime alone. */
  readonly record: ImageRecord | null;
  /** `null`: no rule keeps it, or it was not judged. */
  readonly reason: ImageKeepReason | null;
  /** Place in the order of removal, from 1; `null`: not a candidate. */
  readonly place: number | null;
  /** Also containers that a pass would remove first, which keep no image. */
  readonly users: readonly ImageUser[];
}

export interface ImageListReport {
  readonly observedAt: Instant;
  readonly entries: readonly ImageListEntry[];
}

/** Every image of a plan, by descending size, then descending ID. */
export const entriesOf = (
  plan: Pick<ImagePlan, "kept" | "candidates">,
  users: ReadonlyMap<ImageId, readonly ImageUser[]> = new Map(),
): readonly ImageListEntry[] =>
  largestFirst([
    ...plan.kept.map(({ image, record, reason }) => ({
      image,
      record,
      reason,
      place: null,
      users: users.get(image.id) ?? (reason.kind === "in-use" ? reason.users : []),
    })),
    ...plan.candidates.map(({ image, record }, index) => ({
      image,
      record,
      reason: null,
      place: index + 1,
      users: users.get(image.id) ?? [],
    })),
  ]);

/** Images as listed, not judged: what the agent serves from its cache. */
export const unjudged = (images: readonly Image[]): readonly ImageListEntry[] =>
  largestFirst(
    images.map((image) => ({ image, record: null, reason: null, place: null, users: [] })),
  );

const largestFirst = (entries: readonly ImageListEntry[]): readonly ImageListEntry[] =>
  entries.toSorted((one, other) => largerFirst(one.image, other.image));

export type ImageListDocument = ReturnType<typeof imageListDocument>;

export const imageListDocument = ({ observedAt, entries }: ImageListReport) =>
  document("ImageList", {
    observedAt: toRfc3339(observedAt),
    count: entries.length,
    sizeBytes: entries.reduce((sum, { image }) => sum + image.sizeBytes, 0n),
    images: entries.map(imageEntryJson),
  });

type ImageEntryJson = ReturnType<typeof imageEntryJson>;

const imageEntryJson = ({ image, record, reason, place, users }: ImageListEntry) => ({
  ...imageJson(image),
  ...(record === null ? {} : recordJson(record)),
  usedBy: users.map((user) => jsonOf(user)),
  keptBy: reason === null ? null : imageKeep.json(reason),
  place,
});

/** On a narrow terminal IDs are left out, and the reasons name the users. */
const NARROW_MAX = 119;

export function imageListTable(list: ImageListDocument, screen: Screen): string {
  const printer = new Printer(screen);
  printer.table(imageColumns(list.observedAt, screen), list.images, { groupOf: keptTitle });
  printer.gap();
  printer.line(`${counted(list.count, "image")}, ${humanBytes(list.sizeBytes)} as reported`);
  return printer.text();
}

export function imageColumns(now: string, screen: Screen): Columns<ImageEntryJson> {
  const isWide = screen.wide === true;
  const isNarrow = !isWide && screen.width !== null && screen.width <= NARROW_MAX;
  const all: readonly (Column<ImageEntryJson> | false)[] = [
    column("IMAGE", ({ name }) => name, NAME),
    !isNarrow && column("ID", ({ id }) => (isWide ? clean(id) : crictlId(id))),
    column("SIZE", ({ sizeBytes }) => humanBytes(sizeBytes), RIGHT),
    column(
      isNarrow ? "SEEN" : "FIRST SEEN",
      ({ firstSeenAt: at }) => (at === undefined ? "-" : timeShown(at, now, screen)),
      isNarrow ? RIGHT : {},
    ),
    column(
      isNarrow ? "USED" : "LAST USED",
      (it) => lastUsed(it, now, screen),
      isNarrow ? RIGHT : {},
    ),
    !isNarrow && column("IN USE BY", (it) => usedBy(it, screen) || "-", { minimumWidth: 9 }),
    column(
      "KEPT BY",
      (it) =>
        keptBy(it, screen) + (isNarrow && it.usedBy.length > 0 ? `: ${usedBy(it, screen)}` : ""),
      { minimumWidth: isNarrow ? 18 : 9 },
    ),
    isWide &&
      column(
        "NAMES",
        ({ repoTags, repoDigests }) => [...repoTags, ...repoDigests].map(clean).join(",") || "-",
      ),
  ];
  return all.filter((it) => it !== false);
}

/** As crigc rm and crictl take it. */
const crictlId = (id: string): string =>
  clean(id)
    .replace(/^sha256:/, "")
    .slice(0, 12);

/** How long ago, in one unit, on a terminal; else the date. */
function timeShown(at: string, now: string, screen: Screen): string {
  if (screen.width === null) return dayOf(at);
  return /^[^a-z]*[a-z]+/.exec(humanDuration(elapsed(now, at)))?.[0] ?? "-";
}

function lastUsed(
  { usedBy: users, lastUsedAt: at }: ImageEntryJson,
  now: string,
  screen: Screen,
): string {
  if (users.length > 0) return "now";
  if (at === undefined) return "-";
  return at === null ? "never" : timeShown(at, now, screen);
}

/** "" if nothing uses it. */
const usedBy = ({ usedBy: users }: ImageEntryJson, screen: Screen): string =>
  andMore(users.slice(0, 1).map(screen.width === null ? userWords : userName), users.length);

// A short title on a terminal; else the whole sentence.
function keptBy({ keptBy: reason, place }: ImageEntryJson, screen: Screen): string {
  if (reason === null) return place === null ? "-" : `nothing (place ${place})`;
  return screen.width === null ? reason.text : imageKeep.title(reason.code);
}

/** An image that was not judged has neither reason nor place: only its size matters. */
function keptTitle({ keptBy: reason, place }: ImageEntryJson): string {
  if (reason === null) return place === null ? "smaller" : "nothing";
  return imageKeep.title(reason.code);
}
