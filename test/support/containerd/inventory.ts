// What is on a test node at this moment, as the runtime itself tells it.
import type { ContainerState, SandboxState } from "./cri.ts";
import type { ContainerdNode } from "./node.ts";

export interface Inventory {
  readonly images: readonly InventoryImage[];
  readonly containers: readonly InventoryContainer[];
  readonly sandboxes: readonly InventorySandbox[];
}

export interface InventoryImage {
  readonly id: string;
  readonly tags: readonly string[];
  readonly digests: readonly string[];
  readonly reportedBytes: number;
  readonly pinned: boolean;
}

export interface InventoryContainer {
  readonly id: string;
  readonly name: string;
  readonly attempt: number;
  readonly sandboxId: string;
  /** What it was created from, as given. */
  readonly image: string;
  /** What the runtime resolved that to. */
  readonly imageRef: string;
  readonly imageId: string;
  readonly state: ContainerState;
}

export interface InventorySandbox {
  readonly id: string;
  readonly name: string;
  readonly uid: string;
  readonly attempt: number;
  readonly state: SandboxState;
}

/** Each list in the order of its IDs, so that two readings of an unchanged node are equal. */
export async function takeInventory(node: ContainerdNode): Promise<Inventory> {
  const [{ images }, { containers }, { items }] = await Promise.all([
    node.cri.call("ListImages", {}),
    node.cri.call("ListContainers", {}),
    node.cri.call("ListPodSandbox", {}),
  ]);
  return {
    images: byId(
      images.map((image) => ({
        id: image.id,
        tags: image.repo_tags.toSorted(),
        digests: image.repo_digests.toSorted(),
        reportedBytes: Number(image.size),
        pinned: image.pinned,
      })),
    ),
    containers: byId(
      containers.map((container) => ({
        id: container.id,
        name: container.metadata.name,
        attempt: container.metadata.attempt,
        sandboxId: container.pod_sandbox_id,
        image: container.image.image,
        imageRef: container.image_ref,
        imageId: container.image_id,
        state: container.state,
      })),
    ),
    sandboxes: byId(
      items.map(({ id, metadata, state }) => ({
        id,
        name: metadata.name,
        uid: metadata.uid,
        attempt: metadata.attempt,
        state,
      })),
    ),
  };
}

/** Every tag on the node, sorted: the shortest way to say which images are there. */
export async function imageTags(node: ContainerdNode): Promise<readonly string[]> {
  return (await takeInventory(node)).images.flatMap(({ tags }) => tags).toSorted();
}

function byId<T extends { readonly id: string }>(items: readonly T[]): readonly T[] {
  return items.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
