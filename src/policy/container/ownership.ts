/** Finds the pod of a sandbox or container, and whether Kubernetes created it. */
import { type PodUid, podUid } from "../../model/ids.ts";
import type { Compat } from "../../model/limits.ts";
import type { Container, Sandbox, Snapshot } from "../../model/snapshot.ts";

export interface Owner {
  /** The pod's UID, or a substitute if Kubernetes created none. Empty only for `compat: kubelet`. */
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
 * By label, else by the sandbox's own `metadata.uid`. A container belongs to its sandbox's pod, or, if its sandbox is
 * not listed, to that of its own label. The kubelet uses `metadata.uid` for sandboxes and the label for containers.
 */
export function ownership({ sandboxes }: Pick<Listed, "sandboxes">, compat: Compat): Ownership {
  if (compat === "kubelet") {
    return {
      ofSandbox: (sandbox) => ({ uid: sandbox.metadataUid, foreign: false }),
      ofContainer: (container) => ({ uid: container.podUid, foreign: false }),
    };
  }
  const byId = new Map(sandboxes.map((sandbox) => [sandbox.id, sandbox]));
  return {
    ofSandbox: sandboxOwner,
    ofContainer: (container) => containerOwner(container, byId.get(container.sandboxId)),
  };
}

/** Owners of everything that the runtime lists, foreign ones last: each once, or twice where some of it counts as foreign and some does not. */
export function listedOwners(listed: Listed, compat: Compat): readonly Owner[] {
  const owners = ownership(listed, compat);
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

/** Pods that are alive, whatever a source lists: they have a ready sandbox or a running container. */
export function livingPods(listed: Listed, compat: Compat): ReadonlySet<PodUid> {
  const owners = ownership(listed, compat);
  const running = listed.containers.filter(({ state }) => state === "running");
  const populated = new Set(running.map(({ sandboxId }) => sandboxId));
  const living = listed.sandboxes.filter(({ id, state }) => state === "ready" || populated.has(id));
  const labels = [
    ...living.flatMap((one) => [one.podUid, one.metadataUid]),
    ...running.map((one) => one.podUid),
  ];
  return new Set([
    ...living.map((one) => owners.ofSandbox(one).uid),
    ...running.map((one) => owners.ofContainer(one).uid),
    ...labels.filter((uid) => uid !== ""),
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
