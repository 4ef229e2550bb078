/** Who is gone: judged from what the source of pods said, what evidently lives, and what is remembered of each pod. */
import { assertNever } from "../model/assert.ts";
import type { PodUid } from "../model/ids.ts";
import type { PodRecord } from "../model/ledger.ts";
import type { PodSourceState } from "../model/plan.ts";
import { logFactsOf, type PodRecordSeen, type PodSource } from "../model/snapshot.ts";
import { watchedSince } from "../model/time.ts";
import { livingPods, ownership } from "./ownership.ts";
import { listedUids, podSourceState, type PodView } from "./pod-source.ts";

/** In how many passes in a row a pod has to be absent, or dead, before it counts as such; more are not counted. */
const PASSES = 2;

export interface PodJudgement {
  readonly state: PodSourceState;
  /** Its containers, sandboxes and logs go: the kubelet's "content should be removed". */
  readonly contentGone: (uid: PodUid) => "pod-gone" | "pod-evicted" | null;
  /** It ended, or is gone: reclaim takes its containers and sandboxes. */
  readonly runtimeGone: (uid: PodUid) => boolean;
  /** What Kubernetes did not make, dead in two passes in a row: of this no source knows. */
  readonly foreignDead: (uid: PodUid) => boolean;
  /** Nothing speaks for it, and it is not gone yet. */
  readonly fading: (uid: PodUid) => boolean;
}

/** The next memory of pods: one record for each that the runtime or the log directory knows, and no other. */
export function rememberPods(
  previous: ReadonlyMap<PodUid, PodRecord>,
  view: PodView,
): ReadonlyMap<PodUid, PodRecord> {
  const source = believedSource(podSourceState(view), view);
  const listed = listedUids(view.pods);
  const living = livingPods(view, view.limits.compat);
  const next = new Map<PodUid, PodRecord>();
  for (const uid of seenPods(view)) {
    const before = previous.get(uid);
    // A pass in which the source cannot be believed interrupts the row.
    const absent = source !== null && source !== "cri" && !listed.has(uid) && !living.has(uid);
    const dead = !living.has(uid);
    next.set(uid, {
      absentPasses: absent ? oneMore(before?.absentPasses) : 0,
      deadPasses: dead ? oneMore(before?.deadPasses) : 0,
      deadSinceWatched: dead ? (before?.deadSinceWatched ?? view.watched) : null,
    });
  }
  return next;
}

const oneMore = (count: number | undefined): number => Math.min((count ?? 0) + 1, PASSES);

function seenPods(view: PodView): ReadonlySet<PodUid> {
  const owners = ownership(view, view.limits.compat);
  return new Set([
    ...view.sandboxes.map((sandbox) => owners.ofSandbox(sandbox).uid),
    ...view.containers.map((container) => owners.ofContainer(container).uid),
    ...(logFactsOf(view.logs)?.podLogs ?? []).map((directory) => directory.uid),
  ]);
}

/** The source that may be believed now; `null`: nobody says who is gone. */
function believedSource(state: PodSourceState, view: PodView): PodSource | null {
  return state.kind === "ready" && view.pods.kind === "ready" ? view.pods.source : null;
}

/** Judges by records that already count this pass: `rememberPods` comes first. Asked again on fresh lists, living pods are known anew. */
export function judgePods(records: ReadonlyMap<PodUid, PodRecord>, view: PodView): PodJudgement {
  const state = podSourceState(view);
  const source = believedSource(state, view);
  const seen = new Map(
    view.pods.kind === "ready" ? view.pods.pods.map((pod) => [pod.uid, pod]) : [],
  );
  const living = livingPods(view, view.limits.compat);
  const about = (uid: PodUid): Evidence => ({
    record: records.get(uid) ?? null,
    seen: seen.get(uid) ?? null,
    living: living.has(uid),
    view,
  });
  return {
    state,
    contentGone: (uid) => (source === null ? null : contentGone(about(uid), source)),
    runtimeGone: (uid) => {
      if (source === null) return false;
      const evidence = about(uid);
      return contentGone(evidence, source) !== null || terminated(evidence, source);
    },
    foreignDead: (uid) => longDead(about(uid)),
    fading: (uid) => {
      const { record, seen: listed, living: lives } = about(uid);
      const doubted = source === "cri" ? (record?.deadPasses ?? 0) : (record?.absentPasses ?? 0);
      return source !== null && !lives && listed === null && doubted > 0;
    },
  };
}

interface Evidence {
  readonly record: PodRecord | null;
  readonly seen: PodRecordSeen | null;
  readonly living: boolean;
  readonly view: PodView;
}

function contentGone(evidence: Evidence, source: PodSource): "pod-gone" | "pod-evicted" | null {
  const { record, seen, living, view } = evidence;
  if (living) return null;
  switch (source) {
    case "cri": {
      const since = record?.deadSinceWatched ?? null;
      if (since === null || !longDead(evidence)) return null;
      // By the watched clock alone: the runtime's timestamps jump with the node's clock and count nights that it was off.
      return watchedSince(view.watched, since) >= view.limits.deadPodTtl ? "pod-gone" : null;
    }
    case "kubelet-dir":
    case "kubelet-api":
      if (seen !== null) return seen.evicted ? "pod-evicted" : null;
      return record !== null && record.absentPasses >= PASSES ? "pod-gone" : null;
    default:
      return assertNever(source);
  }
}

function terminated(evidence: Evidence, source: PodSource): boolean {
  if (evidence.living) return false;
  return source === "cri" ? longDead(evidence) : evidence.seen?.finished === true;
}

function longDead({ record, living }: Evidence): boolean {
  return !living && record !== null && record.deadPasses >= PASSES;
}
