/** Words of plans: what keeps images back, targets, and what fills a disk. */

import { assertNever } from "../model/assert.ts";
import type { Pass } from "../model/pass.ts";
import type { DiskBreakdown, ImagePlan, ImageTarget } from "../model/plan.ts";
import { duration } from "../model/time.ts";
import { compared } from "../model/values.ts";
import { counted, humanBytes, humanDuration, humanRange } from "./bytes.ts";
import { imageTrigger } from "./image-reasons.ts";
import { clean, present } from "./terminal.ts";

/** Images that are only too young, and those that `keepPreloaded` alone keeps; "" if there are none. */
export const keptBackWords = (plan: ImagePlan): string =>
  [youngWords(plan), preloadedWords(plan)].filter((it) => it !== "").join("; ");

/** What only `keepPreloaded` keeps. */
export const preloadedOf = (plan: ImagePlan | null): ImagePlan["kept"] =>
  plan?.keepsPreloaded === true
    ? plan.kept.filter(({ reason }) => reason.kind === "keep-preloaded")
    : [];

/** The plan of the last pass that evaluated images. */
export const lastImagePlan = (passes: readonly Pass[]): ImagePlan | null =>
  passes
    .filter(({ plan }) => plan.images !== null)
    .toSorted((one, other) => compared(other.endedAt, one.endedAt))[0]?.plan.images ?? null;

/** `keepPreloaded alone keeps 39 images (4.1 GiB)`, and why it may be every image; "" if it keeps none. */
export function preloadedWords(plan: ImagePlan | null): string {
  const kept = preloadedOf(plan);
  if (kept.length === 0) return "";
  const bytes = kept.reduce((sum, { image }) => sum + image.sizeBytes, 0n);
  const messages = kept.flatMap(({ reason }) =>
    reason.kind === "keep-preloaded" && reason.message !== undefined ? [reason.message] : [],
  );
  const unread =
    messages.length === 0
      ? ""
      : `, ${messages.length} of them because the kubelet's pull records cannot be read: ${clean(messages[0] ?? "")}`;
  return `keepPreloaded alone keeps ${counted(kept.length, "image")} (${humanBytes(bytes)})${unread}`;
}

/** `39 images (4.1 GiB) become removable in 1m48s`, for images that are only too young; "" if there are none. */
export function youngWords({ kept }: ImagePlan): string {
  const young = kept.flatMap(({ image, reason }) =>
    reason.kind === "too-young"
      ? [{ sizeBytes: image.sizeBytes, left: reason.minimumAge - reason.age }]
      : [],
  );
  if (young.length === 0) return "";
  const bytes = young.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
  const last = young.reduce((most, { left }) => (left > most ? left : most), 0n);
  const become = young.length === 1 ? "becomes" : "become";
  const together = young.every(({ left }) => left === last);
  return `${counted(young.length, "image")} (${humanBytes(bytes)}) ${become} removable ${together ? "in" : "within"} ${humanDuration(duration(last))}`;
}

/** What fills a disk, as one clause: for event `ImageGCFutile` and for `plan`. */
export function breakdownWords(it: DiskBreakdown): string {
  const parts = present([
    `images ${humanRange(it.imagesAtLeastBytes, it.imagesBytes)}`,
    it.containersBytes !== null && `containers ${humanBytes(it.containersBytes)}`,
    it.logsBytes !== null && `pod logs ${humanBytes(it.logsBytes)}`,
    `other data ${it.imagesAtLeastBytes > 0n && it.imagesAtLeastBytes < it.imagesBytes ? "at least " : ""}${humanBytes(it.otherBytes)}`,
  ]);
  return `${parts.join(", ")} of ${humanBytes(it.capacityBytes - it.availableBytes)} used`;
}

export const stopWords = (accounting: ImagePlan["accounting"]): string =>
  accounting === "measured"
    ? "the disk is measured after each removal"
    : "reported sizes are added up";

/** A target of a pass as an imperative: what to free, and why. */
export function targetWords(target: ImageTarget): string {
  const why = imageTrigger.text(target.trigger);
  switch (target.kind) {
    case "available-bytes":
      return `free ${humanBytes(target.wantedBytes)} on ${clean(target.path)} (to ${humanBytes(target.availableBytes)} available): ${why}`;
    case "free-inodes":
      return `free ${counted(target.wantedInodes, "inode")} on ${clean(target.path)} (to ${target.inodesFree} free): ${why}`;
    case "store-bytes":
      return `shrink the image store by ${humanBytes(target.wantedBytes)} (to ${humanBytes(target.maximumBytes)}): ${why}`;
    case "image-count":
      return `remove ${counted(target.wantedImages, "image")} (down to ${target.maximumImages}): ${why}`;
    case "everything":
      return `remove every candidate: ${why}`;
    default:
      return assertNever(target);
  }
}
