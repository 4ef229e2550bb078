// Passes and removals as the loops bring them, each with one visible difference from the default.

import { containerId, imageId, passId } from "../../src/model/ids.ts";
import type {
  ContainerItem,
  ContainerOutcome,
  ImageItem,
  ImageOutcome,
  LogItem,
  SandboxItem,
} from "../../src/model/outcome.ts";
import type { Pass } from "../../src/model/pass.ts";
import { duration, instant } from "../../src/model/time.ts";
import {
  aCandidate,
  aContainer,
  aFilesystem,
  anImage,
  anImagePlan,
  aSandbox,
} from "../support/build/values.ts";

export const idOf = passId;

export function imageItem(
  turn: number,
  change: Partial<ImageItem> = {},
  id = imageId(`sha256:${turn}`),
): ImageItem {
  const repoTags = [`Registry.example/app/Web:${turn}`];
  return {
    candidate: aCandidate("", { image: anImage("", { id, repoTags, sizeBytes: 1000n }) }),
    trigger: { kind: "space" },
    result: { kind: "removed", reportedBytes: 1000n, measuredBytes: 700n, settled: "at-once" },
    startedAt: instant(BigInt(turn)),
    took: duration(5n),
    ...change,
  };
}

export function containerItem(name: string): ContainerItem {
  const its = { id: containerId(`c-${name}`), podName: "pod", podNamespace: "space" };
  const reason = { kind: "pod-gone" } as const;
  return {
    planned: {
      container: aContainer(name, { ...its, state: "exited" }),
      stopFirst: false,
      decision: { kind: "remove", reason, tried: [] },
    },
    reason,
    result: { kind: "removed" },
    stopped: false,
    logFiles: ["0.log"],
    logBytes: 20n,
    logError: null,
  };
}

export const sandboxItem: SandboxItem = {
  sandbox: aSandbox("s", { name: "pod", namespace: "space", state: "not-ready" }),
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

export const images = (items: readonly ImageItem[]): ImageOutcome => ({
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
});

/** Containers of a pass that freed so much. */
export const containers = (
  measuredFreedBytes: bigint | null,
  change: Partial<ContainerOutcome> = {},
): ContainerOutcome => ({
  end: "done",
  containers: [],
  sandboxes: [],
  logs: [],
  errors: [],
  measuredFreedBytes,
  ...change,
});

export const filesystem = aFilesystem({
  device: "254:0",
  capacityBytes: 2n ** 63n,
  availableBytes: 10n,
});

const usage = [
  { filesystem, usedPercent: 90, inodesUsedPercent: null, highPercent: 85, lowPercent: 80 },
];
/** A plan that judges that filesystem. */
export const planOf = (change: Parameters<typeof anImagePlan>[1] = {}): Pass["plan"] => ({
  images: anImagePlan([], { usage, ...change }),
  containers: null,
});
