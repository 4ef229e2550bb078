/** Builders of model values: every field has a plain default, so that a test shows only what matters to it. */

import type { Config } from "../../../src/config/config.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { containerId, type ImageId, imageId, podUid, sandboxId } from "../../../src/model/ids.ts";
import { emptyLedger, type ImageRecord, type Ledger } from "../../../src/model/ledger.ts";
import type {
  ContainerLimits,
  ImageLimits,
  LedgerLimits,
  Limits,
} from "../../../src/model/limits.ts";
import type { ImageCandidate, ImagePlan, ImageTarget } from "../../../src/model/plan.ts";
import type {
  Container,
  Filesystem,
  Image,
  KeepRule,
  Sandbox,
  Snapshot,
} from "../../../src/model/snapshot.ts";
import {
  duration,
  fromRfc3339,
  hours,
  type Instant,
  instant,
  minutes,
  totalUptime,
} from "../../../src/model/time.ts";
import type { Facts } from "../../../src/policy/facts.ts";

export const NOW: Instant = fromRfc3339("2026-01-01T00:00:00Z") ?? instant(0n);
export const MIB = 1024n * 1024n;
export const GIB = 1024n * MIB;

/** A whole image ID from a short word: `sha256:` and the word's bytes in hex, filled with zeros. */
export function idOf(word: string): ReturnType<typeof imageId> {
  return imageId(`sha256:${Buffer.from(word).toString("hex").padEnd(64, "0").slice(0, 64)}`);
}

export function anImage(name: string, change: Partial<Image> = {}): Image {
  return {
    id: idOf(name),
    repoTags: [`registry.example/${name}:v1`],
    repoDigests: [],
    sizeBytes: 100n * MIB,
    pinned: false,
    ...change,
  };
}

export function aContainer(name: string, change: Partial<Container> = {}): Container {
  return {
    id: containerId(`container-${name}`),
    sandboxId: sandboxId("sandbox-a"),
    name,
    attempt: 0,
    podUid: podUid("uid-a"),
    podName: "pod-a",
    podNamespace: "default",
    imageName: "",
    imageRef: "",
    imageId: "",
    state: "running",
    createdAt: instant(NOW - hours(1)),
    ...change,
  };
}

export function aSandbox(name: string, change: Partial<Sandbox> = {}): Sandbox {
  return {
    id: sandboxId(`sandbox-${name}`),
    podUid: podUid(`uid-${name}`),
    metadataUid: podUid(`uid-${name}`),
    name: `pod-${name}`,
    namespace: "default",
    attempt: 0,
    state: "ready",
    createdAt: instant(NOW - hours(1)),
    ...change,
  };
}

export function aFilesystem(change: Partial<Filesystem> = {}): Filesystem {
  return {
    roles: ["imagefs", "containerfs", "nodefs"],
    path: "/var/lib/containerd",
    mountpoint: "/",
    device: "8:1",
    capacityBytes: 100n * GIB,
    availableBytes: 10n * GIB,
    inodes: 1_000_000n,
    inodesFree: 900_000n,
    imageUsedBytes: 60n * GIB,
    containerUsedBytes: null,
    ...change,
  };
}

export function aRecord(change: Partial<ImageRecord> = {}): ImageRecord {
  return {
    firstSeenAt: instant(NOW - hours(24)),
    firstSeenUptime: totalUptime(0n),
    lastUsedAt: null,
    lastUsedUptime: null,
    names: "",
    sizeBytes: 100n * MIB,
    ageRestartedUptime: null,
    ...change,
  };
}

/** Records of images under their first names. */
export const recordsOf = (
  words: readonly string[],
  change: Partial<ImageRecord> = {},
): Map<ImageId, ImageRecord> =>
  new Map(
    words.map((word) => [idOf(word), aRecord({ names: `registry.example/${word}:v1`, ...change })]),
  );

export function aSnapshot(change: Partial<Snapshot> = {}): Snapshot {
  return {
    clocks: { wall: NOW, uptime: hours(48), bootId: "boot-1" },
    observedAt: NOW,
    runtime: {
      endpoint: "unix:///run/containerd/containerd.sock",
      imageEndpoint: "unix:///run/containerd/containerd.sock",
      name: "containerd",
      version: "1.7.24",
      apiVersion: "v1",
      sandboxImages: [],
    },
    images: [],
    containers: [],
    sandboxes: [],
    imageVolumes: new Map(
      (change.containers ?? []).map((one) => [one.id, { kind: "unsupported" as const }]),
    ),
    resolutions: new Map(),
    filesystems: [aFilesystem()],
    pods: { kind: "none", why: "a test" },
    logs: null,
    keep: keepOf([]),
    ...change,
  };
}

/** Keep rules as they are read from the node, without a fault unless one is given. */
export const keepOf = (
  rules: readonly KeepRule[],
  problems: Snapshot["keep"]["problems"] = [],
): Snapshot["keep"] => ({ rules, problems });

export function aLedger(change: Partial<Ledger> = {}): Ledger {
  return {
    ...emptyLedger,
    bootId: "boot-1",
    observedAt: instant(NOW - minutes(5)),
    uptime: duration(hours(48) - minutes(5)),
    totalUptime: totalUptime(hours(24)),
    ...change,
  };
}

/** What the ledger has of a container that was listed last time. */
export const listedBefore: Ledger["containers"] = new Map([
  [containerId("earlier"), { imageVolumes: null }],
]);

/** What the flag table says, without a file, variable or flag. */
export const defaultConfig: Config = loadConfig({
  flags: [],
  env: {},
  reader: { file: () => null, names: () => null },
});

/** The defaults of the flag table, without eviction thresholds. */
export const defaultLimits: Limits = {
  ...defaultConfig.limits,
  pressure: { ...defaultConfig.limits.pressure, thresholds: [] },
};

export const defaultImageLimits: ImageLimits = defaultLimits.images;
export const containerLimits: ContainerLimits = defaultLimits.containers;
export const ledgerLimits: LedgerLimits = defaultLimits.ledger;

export const withLimits = (images: Partial<ImageLimits>): Limits => ({
  ...defaultLimits,
  images: { ...defaultImageLimits, ...images },
});

/** Of a periodic pass under these limits of images, which nothing holds back. */
export const factsOf = (snapshot: Snapshot, ledger: Ledger, images: ImageLimits): Facts => ({
  snapshot,
  ledger,
  limits: { ...defaultLimits, images },
  purpose: { kind: "periodic" },
  parts: { containers: "all", images: true },
  hold: { kind: "none" },
  pressureTargets: [],
  last: new Set(),
  paused: new Map(),
});

export const withImageLimits = (facts: Facts, change: Partial<ImageLimits>): Facts => ({
  ...facts,
  limits: { ...facts.limits, images: { ...facts.limits.images, ...change } },
});

export function aCandidate(name: string, change: Partial<ImageCandidate> = {}): ImageCandidate {
  return {
    image: anImage(name),
    record: aRecord(),
    triggers: [{ kind: "space" }],
    unusedFor: hours(24),
    estimateBytes: change.image?.sizeBytes ?? anImage(name).sizeBytes,
    expected: true,
    tried: ["in-use"],
    ...change,
  };
}

export function anImagePlan(
  candidates: readonly ImageCandidate[],
  change: Partial<ImagePlan> = {},
): ImagePlan {
  return {
    purpose: "periodic",
    now: NOW,
    triggers: [{ kind: "space" }],
    targets: [],
    candidates,
    kept: [],
    blocks: [],
    futility: [],
    usage: [],
    notes: [],
    ...change,
  };
}

type Target<Kind extends ImageTarget["kind"]> = Extract<ImageTarget, { readonly kind: Kind }>;

export const spaceTarget = (
  availableBytes: bigint,
  wantedBytes: bigint,
): Target<"available-bytes"> => ({
  kind: "available-bytes",
  trigger: { kind: "space" },
  device: "8:1",
  path: "/var/lib/containerd",
  availableBytes,
  wantedBytes,
  relievedBytes: availableBytes,
});

export const inodeTarget = (inodesFree: bigint, wantedInodes: bigint): Target<"free-inodes"> => ({
  kind: "free-inodes",
  trigger: { kind: "pressure", signal: "imagefs.inodesFree" },
  device: "8:1",
  path: "/var/lib/containerd",
  inodesFree,
  wantedInodes,
  relievedInodes: inodesFree,
});
