/**
 * Decides whether the pod source is ready: one that lacks live pods belongs to another node, or has not reached its API
 * server.
 */
import type { PodUid } from "../../model/ids.ts";
import type { PodRecord } from "../../model/ledger.ts";
import type { MemoryLimits } from "../../model/limits.ts";
import type { PodSourceState } from "../../model/plan.ts";
import { logFactsOf, type LogReading, type PodReading } from "../../model/snapshot.ts";
import { type Instant, minutes, type ObservedTime, since, watchedSince } from "../../model/time.ts";
import type { Facts } from "../facts.ts";
import { type Listed, listedOwners, livingKubernetesPods } from "./ownership.ts";

/** What pods are judged by. A `Snapshot` has everything except the clock and the limits. */
export interface PodView extends Listed {
  readonly pods: PodReading;
  readonly logs: LogReading | null;
  readonly observedAt: Instant;
  /** When the lists were requested, if that was after the source was read: during a pass. */
  readonly listedAt?: Instant;
  readonly watched: ObservedTime;
  readonly limits: MemoryLimits;
}

type PodRecords = ReadonlyMap<PodUid, PodRecord>;

/** A younger sandbox may be newer than the source's answer. */
const UNKNOWN_AGE = minutes(1);

export function podSourceState(
  view: PodView,
  records: PodRecords,
  forImages = false,
): PodSourceState {
  const reading = view.pods;
  if (reading.kind === "none") return { kind: "none", why: reading.why };
  const { source } = reading;
  if (reading.kind === "failed") return { kind: "not-ready", source, why: reading.message };
  if (source === "cri") return { kind: "ready", source };
  const doubt = doubtOf({ ...withoutLater(view), pods: reading, records, forImages });
  return doubt === null ? { kind: "ready", source } : { kind: "not-ready", source, ...doubt };
}

/** What was created after the source was read cannot be in its answer; a time in the future came from another clock. */
function withoutLater(view: PodView): PodView {
  const { observedAt, listedAt } = view;
  if (listedAt === undefined) return view;
  return listedWhere(
    view,
    ({ createdAt }) => createdAt <= observedAt || createdAt > listedAt + UNKNOWN_AGE,
  );
}

const listedWhere = <View extends Listed>(
  view: View,
  test: (one: { readonly createdAt: Instant }) => boolean,
): View => ({
  ...view,
  sandboxes: view.sandboxes.filter(test),
  containers: view.containers.filter(test),
});

export const podView = ({ snapshot, ledger, limits }: Facts): PodView => ({
  ...snapshot,
  watched: ledger.watched,
  limits: limits.memory,
});

/**
 * The same for images, which the kubelet's listed pods protect; `null`: no source lists them. Log directories do not
 * matter for images.
 */
export const podSourceForImages = (view: PodView, records: PodRecords): PodSourceState | null =>
  view.pods.kind !== "none" && view.pods.source === "kubelet-api"
    ? podSourceState(view, records, true)
    : null;

interface Doubted extends PodView {
  readonly pods: Extract<PodReading, { readonly kind: "ready" }>;
  readonly records: PodRecords;
  readonly forImages: boolean;
}

type NotReady = Extract<PodSourceState, { kind: "not-ready" }>;

function doubtOf(view: Doubted): Pick<NotReady, "why" | "passes"> | null {
  const missing = lacksLivingPods(view);
  if (missing !== null) return { why: missing };
  const why = lacksPodsOfTheApi(view) ?? lacksAllThatLeftSomething(view);
  return why === null ? null : { why, passes: true };
}

/** An empty root directory, another node's, or a kubelet that has not heard from its API server lacks pods that run here. */
function lacksLivingPods(view: Doubted): string | null {
  const known = answeredUids(view);
  const living = livingKubernetesPods(view);
  if (living.size > 0 && !living.keys().some((uid) => known.has(uid)))
    return `it lists none of the pods that are alive on this node (${living.size})`;
  const settled = livingKubernetesPods(listedWhere(view, (one) => !isNew(view, one)));
  const missing = [...settled].filter((uid) => !known.has(uid));
  return missing.length === 0
    ? null
    : `it lacks ${missing.length} of the ${living.size} pods that are alive on this node (${some(missing)})`;
}

/** A creation time further in the future came from another clock, and says nothing about age. */
function isNew({ observedAt }: PodView, { createdAt }: { readonly createdAt: Instant }): boolean {
  const age = since(observedAt, createdAt);
  return age < UNKNOWN_AGE && age + UNKNOWN_AGE > 0n;
}

/** Pods in the source's own answer, without those that only a directory knows. */
const answeredUids = ({ pods: { source, pods } }: Doubted): ReadonlySet<PodUid> =>
  new Set(
    pods.flatMap(({ uid, origin }) =>
      source === "kubelet-api" && origin === "directory" ? [] : [uid],
    ),
  );

/**
 * Until its API server has answered once, a kubelet lists only static pods, without an error. So a list without any pod
 * of the API server is incomplete while the node has pods that are not static.
 */
function lacksPodsOfTheApi(view: Doubted): string | null {
  const { source, pods } = view.pods;
  const heard =
    source === "kubelet-api"
      ? pods.some(({ origin }) => origin === "api")
      : pods.some(({ uid }) => !isStatic(view, uid));
  if (heard) return null;
  const others = new Set([...directories(view), ...rememberedPods(view)]);
  const missing = [...others].filter((uid) => !isStatic(view, uid));
  return missing.length === 0
    ? null
    : `it lists no pod of the API server, but this node has some (${some(missing)}): the kubelet may not have reached its API server yet`;
}

/** The kubelet removes a pod's directory only once it knows that the pod is deleted. */
const directories = ({ pods: { pods } }: Doubted): readonly PodUid[] =>
  pods.flatMap(({ uid, origin }) => (origin === "directory" ? [uid] : []));

/**
 * Pods that the runtime has, or that the kubelet listed before it ran them. A pod without a directory stops counting
 * once it has been dead for long enough, so that a sandbox that cannot be removed does not block everything forever.
 */
function rememberedPods(view: Doubted): readonly PodUid[] {
  const pending = [...view.records].filter(([, { origin }]) => origin === "pending");
  return recent(view, [...kubernetesPods(view), ...pending.map(([uid]) => uid)]);
}

const recent = (view: Doubted, uids: readonly PodUid[]): readonly PodUid[] =>
  uids.filter((uid) => {
    const deadSince = view.records.get(uid)?.deadSinceWatched ?? null;
    return deadSince === null || watchedSince(view.watched, deadSince) < view.limits.deadPodTtl;
  });

/** According to the kubelet, else by the UID that it generates for a manifest without one: a hash without dashes. */
function isStatic({ pods: { pods }, records }: Doubted, uid: PodUid): boolean {
  const origin =
    pods.find((pod) => pod.uid === uid && pod.origin !== "directory")?.origin ??
    records.get(uid)?.origin ??
    null;
  if (origin === null || origin === "listed") return /^[0-9a-f]{32}$/.test(uid);
  return origin === "static";
}

/**
 * If no live pod can prove the source right, one dead pod or log directory that it knows is enough; if it knows none of
 * those either, its answer is not enough to remove them. Images do not wait forever: for them, a pod without a
 * directory that has been dead for long does not count.
 */
function lacksAllThatLeftSomething(view: Doubted): string | null {
  if (livingKubernetesPods(view).size > 0) return null;
  const answered = answeredUids(view);
  const left = new Set(
    view.forImages
      ? [...recent(view, kubernetesPods(view)), ...directories(view)]
      : [
          ...kubernetesPods(view),
          ...(logFactsOf(view.logs)?.podLogs ?? []).map((directory) => directory.uid),
        ],
  );
  return left.size === 0 || left.keys().some((uid) => answered.has(uid))
    ? null
    : `no pod is alive on this node, and it lists none of the pods that left containers or logs here (${left.size})`;
}

const kubernetesPods = (view: Listed): readonly PodUid[] =>
  listedOwners(view, "none").flatMap(({ uid, foreign }) => (foreign ? [] : [uid]));

const SHOWN_MAX = 3;

function some(uids: readonly PodUid[]): string {
  const shown = uids.toSorted().slice(0, SHOWN_MAX).join(", ");
  return uids.length > SHOWN_MAX ? `${shown} and ${uids.length - SHOWN_MAX} more` : shown;
}
