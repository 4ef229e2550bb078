/** Finds the pod of a sandbox or container, and whether Kubernetes created it. */
import { type PodUid, podUid } from "../../model/ids.ts";
import type { Container, Sandbox, Snapshot } from "../../model/snapshot.ts";

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

/** Owners of everything that the runtime lists, foreign ones last: each once, or twice where some of it counts as foreign and some does not. */
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
