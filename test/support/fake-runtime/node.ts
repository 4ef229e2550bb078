// The fake runtime's node: images, sandboxes and containers in memory, which tests read and change as they like.
import {
  type ContainerDescription,
  type ImageDescription,
  type LayerDescription,
  type NodeDescription,
  type SandboxDescription,
} from "./describe.ts";
import { LayerStore, type StoreOptions } from "./store.ts";

export class FakeNode {
  readonly store: LayerStore;
  readonly description: NodeDescription;
  /** In the order in which they are listed; the same ID may be there twice. */
  readonly images: ImageDescription[] = [];
  readonly sandboxes = new Map<string, SandboxDescription>();
  readonly containers = new Map<string, ContainerDescription>();
  /** Removed images leave their layers, as if another namespace used them. */
  keepsContent = false;

  constructor(description: NodeDescription, store: StoreOptions = {}) {
    this.store = new LayerStore(store);
    this.description = description;
    for (const image of description.images ?? []) this.addImage(image);
    for (const sandbox of description.sandboxes ?? []) this.addSandbox(sandbox);
    for (const container of description.containers ?? []) this.addContainer(container);
  }

  addImage(image: ImageDescription): void {
    this.images.push(image);
    this.store.acquire(layersOf(image));
  }

  addSandbox(sandbox: SandboxDescription): void {
    this.sandboxes.set(sandbox.id, sandbox);
  }

  addContainer(container: ContainerDescription): void {
    this.containers.set(container.id, container);
  }

  setContainerState(id: string, state: NonNullable<ContainerDescription["state"]>): void {
    const container = this.containers.get(id);
    if (container === undefined) throw new Error(`the node has no container ${id}`);
    this.containers.set(id, { ...container, state });
  }

  /** By ID, tag or digest. */
  findImage(reference: string): ImageDescription | undefined {
    return this.images.find(
      ({ id, repoTags = [], repoDigests = [] }) =>
        id === reference || repoTags.includes(reference) || repoDigests.includes(reference),
    );
  }

  /** Every entry of the ID goes. */
  removeImage(reference: string): void {
    const image = this.findImage(reference);
    if (image === undefined) return;
    for (let at = this.images.length - 1; at >= 0; at -= 1) {
      const candidate = this.images[at];
      if (candidate?.id !== image.id) continue;
      this.images.splice(at, 1);
      if (!this.keepsContent) this.store.release(layersOf(candidate));
    }
  }

  removeContainer(id: string): void {
    this.containers.delete(id);
  }

  stopSandbox(id: string): void {
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined) return;
    this.sandboxes.set(id, { ...sandbox, state: "not-ready" });
    for (const container of this.containersOf(id))
      if ((container.state ?? "running") === "running")
        this.setContainerState(container.id, "exited");
  }

  /** Its containers go with it. */
  removeSandbox(id: string): void {
    for (const container of this.containersOf(id)) this.removeContainer(container.id);
    this.sandboxes.delete(id);
  }

  containersOf(sandboxId: string): readonly ContainerDescription[] {
    return [...this.containers.values()].filter((it) => it.sandboxId === sandboxId);
  }
}

export function layersOf(image: ImageDescription): readonly LayerDescription[] {
  return image.layers ?? [{ id: image.id, bytes: Number(image.sizeBytes ?? 0) }];
}

export function reportedBytes(image: ImageDescription): bigint {
  return BigInt(image.sizeBytes ?? layersOf(image).reduce((sum, { bytes }) => sum + bytes, 0));
}
