/** Decides which pods are deleted or terminated, from the pod source, the live pods and the ledger. */
import type { PodUid } from "../../model/ids.ts";
import type { PodRecord } from "../../model/ledger.ts";
import type { PodSourceState } from "../../model/plan.ts";
import { logFactsOf, type PodReading, type PodRecordSeen } from "../../model/snapshot.ts";
import { type ObservedTime, seconds, watchedSince } from "../../model/time.ts";
import { listedOwners, livingPods } from "./ownership.ts";
import { podSourceState, type PodView } from "./pod-source.ts";

/** A pod is absent, or dead, once it was so in two passes this far apart, and in each one between them. */
export const PASSES_APART = seconds(10);

export interface PodJudgement {
  readonly state: PodSourceState;
  /** Its containers, sandboxes and logs are removed: the kubelet's "content should be removed". */
  readonly shouldRemoveContent: (uid: PodUid) => "pod-gone" | "pod-evicted" | null;
  /** It is terminated or deleted, so reclaim removes its containers and sandboxes. */
  readonly hasEnded: (uid: PodUid) => boolean;
  /** Foreign and dead in two passes in a row; no source knows it. */
  readonly foreignDead: (uid: PodUid) => boolean;
  /** Nothing knows it any more, but it does not count as deleted yet. */
  readonly mayBeDeleted: (uid: PodUid) => boolean;
}

/**
 * The next records of pods: one for each pod of the runtime or the log directory, and for each that the kubelet has
 * from its API server, which may be about to run.
 */
export function rememberPods(
  previous: ReadonlyMap<PodUid, PodRecord>,
  view: PodView,
): ReadonlyMap<PodUid, PodRecord> {
  const { pods: reading, watched, limits } = view;
  const state = podSourceState(view, previous);
  // A pass whose source is not ready interrupts the row.
  const listsPods = state.kind === "ready" && state.source !== "cri";
  const inSource = new Set(podsIn(reading).map(({ uid }) => uid));
  const living = livingPods(view, limits.compat);
  const ran = new Set(listedOwners(view, limits.compat).map(({ uid }) => uid));
  const here = new Set([...ran, ...(logFactsOf(view.logs)?.podLogs ?? []).map(({ uid }) => uid)]);
  const listed = listedByKubelet(view);
  const next = new Map<PodUid, PodRecord>();
  for (const uid of new Set([...here, ...expectedPods(previous, view)])) {
    const before = previous.get(uid);
    const isLiving = living.has(uid);
    const isAbsent = listsPods && !inSource.has(uid) && !isLiving;
    // A pod that was never here is dead only if the kubelet answers and does not list it.
    const isDead = !isLiving && (here.has(uid) || (reading.kind === "ready" && !listed.has(uid)));
    const origin = listed.get(uid) ?? before?.origin ?? null;
    const isPending = origin === "pending" || (origin === "api" && before?.origin !== "api");
    next.set(uid, {
      absentSinceWatched: isAbsent ? (before?.absentSinceWatched ?? watched) : null,
      deadSinceWatched: isDead ? (before?.deadSinceWatched ?? watched) : null,
      origin: isPending ? (ran.has(uid) ? "api" : "pending") : origin,
    });
  }
  return next;
}

/** Pods of the source: the kubelet's list and its pod directories. */
const podsIn = (reading: PodReading): readonly PodRecordSeen[] =>
  reading.kind === "ready" ? reading.pods : [];

/** Pods in the kubelet's own list, by where they come from. */
const listedByKubelet = ({ pods }: PodView): ReadonlyMap<PodUid, "api" | "static"> =>
  new Map(
    podsIn(pods).flatMap(({ uid, origin }) =>
      origin === "api" || origin === "static" ? [[uid, origin] as const] : [],
    ),
  );

/**
 * Pods known only from the kubelet's list, now or recently: if the next list lacks them, they distinguish a kubelet
 * that has not heard from its API server from one whose last pod was deleted.
 */
function expectedPods(previous: ReadonlyMap<PodUid, PodRecord>, view: PodView): readonly PodUid[] {
  const { pods, watched, limits } = view;
  if (pods.kind === "none" || pods.source !== "kubelet-api") return [];
  const fromApi = [...listedByKubelet(view)].filter(([, origin]) => origin === "api");
  const recent = [...previous].filter(
    ([, { origin, deadSinceWatched: since }]) =>
      origin === "pending" && (since === null || watchedSince(watched, since) < limits.deadPodTtl),
  );
  return [...fromApi, ...recent].map(([uid]) => uid);
}

/**
 * Judges by records that already count this pass, so call `rememberPods` first. On fresh lists, live pods are
 * determined again.
 */
export function judgePods(records: ReadonlyMap<PodUid, PodRecord>, view: PodView): PodJudgement {
  const { watched } = view;
  const state = podSourceState(view, records);
  const living = livingPods(view, view.limits.compat);
  const isConfirmed = (uid: PodUid, since: ObservedTime | null | undefined): boolean =>
    !living.has(uid) &&
    since !== null &&
    since !== undefined &&
    watchedSince(watched, since) >= PASSES_APART;
  const deadSince = (uid: PodUid): ObservedTime | null =>
    records.get(uid)?.deadSinceWatched ?? null;
  const isDead = (uid: PodUid): boolean => isConfirmed(uid, deadSince(uid));
  if (state.kind !== "ready") {
    return {
      state,
      shouldRemoveContent: () => null,
      hasEnded: () => false,
      foreignDead: isDead,
      mayBeDeleted: () => false,
    };
  }
  const isCri = state.source === "cri";
  const seen = new Map(podsIn(view.pods).map((pod) => [pod.uid, pod]));
  const shouldRemoveContent = (uid: PodUid): "pod-gone" | "pod-evicted" | null => {
    if (living.has(uid)) return null;
    if (isCri) {
      // By observed time only: the runtime's timestamps jump with the node's clock and count nights when it was off.
      const isOld = watchedSince(watched, deadSince(uid) ?? watched) >= view.limits.deadPodTtl;
      return isOld && isDead(uid) ? "pod-gone" : null;
    }
    const listed = seen.get(uid);
    if (listed !== undefined) return listed.evicted ? "pod-evicted" : null;
    return isConfirmed(uid, records.get(uid)?.absentSinceWatched) ? "pod-gone" : null;
  };
  return {
    state,
    shouldRemoveContent,
    hasEnded: (uid) =>
      shouldRemoveContent(uid) !== null ||
      (isCri ? isDead(uid) : !living.has(uid) && seen.get(uid)?.finished === true),
    foreignDead: isDead,
    mayBeDeleted: (uid) => {
      const record = records.get(uid);
      const since = isCri ? record?.deadSinceWatched : record?.absentSinceWatched;
      return !living.has(uid) && !seen.has(uid) && (since ?? null) !== null;
    },
  };
}
