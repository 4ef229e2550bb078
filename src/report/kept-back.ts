/** Words for images that are kept only for now, or only by the rule for preloaded images. */

import type { Pass } from "../model/pass.ts";
import type { ImagePlan } from "../model/plan.ts";
import { duration } from "../model/time.ts";
import { compared } from "../model/values.ts";
import { counted, humanBytes, humanDuration } from "./bytes.ts";
import { clean } from "./terminal.ts";

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
