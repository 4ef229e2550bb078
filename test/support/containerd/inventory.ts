// What is on a test node at this moment, as the runtime itself tells it.
import type { Answer } from "./cri.ts";
import type { ContainerdNode } from "./node.ts";

export interface Inventory {
  readonly images: readonly {
    readonly id: string;
    readonly tags: readonly string[];
    readonly digests: readonly string[];
  }[];
  readonly containers: readonly {
    readonly id: string;
    readonly name: string;
    readonly attempt: number;
    readonly sandboxId: string;
    readonly state: string;
  }[];
  readonly sandboxes: readonly {
    readonly id: string;
    readonly name: string;
    readonly state: string;
  }[];
}

/** Each list in the order of its IDs, so that two readings of an unchanged node are equal. */
export async function takeInventory({ cri }: ContainerdNode): Promise<Inventory> {
  const [{ images }, { containers }, { items }] = await Promise.all(
    ["ListImages", "ListContainers", "ListPodSandbox"].map((method) => cri.call(method, {})),
  );
  return {
    images: byId(images, ({ id, repo_tags: tags, repo_digests: digests }) => ({
      id,
      tags: tags.toSorted(),
      digests: digests.toSorted(),
    })),
    containers: byId(containers, ({ id, metadata, pod_sandbox_id: sandboxId, state }) => ({
      id,
      ...metadata,
      sandboxId,
      state,
    })),
    sandboxes: byId(items, ({ id, metadata, state }) => ({ id, name: metadata.name, state })),
  };
}

/** Every tag on the node, sorted: the shortest way to say which images are there. */
export async function imageTags(node: ContainerdNode): Promise<readonly string[]> {
  return (await takeInventory(node)).images.flatMap(({ tags }) => tags).toSorted();
}

const byId = <T extends { readonly id: string }>(
  items: readonly Answer[],
  as: (item: Answer) => T,
): readonly T[] => items.map(as).toSorted((a, b) => (a.id < b.id ? -1 : 1));
