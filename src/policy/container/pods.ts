/** Which pod a sandbox or container belongs to, and which pods are deleted. */

import { type PodUid, podUid } from "../../model/ids.ts";
import type { PodRecord } from "../../model/ledger.ts";
import type { LedgerLimits } from "../../model/limits.ts";
import type { PodSourceState } from "../../model/plan.ts";
import {
  type Container,
  logFactsOf,
  type LogReading,
  type PodReading,
  type Sandbox,
  type Snapshot,
} from "../../model/snapshot.ts";
import { seconds, type TotalUptime, uptimeSince } from "../../model/time.ts";

export interface Owner {
  /** The pod's UID, or a substitute if Kubernetes created none. Empty only for the kubelet's rules. */
  readonly uid: PodUid;
  /** Kubernetes did not create it, or its labels contradict each other: no pod source knows it. */
  readonly foreign: boolean;
}

/** The runtime's lists. */
export type Listed = Pick<Snapshot, "containers" | "sandboxes">;

export interface Ownership {
  readonly ofSandbox: (sandbox: Sandbox) => Owner;
  readonly ofContainer: (container: Container) => Owner;
}

/**
 * A sandbox belongs to the pod of its label, else of its `metadata.uid`; a container to its sandbox's pod, or, while its
 * sandbox is not listed, to the pod of the container's label.
 */
export function ownership({ sandboxes }: Pick<Listed, "sandboxes">): Ownership {
  const byId = new Map(sandboxes.map((sandbox) => [sandbox.id, sandbox]));
  return {
    ofSandbox: sandboxOwner,
    ofContainer: (container) => containerOwner(container, byId.get(container.sandboxId)),
  };
}

/** Owners of everything that the runtime lists, foreign ones last. A pod with a foreign container is in both groups. */
export function listedOwners(listed: Listed): readonly Owner[] {
  const owners = ownership(listed);
  const [own, foreign] = [new Map<PodUid, Owner>(), new Map<PodUid, Owner>()];
  const add = (owner: Owner): unknown => (owner.foreign ? foreign : own).set(owner.uid, owner);
  for (const sandbox of listed.sandboxes) add(owners.ofSandbox(sandbox));
  for (const container of listed.containers) add(owners.ofContainer(container));
  return [...own.values(), ...foreign.values()];
}

function sandboxOwner({ id, podUid: uid, metadataUid }: Sandbox): Owner {
  if (uid !== "") return { uid, foreign: false };
  return { uid: metadataUid === "" ? podUid(`sandbox:${id}`) : metadataUid, foreign: true };
}

function containerOwner(
  { podUid: uid, sandboxId }: Container,
  sandbox: Sandbox | undefined,
): Owner {
  if (sandbox !== undefined) {
    const owner = sandboxOwner(sandbox);
    // Kubernetes gives both the same label. A container with another one was put into the pod by something else.
    return uid === sandbox.podUid ? owner : { uid: owner.uid, foreign: true };
  }
  return uid === ""
    ? { uid: podUid(`sandbox:${sandboxId}`), foreign: true }
    : { uid, foreign: false };
}

/** Pods that are alive, whatever a source lists: they have a ready sandbox or a running container. Without a UID: "". */
export function livingPods(listed: Listed): ReadonlySet<PodUid> {
  const owners = ownership(listed);
  const running = listed.containers.filter(({ state }) => state === "running");
  const populated = new Set(running.map(({ sandboxId }) => sandboxId));
  const living = listed.sandboxes.filter(({ id, state }) => state === "ready" || populated.has(id));
  return new Set([
    ...living.flatMap((one) => [owners.ofSandbox(one).uid, one.metadataUid]),
    ...running.flatMap((one) => [owners.ofContainer(one).uid, one.podUid]),
  ]);
}

/** Live pods with labels of Kubernetes, which its own sources must list. */
export const livingKubernetesPods = ({ containers, sandboxes }: Listed): ReadonlySet<PodUid> =>
  new Set(
    [
      ...sandboxes.filter(({ state }) => state === "ready"),
      ...containers.filter(({ state }) => state === "running"),
    ].flatMap(({ podUid: uid }) => (uid === "" ? [] : [uid])),
  );

/** A pod is absent, or dead, once it was so in two passes this far apart, and in each one between them. */
export const PASSES_APART = seconds(10);

/** What pods are judged by. A `Snapshot` has everything except the clock and the limits. */
export interface PodView extends Listed {
  readonly pods: PodReading;
  readonly logs: LogReading | null;
  readonly totalUptime: TotalUptime;
  readonly limits: LedgerLimits;
}

export interface PodJudgement {
  readonly state: PodSourceState;
  /** Its containers, sandboxes and logs are removed: the kubelet's "content should be removed". */
  readonly isDeleted: (uid: PodUid) => boolean;
  /** It is terminated or deleted, so reclaim removes its containers and sandboxes. */
  readonly hasEnded: (uid: PodUid) => boolean;
  /** Foreign and dead in two passes in a row; no source knows it. */
  readonly foreignDead: (uid: PodUid) => boolean;
  /** Nothing knows it any more, but it does not count as deleted yet. */
  readonly mayBeDeleted: (uid: PodUid) => boolean;
}

/** A source that knows none of the living pods belongs to another node, or to a kubelet that has left its directory. */
function podSourceState(view: PodView): PodSourceState {
  const { pods: reading } = view;
  if (reading.kind === "none") return { kind: "none", why: reading.why };
  const { source } = reading;
  if (reading.kind === "failed") return { kind: "not-ready", source, why: reading.message };
  const living = livingKubernetesPods(view);
  if (source === "cri" || living.size === 0 || reading.pods.some((uid) => living.has(uid)))
    return { kind: "ready", source };
  const why = `it lists none of the pods that are alive on this node (${living.size})`;
  return { kind: "not-ready", source, why };
}

/** Pods of the source; the runtime has only those that it lists. */
const podsIn = (reading: PodReading): ReadonlySet<PodUid> =>
  new Set(reading.kind === "ready" ? reading.pods : []);

/** The next records of pods: one for each pod of the runtime or the log directory. */
export function rememberPods(
  previous: ReadonlyMap<PodUid, PodRecord>,
  view: PodView,
  listed: readonly Owner[] = listedOwners(view),
): ReadonlyMap<PodUid, PodRecord> {
  const { totalUptime } = view;
  const state = podSourceState(view);
  // A pass whose source is not ready resets every absence.
  const listsPods = state.kind === "ready" && state.source !== "cri";
  const inSource = podsIn(view.pods);
  const living = livingPods(view);
  const logs = (logFactsOf(view.logs)?.podLogs ?? []).map(({ uid }) => uid);
  const next = new Map<PodUid, PodRecord>();
  for (const uid of new Set([...listed.map((owner) => owner.uid), ...logs])) {
    const before = previous.get(uid);
    const isDead = !living.has(uid);
    const isAbsent = isDead && listsPods && !inSource.has(uid);
    next.set(uid, {
      absentSinceUptime: isAbsent ? (before?.absentSinceUptime ?? totalUptime) : null,
      deadSinceUptime: isDead ? (before?.deadSinceUptime ?? totalUptime) : null,
    });
  }
  return next;
}

/**
 * Judges by records that already count this pass, so call `rememberPods` first. On fresh lists, live pods are
 * determined again.
 */
export function judgePods(records: ReadonlyMap<PodUid, PodRecord>, view: PodView): PodJudgement {
  const { totalUptime } = view;
  const state = podSourceState(view);
  const living = livingPods(view);
  const isConfirmed = (uid: PodUid, since: TotalUptime | null): boolean =>
    !living.has(uid) && since !== null && uptimeSince(totalUptime, since) >= PASSES_APART;
  const deadSince = (uid: PodUid): TotalUptime | null => records.get(uid)?.deadSinceUptime ?? null;
  const isDead = (uid: PodUid): boolean => isConfirmed(uid, deadSince(uid));
  const isReady = state.kind === "ready";
  const isCri = isReady && state.source === "cri";
  const inSource = podsIn(view.pods);
  const absentSince = (uid: PodUid): TotalUptime | null =>
    inSource.has(uid) ? null : (records.get(uid)?.absentSinceUptime ?? null);
  const isDeleted = (uid: PodUid): boolean => {
    if (!isCri) return isReady && isConfirmed(uid, absentSince(uid));
    // Not by the runtime's timestamps, which jump with the node's clock and count nights when it was off.
    const isOld = uptimeSince(totalUptime, deadSince(uid) ?? totalUptime) >= view.limits.deadPodTtl;
    return isOld && isDead(uid);
  };
  return {
    state,
    isDeleted,
    hasEnded: isCri ? isDead : isDeleted,
    foreignDead: isDead,
    mayBeDeleted: (uid) =>
      isReady && !living.has(uid) && (isCri ? deadSince(uid) : absentSince(uid)) !== null,
  };
}
