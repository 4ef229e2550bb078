/** A simulated node: images of layers that they may share, containers, and one filesystem. */

import { type ContainerId, containerId, type ImageId, podUid, sandboxId } from "../model/ids.ts";
import type { ImageOrigin } from "../model/ledger.ts";
import type { Container, Filesystem, Image, KeepRules, Snapshot } from "../model/snapshot.ts";
import { type Duration, hours, type Instant, instantFromMs, plus, since } from "../model/time.ts";
import type { ReplayedImage } from "./replayed-trace.ts";

/** The only filesystem: of images, containers and the node's own files. */
export const DEVICE = "image filesystem";

const RUNTIME: Snapshot["runtime"] = {
  endpoint: "",
  imageEndpoint: "",
  name: "simulated",
  version: "",
  apiVersion: "v1",
  sandboxImages: [],
  instance: "",
};

export interface NodeOptions {
  readonly capacityBytes: bigint;
  /** What is used by anything but images. */
  readonly otherBytes: bigint;
  readonly keep: KeepRules;
  /** Whether the runtime tells the layers of images. */
  readonly readsLayers: boolean;
  readonly startedAt: Instant;
}

export class SimulatedNode {
  /** Of all images on the node, each layer once. */
  imageBytes = 0n;
  /** What a pull has written that did not fit. */
  partialBytes = 0n;
  readonly #options: NodeOptions;
  readonly #images = new Map<ImageId, Image>();
  readonly #contents = new Map<ImageId, ReplayedImage>();
  /** By name, which a pulled image takes from the one that had it. */
  readonly #named = new Map<string, ImageId>();
  /** How many images have a layer. */
  readonly #sharers = new Map<string, number>();
  readonly #containers = new Map<ContainerId, Container>();
  /** Listed until somebody has seen that they ended. */
  readonly #ended = new Set<ContainerId>();
  #listedImages: readonly Image[] | null = null;
  #listedContainers: Pick<Snapshot, "containers" | "imageVolumes"> | null = null;

  constructor(options: NodeOptions) {
    this.#options = options;
  }

  has(id: ImageId): boolean {
    return this.#images.has(id);
  }

  get images(): readonly Image[] {
    return (this.#listedImages ??= [...this.#images.values()]);
  }

  get usedBytes(): bigint {
    return this.#options.otherBytes + this.imageBytes + this.partialBytes;
  }

  get availableBytes(): bigint {
    const free = this.#options.capacityBytes - this.usedBytes;
    return free < 0n ? 0n : free;
  }

  /** The layers of the images whose layers the agent does not know yet. */
  unreadOrigins(known: ReadonlyMap<ImageId, unknown>): ReadonlyMap<ImageId, ImageOrigin> {
    if (!this.#options.readsLayers) return new Map();
    return new Map(
      Array.from(this.#contents)
        .filter(([id]) => !known.has(id))
        .map(([id, { origin }]) => [id, origin]),
    );
  }

  /** What a pull brings: layers that are there already are not fetched. */
  missingBytes({ content }: ReplayedImage): bigint {
    return content.reduce(
      (sum, { id, sizeBytes }) => (this.#sharers.has(id) ? sum : sum + sizeBytes),
      0n,
    );
  }

  bring(replayed: ReplayedImage): void {
    this.imageBytes += this.missingBytes(replayed);
    for (const { id } of replayed.content) this.#sharers.set(id, (this.#sharers.get(id) ?? 0) + 1);
    for (const name of replayed.image.repoTags) {
      const before = this.#images.get(this.#named.get(name) ?? replayed.image.id);
      if (before !== undefined && before.id !== replayed.image.id)
        this.#images.set(before.id, {
          ...before,
          repoTags: before.repoTags.filter((one) => one !== name),
        });
      this.#named.set(name, replayed.image.id);
    }
    this.#images.set(replayed.image.id, replayed.image);
    this.#contents.set(replayed.image.id, replayed);
    this.#listedImages = null;
  }

  /** Returns what it freed. */
  remove(id: ImageId): bigint {
    const before = this.imageBytes;
    for (const layer of this.#contents.get(id)?.content ?? []) {
      const left = (this.#sharers.get(layer.id) ?? 1) - 1;
      if (left > 0) this.#sharers.set(layer.id, left);
      else {
        this.#sharers.delete(layer.id);
        this.imageBytes -= layer.sizeBytes;
      }
    }
    this.#images.delete(id);
    this.#contents.delete(id);
    this.#listedImages = null;
    return before - this.imageBytes;
  }

  begin(name: string, image: ImageId, at: Instant): void {
    const id = containerId(name);
    this.#containers.set(id, {
      id,
      sandboxId: sandboxId(name),
      name: "",
      attempt: 0,
      podUid: podUid(name),
      podName: "",
      podNamespace: "",
      imageName: "",
      imageRef: image,
      imageId: image,
      state: "running",
      createdAt: at,
    });
    this.#listedContainers = null;
  }

  end(name: string): void {
    const id = containerId(name);
    const container = this.#containers.get(id);
    if (container === undefined) return;
    this.#containers.set(id, { ...container, state: "exited" });
    this.#ended.add(id);
    this.#listedContainers = null;
  }

  /** Takes away the containers that have ended, as the collection of containers does; returns them. */
  forgetEnded(): readonly ContainerId[] {
    const ended = [...this.#ended];
    for (const id of ended) this.#containers.delete(id);
    this.#ended.clear();
    if (ended.length > 0) this.#listedContainers = null;
    return ended;
  }

  get containers(): number {
    return this.#containers.size;
  }

  filesystem(): Filesystem {
    return {
      roles: ["imagefs", "containerfs", "nodefs"],
      path: DEVICE,
      mountpoint: DEVICE,
      device: DEVICE,
      capacityBytes: this.#options.capacityBytes,
      availableBytes: this.availableBytes,
      inodes: 0n,
      inodesFree: 0n,
      imageUsedBytes: this.imageBytes,
      containerUsedBytes: null,
    };
  }

  snapshot(nowMs: number): Snapshot {
    const wall = instantFromMs(nowMs);
    this.#listedContainers ??= {
      containers: [...this.#containers.values()],
      imageVolumes: new Map([...this.#containers.keys()].map((id) => [id, NO_VOLUMES])),
    };
    return {
      clocks: { wall, uptime: this.uptime(nowMs), bootId: "simulated" },
      observedAt: wall,
      runtime: RUNTIME,
      images: this.images,
      ...this.#listedContainers,
      sandboxes: NOTHING,
      containerEnds: NO_ENTRIES,
      resolutions: NO_ENTRIES,
      sandboxImages: NO_ENTRIES,
      filesystems: [this.filesystem()],
      pods: NO_PODS,
      pulls: NO_PULLS,
      creations: null,
      logs: null,
      keep: this.#options.keep,
    };
  }

  /** It was booted long before the trace begins. */
  uptime(nowMs: number): Duration {
    return since(plus(instantFromMs(nowMs), hours(24)), this.#options.startedAt);
  }
}

const NOTHING: readonly never[] = [];
const NO_ENTRIES: ReadonlyMap<never, never> = new Map<never, never>();
const NO_VOLUMES = { kind: "known", references: NOTHING } as const;
const NO_PODS: Snapshot["pods"] = { kind: "none", why: "a simulated node has no pods" };
const NO_PULLS: Snapshot["pulls"] = {
  kind: "failed",
  message: "a trace does not say who pulled an image",
  intents: null,
};
