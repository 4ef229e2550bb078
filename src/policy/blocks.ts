/** Reasons that stop all image removal whatever the trigger, except the state of the disk. */
import type { Plan } from "../model/plan.ts";
import type { ImageBlock } from "../model/reason.ts";
import type { KeepProblem } from "../model/snapshot.ts";
import {
  type Duration,
  duration,
  durationFromMs,
  minutes,
  since,
  toMs,
  watchedSince,
} from "../model/time.ts";
import { podSourceForImages, podView } from "./container/pod-source.ts";
import type { Facts } from "./facts.ts";
import type { Usage } from "./image/usage.ts";

/** How long image removal waits for a starting pod, which may pull and mount images that no container uses yet. */
export const POD_START_WAIT: Duration = minutes(2);

const POD_PAUSE_MS = 500;
const POD_PAUSE_MS_MAX = 5_000;

/** The pause before the next look at a starting pod: short at first, then longer, to spare a busy node. */
export function podPause(waited: Duration): Duration {
  const pauseMs = Math.min(Math.max(toMs(waited) / 4, POD_PAUSE_MS), POD_PAUSE_MS_MAX);
  return durationFromMs(Math.min(Math.ceil(pauseMs), toMs(duration(POD_START_WAIT - waited))));
}

/** The blocks of images, in the order in which they are reported; empty if images may be removed. */
export const imageBlocks = (
  facts: Facts,
  usage: Usage,
  keepProblems: readonly KeepProblem[],
): readonly ImageBlock[] => [
  ...standingBlocks(facts),
  ...keepRulesInvalid(keepProblems),
  ...podsUnknown(facts),
  ...usageUnknown(usage),
  ...podStarting(facts),
];

/** The blocks of both containers and images: a hold, and the grace period after a boot. */
export function standingBlocks({
  hold,
  ledger,
  limits,
}: Pick<Facts, "hold" | "ledger" | "limits">): readonly ImageBlock[] {
  const held: readonly ImageBlock[] =
    hold.kind === "none" ? [] : [{ kind: "on-hold", until: hold.until, reason: hold.reason }];
  const { graceUntil, graceReason, watched } = ledger;
  if (limits.images.compat === "kubelet" || graceUntil === null || watched >= graceUntil)
    return held;
  const remaining = watchedSince(graceUntil, watched);
  return [...held, { kind: "boot-grace", because: graceReason ?? "boot", remaining }];
}

const keepRulesInvalid = (problems: readonly KeepProblem[]): readonly ImageBlock[] =>
  problems.length === 0 ? [] : [{ kind: "keep-rules-invalid", problems }];

/** Only the kubelet's own list names the images of pods' specifications, so it has to be present and complete. */
function podsUnknown(facts: Facts): readonly ImageBlock[] {
  const { pods } = facts.snapshot;
  if (pods.kind === "none" || pods.source !== "kubelet-api") return [];
  if (pods.kind === "failed") return [{ kind: "pods-unknown", message: pods.message }];
  const source = podSourceForImages(podView(facts), facts.ledger.pods);
  if (source?.kind !== "not-ready") return [];
  const { why, passes } = source;
  return [{ kind: "pods-incomplete", message: why, ...(passes && { passes }) }];
}

const usageUnknown = ({ unknown }: Usage): readonly ImageBlock[] =>
  unknown.length === 0 ? [] : [{ kind: "usage-unknown", unknown }];

/**
 * Starting pods for which image removal waits; empty once it has waited long enough. Compares with the time of the
 * lists, because a fresh look during a pass is later than the pass's own clock.
 */
export function podStarting({
  snapshot,
  waitedForPods,
}: Pick<Facts, "snapshot" | "waitedForPods">): readonly ImageBlock[] {
  const young = snapshot.sandboxes.filter(({ state, createdAt }) => {
    if (state !== "ready") return false;
    const age = since(snapshot.observedAt, createdAt);
    // A sandbox further in the future is not young; it was created by a wrong clock.
    return age < POD_START_WAIT && age + POD_START_WAIT > 0n;
  });
  if (young.length === 0) return [];
  const populated = new Set(snapshot.containers.map(({ sandboxId }) => sandboxId));
  const starting = young.filter(({ id }) => !populated.has(id));
  const youngest = starting.reduce(
    (most, { createdAt }) => (createdAt > most ? createdAt : most),
    0n,
  );
  const left = POD_START_WAIT - (snapshot.observedAt - youngest);
  const patience = POD_START_WAIT - waitedForPods;
  if (starting.length === 0 || patience <= 0n) return [];
  const remaining = duration(left < patience ? left : patience);
  return [{ kind: "pod-starting", sandboxes: starting.map(({ id }) => id).toSorted(), remaining }];
}

/** Whether only starting pods block images, and there is something to remove. */
export function waitsForPods(plan: Plan): boolean {
  const blocks = plan.images?.blocks ?? [];
  return (
    blocks.length > 0 &&
    blocks.every((block) => block.kind === "pod-starting") &&
    plan.images?.triggers.length !== 0
  );
}
