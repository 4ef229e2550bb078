// Passes and removals as the loops bring them, each with one visible difference from the default.

import {
  containerId,
  imageId,
  type PassId,
  passId,
  podUid,
  sandboxId,
} from "../../src/model/ids.ts";
import type {
  ContainerItem,
  ImageItem,
  ImageOutcome,
  LogItem,
  SandboxItem,
} from "../../src/model/outcome.ts";
import type { Pass } from "../../src/model/pass.ts";
import type { Filesystem } from "../../src/model/snapshot.ts";
import { duration, instant, watched } from "../../src/model/time.ts";

export function imageItem(turn: number, change: Partial<ImageItem> = {}): ImageItem {
  const id = imageId(`sha256:${turn}`);
  return {
    candidate: {
      image: {
        id,
        repoTags: [`Registry.example/app/Web:${turn}`],
        repoDigests: [],
        sizeBytes: 1000n,
        pinned: false,
      },
      record: {
        firstSeenAt: instant(0n),
        firstSeenWatched: watched(0n),
        lastUsedAt: null,
        lastUsedWatched: null,
        names: "",
        earlierNames: [],
        sizeBytes: 1000n,
        ageRestartedWatched: null,
        ghost: null,
      },
      triggers: [{ kind: "space" }],
      unusedFor: duration(0n),
      expected: true,
      tried: [],
    },
    trigger: { kind: "space" },
    result: { kind: "removed", reportedBytes: 1000n, measuredBytes: 700n, settled: "at-once" },
    startedAt: instant(BigInt(turn)),
    took: duration(5n),
    ...change,
  };
}

export function containerItem(name: string): ContainerItem {
  return {
    planned: {
      container: {
        id: containerId(`c-${name}`),
        sandboxId: sandboxId("s"),
        name,
        attempt: 0,
        podUid: podUid("u"),
        podName: "pod",
        podNamespace: "space",
        imageName: "",
        imageRef: "",
        imageId: "",
        state: "exited",
        createdAt: instant(0n),
      },
      stopFirst: false,
      decision: { kind: "remove", reason: { kind: "pod-gone" }, tried: [] },
    },
    reason: { kind: "pod-gone" },
    result: { kind: "removed" },
    stopped: false,
    logFiles: ["0.log"],
    logBytes: 20n,
    logError: null,
  };
}

export const sandboxItem: SandboxItem = {
  sandbox: {
    id: sandboxId("s"),
    podUid: podUid("u"),
    metadataUid: podUid("u"),
    name: "pod",
    namespace: "space",
    attempt: 0,
    state: "not-ready",
    createdAt: instant(0n),
  },
  reason: { kind: "superseded" },
  result: { kind: "failed", step: "stop", message: "it is busy", code: "failed" },
};

export const logItem: LogItem = {
  kind: "pod-logs",
  entry: "space_pod_u",
  reason: { kind: "pod-gone" },
  result: { kind: "skipped", what: "it came back" },
  bytes: 0n,
};

export function pass(id: string, change: Partial<Pass> = {}): Pass {
  return {
    id: passId(id),
    kind: "image-gc",
    purpose: { kind: "periodic" },
    startedAt: instant(100n),
    endedAt: instant(200n),
    dryRun: false,
    plan: { containers: null, images: null },
    images: null,
    containers: null,
    events: [],
    steps: [{ name: "observe", startedAt: instant(2n ** 62n), took: duration(7n), error: null }],
    error: null,
    ...change,
  };
}

export function images(
  items: readonly ImageItem[],
  change: Partial<ImageOutcome> = {},
): ImageOutcome {
  return {
    end: "target-reached",
    items,
    wantedBytes: 500n,
    reportedFreedBytes: 1000n,
    measuredFreedBytes: 700n,
    availableBefore: 10n,
    availableAfter: 710n,
    capacityBytes: 10_000n,
    error: null,
    ghosts: [],
    ...change,
  };
}

export const filesystem: Filesystem = {
  roles: ["imagefs", "nodefs"],
  path: "/var/lib/containerd",
  mountpoint: "/",
  device: "254:0",
  capacityBytes: 2n ** 63n,
  availableBytes: 10n,
  inodes: 5n,
  inodesFree: 2n,
  imageUsedBytes: null,
  containerUsedBytes: null,
};

export const idOf = (id: string): PassId => passId(id);
