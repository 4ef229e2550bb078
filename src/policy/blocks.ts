/** Reasons for which no image at all is removed, whatever asks for it; the state of the disk aside. */
import type { Ledger } from "../model/ledger.ts";
import type { ImageLimits } from "../model/limits.ts";
import type { Plan, PodSourceState } from "../model/plan.ts";
import type { ImageBlock } from "../model/reason.ts";
import type { KeepProblem, Snapshot } from "../model/snapshot.ts";
import {
  type Duration,
  duration,
  durationFromMs,
  type Instant,
  minutes,
  since,
  toMs,
  watchedSince,
} from "../model/time.ts";
import type { Usage } from "./image/usage.ts";

/** For so long a pod may pull and mount what no container of it uses yet; image removal waits for it no longer than that. */
export const POD_START_WAIT: Duration = minutes(2);

const POD_PAUSE_MS = 500;
const POD_PAUSE_MS_MAX = 5_000;

/** How long to pause before the next look at a pod that is starting: short at first, and ever fewer looks at a node that is busy. */
export function podPause(waited: Duration): Duration {
  const pauseMs = Math.min(Math.max(toMs(waited) / 4, POD_PAUSE_MS), POD_PAUSE_MS_MAX);
  return durationFromMs(Math.min(Math.ceil(pauseMs), toMs(duration(POD_START_WAIT - waited))));
}

export interface StandingBlocks {
  readonly snapshot: Snapshot;
  readonly ledger: Ledger;
  readonly limits: ImageLimits;
  readonly hold: { readonly until: Instant | null; readonly reason: string } | null;
  readonly podSource: PodSourceState | null;
  readonly waitedForPods: Duration;
  readonly usage: Usage;
  readonly keepProblems: readonly KeepProblem[];
}

/** In the order in which they are named; empty where images may go. */
export function standingBlocks(input: StandingBlocks): readonly ImageBlock[] {
  return [
    ...onHold(input),
    ...bootGrace(input),
    ...keepRulesInvalid(input),
    ...podsUnknown(input),
    ...usageUnknown(input),
    ...podStarting(input),
  ];
}

const onHold = ({ hold }: StandingBlocks): readonly ImageBlock[] =>
  hold === null ? [] : [{ kind: "on-hold", until: hold.until, reason: hold.reason }];

/** The block of the grace after a boot, which holds back containers as well; empty where none runs. */
export function bootGrace({
  ledger,
  limits,
}: Pick<StandingBlocks, "ledger" | "limits">): readonly ImageBlock[] {
  const { graceUntil, graceReason, watched } = ledger;
  if (limits.compat === "kubelet" || graceUntil === null || watched >= graceUntil) return [];
  return [
    {
      kind: "boot-grace",
      because: graceReason ?? "boot",
      remaining: watchedSince(graceUntil, watched),
    },
  ];
}

const keepRulesInvalid = ({ keepProblems }: StandingBlocks): readonly ImageBlock[] =>
  keepProblems.length === 0 ? [] : [{ kind: "keep-rules-invalid", problems: keepProblems }];

/** Only the kubelet's own list of pods says what images their specifications name: it has to be there, and whole. */
function podsUnknown({ snapshot: { pods }, podSource }: StandingBlocks): readonly ImageBlock[] {
  if (pods.kind === "none" || pods.source !== "kubelet-api") return [];
  if (pods.kind === "failed") return [{ kind: "pods-unknown", message: pods.message }];
  return podSource?.kind === "not-ready"
    ? [{ kind: "pods-incomplete", message: podSource.why }]
    : [];
}

const usageUnknown = ({ usage }: StandingBlocks): readonly ImageBlock[] =>
  usage.unknown.length === 0 ? [] : [{ kind: "usage-unknown", unknown: usage.unknown }];

/**
 * Pods that are only just starting, for which image removal waits; empty once they have been waited for long enough.
 * By when the lists were read: a fresh look in the middle of a pass is later than the pass's own clock.
 */
export function podStarting({
  snapshot,
  waitedForPods,
}: Pick<StandingBlocks, "snapshot" | "waitedForPods">): readonly ImageBlock[] {
  const young = snapshot.sandboxes.filter(({ state, createdAt }) => {
    if (state !== "ready") return false;
    const age = since(snapshot.observedAt, createdAt);
    // A sandbox from further in the future than that is one whose clock was wrong, not a young one.
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

/** Whether nothing stands in the way of images but pods that are only just starting, and there is something to remove. */
export function waitsForPods(plan: Plan): boolean {
  const blocks = plan.images?.blocks ?? [];
  return (
    blocks.length > 0 &&
    blocks.every((block) => block.kind === "pod-starting") &&
    plan.images?.triggers.length !== 0
  );
}
