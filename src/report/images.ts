/** Document `ImageList` and the output of `crigc images`: all images, largest first, with users and keep reasons. */

import type { ImageId } from "../model/ids.ts";
import type { ImageRecord } from "../model/ledger.ts";
import type { ImagePlan } from "../model/plan.ts";
import type { ImageKeepReason, ImageUser } from "../model/reason.ts";
import { type Image, largerFirst } from "../model/snapshot.ts";
import { type Instant, toRfc3339 } from "../model/time.ts";
import { document, imageJson, jsonOf, recordJson } from "./document.ts";
import { imageKeep, userName } from "./reasons.ts";
import { andMore, column, type Columns, Printer, RIGHT, type Screen } from "./terminal.ts";
import { elapsed, humanBytes, humanDuration, plural, shortId } from "./words.ts";

export interface ImageListEntry {
  readonly image: Image;
  readonly record: ImageRecord;
  /** `null`: no rule keeps it. */
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
  [
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
  ].toSorted((one, other) => largerFirst(one.image, other.image));

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
  ...recordJson(record),
  usedBy: users.map((user) => jsonOf(user)),
  keptBy: reason === null ? null : imageKeep.json(reason),
  place,
});

export function imageListTable(list: ImageListDocument, screen: Screen): string {
  const printer = new Printer(screen);
  printer.table(imageColumns(list.observedAt), list.images);
  printer.gap();
  printer.line(`${plural(list.count, "image")}, ${humanBytes(list.sizeBytes)} as reported`);
  return printer.text();
}

const imageColumns = (now: string): Columns<ImageEntryJson> => [
  column("IMAGE", ({ name }) => name),
  column("ID", ({ id }) => shortId(id).replace(/^sha256:/, "")),
  column("SIZE", ({ sizeBytes }) => humanBytes(sizeBytes), RIGHT),
  column("SEEN FOR", ({ firstSeenAt }) => age(firstSeenAt, now), RIGHT),
  column("LAST USED", (it) => lastUsed(it, now), RIGHT),
  column("IN USE BY", usedBy),
  column("KEPT BY", keptBy),
];

/** In one unit. */
const age = (at: string, now: string): string =>
  /^[^a-z]*[a-z]+/.exec(humanDuration(elapsed(now, at)))?.[0] ?? "-";

function lastUsed({ usedBy: users, lastUsedAt: at }: ImageEntryJson, now: string): string {
  if (users.length > 0) return "now";
  return at === null ? "never" : `${age(at, now)} ago`;
}

const usedBy = ({ usedBy: users }: ImageEntryJson): string =>
  andMore(users.slice(0, 1).map(userName), users.length) || "-";

const keptBy = ({ keptBy: reason, place }: ImageEntryJson): string =>
  reason === null ? `nothing (place ${place})` : imageKeep.title(reason.code);
