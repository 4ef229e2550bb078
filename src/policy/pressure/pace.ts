/** What a pass under pressure frees, and how soon after one that left a threshold met the next one begins. */

import type { Compat, Signal } from "../../model/limits.ts";
import { type ImageEnd, isGone, outcomeItems, type Pass } from "../../model/pass.ts";
import type { ImageTarget } from "../../model/plan.ts";
import type { PressureVerdict } from "./thresholds.ts";

/** At 100 MB/s, 50 MB are written until a crossing is noticed, or before the next pass. `gc` and `rm` try the lock every 250 ms, so they get it in between. */
export const SOONEST_MS = 500;

/** Images are removed until the pressure ends; the kubelet removes all unused ones, whatever removing containers freed. */
export function reclaimTargets(
  compat: Compat,
  signals: readonly Signal[],
  verdict: PressureVerdict | null,
): readonly ImageTarget[] {
  if (compat === "none") return verdict?.targets ?? [];
  return signals.map((signal) => ({ kind: "everything", trigger: { kind: "pressure", signal } }));
}

export type PassEffect =
  /** It removed something. */
  | "removed"
  /** It removed nothing, and the next one may. */
  | "nothing"
  /** A call of the runtime failed, as while it restarts. */
  | "failed"
  /** A rule ended it that holds for the next one too. */
  | "ruled-out";

/** Ends of an image pass that hold for the next one too. */
const ENDS_BY_RULE: ReadonlySet<ImageEnd> = new Set<ImageEnd>([
  "futile",
  "nothing-freed",
  "blocked",
  "invalid-capacity",
]);

export function effectOf({ images, containers }: Pick<Pass, "images" | "containers">): PassEffect {
  // It was ended for the next pass, in which containers go on.
  if (containers?.end === "stopped")
    return hasRemoved({ images, containers }) ? "removed" : "nothing";
  const isRuledOut =
    (images !== null && ENDS_BY_RULE.has(images.end)) || containers?.end === "blocked";
  if (isRuledOut) return "ruled-out";
  return hasRemoved({ images, containers }) ? "removed" : "nothing";
}

export const hasRemoved = ({ images, containers }: Pick<Pass, "images" | "containers">): boolean =>
  images?.items.some(({ result }) => result.kind === "removed") === true ||
  (containers !== null &&
    (outcomeItems(containers).some(isGone) || containers.logs.some(({ bytes }) => bytes > 0n)));

export interface PassEnded {
  readonly effect: PassEffect;
  /** Passes in a row that removed nothing, with this one. */
  readonly idle: number;
  readonly periodMs: number;
  readonly compat: Compat;
}

/** While the runtime restarts, the disk may fill up; after a minute it is another failure. */
const [FAILED_MS, FAILED_PASSES] = [2_000, 30];

/** The kubelet's eviction manager has a fixed period. */
export function pauseAfter({ effect, idle, periodMs, compat }: PassEnded): number {
  if (effect === "ruled-out" || compat === "kubelet") return periodMs;
  const longestMs =
    effect === "failed" && idle <= FAILED_PASSES ? Math.min(periodMs, FAILED_MS) : periodMs;
  return Math.min(longestMs, SOONEST_MS * 2 ** Math.max(0, idle - 1));
}
