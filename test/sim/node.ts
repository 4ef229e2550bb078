// A simulated node: the fake engine's world, with images made of layers that they share and disks on which others write too.

import { imageId } from "../../src/model/ids.ts";
import type { ImageId, PodUid } from "../../src/model/ids.ts";
import type {
  Container,
  Filesystem,
  FilesystemRole,
  Image,
  Sandbox,
} from "../../src/model/snapshot.ts";
import { type Instant, instant } from "../../src/model/time.ts";
import { aContainer, anImage, aSandbox, idOf, MIB } from "../support/build/values.ts";
import { type FakeEngine, fakeEngine, type FakeWorld } from "../support/fake-engine.ts";
import type { SimClock } from "./clock.ts";

export interface Layer {
  readonly id: string;
  readonly bytes: bigint;
  readonly inodes: bigint;
}

/** An image as a registry has it. */
export interface Release {
  readonly name: string;
  readonly layers: readonly Layer[];
  /** Reported bytes for each real one: runtimes report compressed sizes. */
  readonly reported: number;
  readonly pinned: boolean;
}

export interface SimImage {
  readonly image: Image;
  readonly release: Release;
  /** When it came to the node, by the monotonic clock. */
  readonly cameNs: bigint;
}

export interface SimDisk {
  readonly device: string;
  readonly path: string;
  readonly roles: readonly FilesystemRole[];
  readonly capacity: bigint;
  readonly inodes: bigint;
  /** What others wrote: everything that is no layer. */
  others: bigint;
  othersInodes: bigint;
}

export interface NodeOptions {
  readonly clock: SimClock;
  readonly disks: readonly SimDisk[];
  /** Space comes free so long after the last image of a layer went. */
  readonly lateMs: number;
}

/** Wall time when the simulation begins. */
const START = 1_767_225_600_000_000_000n;

export class SimNode {
  readonly clock: SimClock;
  readonly disks: readonly SimDisk[];
  readonly fake: FakeEngine = fakeEngine();
  readonly images = new Map<ImageId, SimImage>();
  /** Pods that the kubelet has a directory for. */
  readonly pods = new Set<PodUid>();
  /** Images that went at any time; they may have come back since. */
  readonly removedOnce = new Set<ImageId>();
  /** When images came that went after the deadline of their removal, since the last list: one that is back never seemed to go. */
  readonly wentUnseen = new Map<ImageId, bigint>();
  /** Which image a pod is about to run, by its sandbox. */
  readonly wanted = new Map<string, ImageId>();
  lateMs: number;
  /** By how much the wall clock is wrong. */
  wallOffset = 0n;
  #bootedNs: bigint;
  readonly #users = new Map<string, number>();
  readonly #layers = new Map<string, Layer>();

  constructor(options: NodeOptions) {
    this.clock = options.clock;
    this.disks = options.disks;
    this.lateMs = options.lateMs;
    this.#bootedNs = this.clock.monotonicNs() - 3_600_000_000_000n;
  }

  get #world(): FakeWorld {
    return this.fake.world;
  }

  wall(): Instant {
    return instant(START + this.clock.monotonicNs() + this.wallOffset);
  }

  uptimeNs(): bigint {
    return this.clock.monotonicNs() - this.#bootedNs;
  }

  /** Brings an image; `false` where the disk has no room for it. */
  pull(release: Release): boolean {
    const id = idOf(release.name);
    if (this.images.has(id)) return true;
    const wanted = release.layers.filter((layer) => !this.#layers.has(layer.id));
    const needed = wanted.reduce((sum, layer) => sum + layer.bytes, 0n);
    if (needed > available(this, this.imageDisk())) return false;
    for (const layer of release.layers) {
      this.#users.set(layer.id, (this.#users.get(layer.id) ?? 0) + 1);
      this.#layers.set(layer.id, layer);
    }
    const bytes = release.layers.reduce((sum, layer) => sum + layer.bytes, 0n);
    const image = anImage(release.name, {
      sizeBytes: (bytes * BigInt(Math.round(release.reported * 1000))) / 1000n,
      pinned: release.pinned,
    });
    const cameNs = this.wentUnseen.get(id) ?? this.clock.monotonicNs();
    this.images.set(id, { image, release, cameNs });
    this.#world.images = [...this.#world.images, image];
    return true;
  }

  /** As RemoveImage does: what it frees comes at once, or late. */
  removeImage(id: ImageId): void {
    const found = this.images.get(id);
    if (found === undefined || this.#world.ghosts.has(id)) return;
    this.images.delete(id);
    this.#world.images = this.#world.images.filter((one) => one.id !== id);
    this.removedOnce.add(id);
    for (const { id: layer } of found.release.layers)
      this.#users.set(layer, (this.#users.get(layer) ?? 1) - 1);
    if (this.lateMs === 0) this.#sweep();
    else this.clock.after(this.lateMs, () => this.#sweep());
  }

  /** Bytes and inodes of layers that are there, those to be released included. */
  layersUse(): { readonly bytes: bigint; readonly inodes: bigint } {
    let bytes = 0n;
    let inodes = 0n;
    for (const layer of this.#layers.values()) {
      bytes += layer.bytes;
      inodes += layer.inodes;
    }
    return { bytes, inodes };
  }

  imageDisk(): SimDisk {
    const disk = this.disks.find(({ roles }) => roles.includes("imagefs"));
    if (disk === undefined) throw new Error("a node has a disk for images");
    return disk;
  }

  addSandbox(pod: string, image: ImageId): Sandbox {
    const sandbox = aSandbox(pod, { name: pod, createdAt: this.wall() });
    this.#world.sandboxes = [...this.#world.sandboxes, sandbox];
    this.pods.add(sandbox.podUid);
    this.wanted.set(sandbox.id, image);
    return sandbox;
  }

  /** The kubelet is about to create the pod's container. */
  mark({ podUid: uid }: Sandbox): void {
    const bornAt = this.wall();
    const others = (this.#world.podDirectories ?? []).filter((one) => one.uid !== uid);
    const directory = { uid, bornAt, files: [{ container: "main", bornAt }] };
    this.#world.podDirectories = [...others, directory];
  }

  addContainer(sandbox: Sandbox, image: ImageId): Container {
    const container = aContainer(sandbox.name, {
      sandboxId: sandbox.id,
      name: "main",
      podUid: sandbox.podUid,
      podName: sandbox.name,
      imageRef: image,
      createdAt: this.wall(),
    });
    this.#world.containers = [...this.#world.containers, container];
    return container;
  }

  endPod(sandbox: Sandbox): void {
    const world = this.#world;
    world.containers = world.containers.map((one) =>
      one.sandboxId === sandbox.id ? { ...one, state: "exited" } : one,
    );
    world.sandboxes = world.sandboxes.map((one) =>
      one.id === sandbox.id ? { ...one, state: "not-ready" } : one,
    );
  }

  /** The machine starts anew: nothing runs, and no container is there until the kubelet brings pods back. */
  reboot(): void {
    const bootId = `boot-${Number(this.#world.bootId.slice(5)) + 1}`;
    this.#bootedNs = this.clock.monotonicNs();
    Object.assign(this.#world, { bootId, containers: [], sandboxes: [] });
  }

  #sweep(): void {
    for (const id of this.#layers.keys())
      if ((this.#users.get(id) ?? 0) === 0) this.#layers.delete(id);
  }
}

export function available(node: SimNode, disk: SimDisk): bigint {
  const layers = disk === node.imageDisk() ? node.layersUse().bytes : 0n;
  const free = disk.capacity - disk.others - layers;
  return free > 0n ? free : 0n;
}

export function inodesFree(node: SimNode, disk: SimDisk): bigint {
  const layers = disk === node.imageDisk() ? node.layersUse().inodes : 0n;
  const free = disk.inodes - disk.othersInodes - layers;
  return free > 0n ? free : 0n;
}

export function filesystemOf(node: SimNode, disk: SimDisk, told: "exact" | "none"): Filesystem {
  const images = disk.roles.includes("imagefs");
  const use = node.layersUse();
  return {
    roles: disk.roles,
    path: disk.path,
    mountpoint: disk.path,
    device: disk.device,
    capacityBytes: disk.capacity,
    availableBytes: available(node, disk),
    inodes: disk.inodes,
    inodesFree: inodesFree(node, disk),
    imageUsedBytes: images && told === "exact" ? use.bytes : null,
    imageInodesUsed: images && told === "exact" ? use.inodes : null,
    containerUsedBytes: null,
  };
}

export const aDisk = (change: Partial<SimDisk> = {}): SimDisk => ({
  device: "8:1",
  path: "/var/lib/containerd",
  roles: ["imagefs", "containerfs", "nodefs"],
  capacity: 100_000n * MIB,
  inodes: 1_000_000n,
  others: 0n,
  othersInodes: 0n,
  ...change,
});

/** An image of layers of its own, of so many MiB. */
export const aRelease = (name: string, mib: number, change: Partial<Release> = {}): Release => ({
  name,
  layers: [{ id: `layer-${name}`, bytes: BigInt(mib) * MIB, inodes: BigInt(mib) }],
  reported: 1,
  pinned: false,
  ...change,
});

export const imageOf = (release: Release): ImageId => imageId(idOf(release.name));
