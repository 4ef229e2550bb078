/** Decides which pods are deleted or terminated, from the pod source, the live pods and the ledger. */
import { assertNever } from "../../model/assert.ts";
import type { PodUid } from "../../model/ids.ts";
import type { PodRecord } from "../../model/ledger.ts";
import type { PodSourceState } from "../../model/plan.ts";
import { logFactsOf, type PodRecordSeen, type PodSource } from "../../model/snapshot.ts";
import { seconds, type Watched, watchedSince } from "../../model/time.ts";
import { sameOr } from "../by-object.ts";
import { listedOwners, livingPods } from "./ownership.ts";
import { knownUids, podSourceState, type PodView } from "./pod-source.ts";

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
  const source = believedSource(podSourceState(view, previous), view);
  const known = knownUids(view.pods);
  const living = livingPods(view, view.limits.compat);
  const ran = new Set(listedOwners(view, view.limits.compat).map(({ uid }) => uid));
  const here = new Set([...ran, ...(logFactsOf(view.logs)?.podLogs ?? []).map(({ uid }) => uid)]);
  const listed = new Map(
    podsOfKubeletApi(view).flatMap(({ uid, origin }) =>
      origin === "api" || origin === "static" ? [[uid, origin] as const] : [],
    ),
  );
  const next = new Map<PodUid, PodRecord>();
  for (const uid of new Set([...here, ...expected(previous, view, listed)])) {
    const before = previous.get(uid);
    // A pass whose source is not ready interrupts the row.
    const absent = source !== null && source !== "cri" && !known.has(uid) && !living.has(uid);
    // A pod that was never here is dead only if the kubelet answers and does not list it.
    const dead =
      !living.has(uid) && (here.has(uid) || (view.pods.kind === "ready" && !listed.has(uid)));
    const origin = listed.get(uid) ?? before?.origin ?? null;
    const pending = origin === "pending" || (origin === "api" && before?.origin !== "api");
    const record: PodRecord = {
      absentSinceWatched: absent ? (before?.absentSinceWatched ?? view.watched) : null,
      deadSinceWatched: dead ? (before?.deadSinceWatched ?? view.watched) : null,
      origin: pending ? (ran.has(uid) ? "api" : "pending") : origin,
    };
    next.set(uid, before !== undefined && isSame(before, record) ? before : record);
  }
  return sameOr(previous, next);
}

const isSame = (one: PodRecord, other: PodRecord): boolean =>
  one.absentSinceWatched === other.absentSinceWatched &&
  one.deadSinceWatched === other.deadSinceWatched &&
  one.origin === other.origin;

/**
 * Pods known only from the kubelet's list, now or recently: if the next list lacks them, they distinguish a kubelet
 * that has not heard from its API server from one whose last pod was deleted.
 */
function expected(
  previous: ReadonlyMap<PodUid, PodRecord>,
  view: PodView,
  listed: ReadonlyMap<PodUid, "api" | "static">,
): readonly PodUid[] {
  const { pods, watched, limits } = view;
  if (pods.kind === "none" || pods.source !== "kubelet-api") return [];
  const fromApi = [...listed].flatMap(([uid, origin]) => (origin === "api" ? [uid] : []));
  const lately = [...previous].flatMap(([uid, { origin, deadSinceWatched: since }]) =>
    origin === "pending" && (since === null || watchedSince(watched, since) < limits.deadPodTtl)
      ? [uid]
      : [],
  );
  return [...fromApi, ...lately];
}

const podsOfKubeletApi = ({ pods }: PodView): readonly PodRecordSeen[] =>
  pods.kind === "ready" && pods.source === "kubelet-api" ? pods.pods : [];

/** The source if it is ready; `null`: no pod counts as deleted. */
function believedSource(state: PodSourceState, view: PodView): PodSource | null {
  return state.kind === "ready" && view.pods.kind === "ready" ? view.pods.source : null;
}

/**
 * Judges by records that already count this pass, so call `rememberPods` first. On fresh lists, live pods are
 * determined again.
 */
export function judgePods(records: ReadonlyMap<PodUid, PodRecord>, view: PodView): PodJudgement {
  const state = podSourceState(view, records);
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
    shouldRemoveContent: (uid) =>
      source === null ? null : shouldRemoveContent(about(uid), source),
    hasEnded: (uid) => {
      if (source === null) return false;
      const evidence = about(uid);
      return shouldRemoveContent(evidence, source) !== null || terminated(evidence, source);
    },
    foreignDead: (uid) => longDead(about(uid)),
    mayBeDeleted: (uid) => {
      const { record, seen: listed, living: lives } = about(uid);
      const doubted = source === "cri" ? record?.deadSinceWatched : record?.absentSinceWatched;
      return source !== null && !lives && listed === null && (doubted ?? null) !== null;
    },
  };
}

interface Evidence {
  readonly record: PodRecord | null;
  readonly seen: PodRecordSeen | null;
  readonly living: boolean;
  readonly view: PodView;
}

function shouldRemoveContent(
  evidence: Evidence,
  source: PodSource,
): "pod-gone" | "pod-evicted" | null {
  const { record, seen, living, view } = evidence;
  if (living) return null;
  switch (source) {
    case "cri": {
      const since = record?.deadSinceWatched ?? null;
      if (since === null || !longDead(evidence)) return null;
      // By observed time only: the runtime's timestamps jump with the node's clock and count nights when it was off.
      return watchedSince(view.watched, since) >= view.limits.deadPodTtl ? "pod-gone" : null;
    }
    case "kubelet-dir":
    case "kubelet-api":
      if (seen !== null) return seen.evicted ? "pod-evicted" : null;
      return isConfirmed(record?.absentSinceWatched, view) ? "pod-gone" : null;
    default:
      return assertNever(source);
  }
}

function terminated(evidence: Evidence, source: PodSource): boolean {
  if (evidence.living) return false;
  return source === "cri" ? longDead(evidence) : evidence.seen?.finished === true;
}

const longDead = ({ record, living, view }: Evidence): boolean =>
  !living && isConfirmed(record?.deadSinceWatched, view);

/** The present pass, whose records these are, is the second one. */
const isConfirmed = (since: Watched | null | undefined, { watched }: PodView): boolean =>
  since !== null && since !== undefined && watchedSince(watched, since) >= PASSES_APART;
