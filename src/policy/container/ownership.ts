/** Finds the pod of a sandbox or container, and whether Kubernetes created it. */
import { type PodUid, podUid, type SandboxId } from "../../model/ids.ts";
import type { Compat } from "../../model/limits.ts";
import type { Container, Sandbox } from "../../model/snapshot.ts";
import { byParts, once } from "../by-object.ts";

export interface Owner {
  /** The pod's UID, or a substitute if Kubernetes created none. Empty only for `compat: kubelet`. */
  readonly uid: PodUid;
  /** Kubernetes did not create it, or its labels contradict each other: no pod source knows it. */
  readonly foreign: boolean;
}

/** The runtime's lists, for example of a `Snapshot`. */
export interface Listed {
  readonly containers: readonly Container[];
  readonly sandboxes: readonly Sandbox[];
}

export interface Ownership {
  readonly ofSandbox: (sandbox: Sandbox) => Owner;
  readonly ofContainer: (container: Container) => Owner;
}

/**
 * By label, else by the sandbox's own `metadata.uid`. A container belongs to its sandbox's pod, or, if its sandbox is
 * not listed, to that of its own label. The kubelet uses `metadata.uid` for sandboxes and the label for containers.
 */
export function ownership(listed: Listed, compat: Compat): Ownership {
  if (compat === "kubelet") {
    return {
      ofSandbox: (sandbox) => ({ uid: sandbox.metadataUid, foreign: false }),
      ofContainer: (container) => ({ uid: container.podUid, foreign: false }),
    };
  }
  const sandboxes = once(() => sandboxesById(listed));
  return {
    ofSandbox: sandboxOwner,
    ofContainer: (container) => containerOwner(container, sandboxes().get(container.sandboxId)),
  };
}

function sandboxesById({ sandboxes }: Pick<Listed, "sandboxes">): ReadonlyMap<SandboxId, Sandbox> {
  const byId = new Map<SandboxId, Sandbox>();
  for (const sandbox of sandboxes) byId.set(sandbox.id, sandbox);
  return byId;
}

/** Owners of everything that the runtime lists, foreign ones last: each once, or twice where some of it counts as foreign and some does not. */
export const listedOwners = ({ containers, sandboxes }: Listed, compat: Compat): readonly Owner[] =>
  distinctOwners({ containers, sandboxes, compat });

/** Of the same lists it is made once, as is what lives: both are asked for several times in each pass. */
const distinctOwners = byParts(
  ({ compat, ...listed }: Listed & { readonly compat: Compat }): readonly Owner[] => {
    const owners = ownership(listed, compat);
    const own = new Map<PodUid, Owner>();
    const foreign = new Map<PodUid, Owner>();
    const add = (owner: Owner): unknown => (owner.foreign ? foreign : own).set(owner.uid, owner);
    for (const sandbox of listed.sandboxes) add(owners.ofSandbox(sandbox));
    for (const container of listed.containers) add(owners.ofContainer(container));
    return [...own.values(), ...foreign.values()];
  },
);

function sandboxOwner(sandbox: Sandbox): Owner {
  if (sandbox.podUid !== "") return { uid: sandbox.podUid, foreign: false };
  return { uid: foreignUid(sandbox.metadataUid, sandbox.id), foreign: true };
}

function containerOwner(container: Container, sandbox: Sandbox | undefined): Owner {
  if (sandbox === undefined) {
    if (container.podUid !== "") return { uid: container.podUid, foreign: false };
    return { uid: foreignUid(podUid(""), container.sandboxId), foreign: true };
  }
  const owner = sandboxOwner(sandbox);
  // Kubernetes gives both the same label. A container with another one was put into the pod by something else.
  const labelled = container.podUid === sandbox.podUid;
  return labelled ? owner : { uid: owner.uid, foreign: true };
}

function foreignUid(metadataUid: PodUid, sandboxId: SandboxId): PodUid {
  return metadataUid === "" ? podUid(`sandbox:${sandboxId}`) : metadataUid;
}

/** Pods that are alive, whatever a source lists: they have a ready sandbox or a running container. */
export const livingPods = (
  { containers, sandboxes }: Listed,
  compat: Compat,
): ReadonlySet<PodUid> => livingOf({ containers, sandboxes, compat });

const livingOf = byParts(({ compat, ...listed }: Listed & { readonly compat: Compat }) => {
  const owners = ownership(listed, compat);
  const sandboxes = sandboxesById(listed);
  const living = new Set<PodUid>();
  const addSandbox = (sandbox: Sandbox): void => {
    living.add(owners.ofSandbox(sandbox).uid);
    if (sandbox.podUid !== "") living.add(sandbox.podUid);
    if (sandbox.metadataUid !== "") living.add(sandbox.metadataUid);
  };
  for (const sandbox of listed.sandboxes) if (sandbox.state === "ready") addSandbox(sandbox);
  for (const container of listed.containers) {
    if (container.state !== "running") continue;
    living.add(owners.ofContainer(container).uid);
    if (container.podUid !== "") living.add(container.podUid);
    const sandbox = sandboxes.get(container.sandboxId);
    if (sandbox !== undefined) addSandbox(sandbox);
  }
  return living;
});

/** Live pods with labels of Kubernetes, which its own sources must list. */
export function livingKubernetesPods(listed: Listed): ReadonlySet<PodUid> {
  const living = new Set<PodUid>();
  for (const sandbox of listed.sandboxes) {
    if (sandbox.state === "ready" && sandbox.podUid !== "") living.add(sandbox.podUid);
  }
  for (const container of listed.containers) {
    if (container.state === "running" && container.podUid !== "") living.add(container.podUid);
  }
  return living;
}
