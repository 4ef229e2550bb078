// Builds plans, passes and their parts for the report tests: plausible defaults, one difference at a time.

import type { PassRow, Removal } from "../../src/model/history.ts";
import { containerId, imageId, passId, podUid, sandboxId } from "../../src/model/ids.ts";
import type { ImageRecord } from "../../src/model/ledger.ts";
import type { ContainerOutcome, ImageItem, ImageOutcome, Pass } from "../../src/model/pass.ts";
import type {
  ContainerPlan,
  DiskUsage,
  ImageCandidate,
  ImagePlan,
  KeptImage,
  PlannedContainer,
} from "../../src/model/plan.ts";
import type { ImageKeepReason } from "../../src/model/reason.ts";
import type { MeasuredFilesystem } from "../../src/model/reports.ts";
import type {
  Container,
  Filesystem,
  Image,
  RuntimeInfo,
  Sandbox,
} from "../../src/model/snapshot.ts";
import {
  durationFromMs,
  fromRfc3339,
  hours,
  type Instant,
  minutes,
  plus,
  seconds,
  totalUptime,
} from "../../src/model/time.ts";
import { passStatus, type StatusReport } from "../../src/report/status.ts";
import type { Screen } from "../../src/report/terminal.ts";
import {
  aCandidate,
  aContainer,
  aFilesystem,
  anImage,
  anImagePlan,
  aRecord,
  aSandbox,
  spaceTarget,
} from "../support/build/values.ts";

/** For text that goes to a file or a program: nothing is shortened, coloured or drawn. */
export const plainScreen: Screen = { width: null, colour: false };

export const GIB = 1n << 30n;
export const MIB = 1n << 20n;
export const at = (text: string): Instant => fromRfc3339(text)!;
export const NOW = at("2026-01-15T12:00:00.25Z");

export const terminal: Screen = { width: 100, colour: false };

export const hex = (seed: number): string => seed.toString(16).padStart(4, "0").repeat(16);

const builder =
  <Value extends object>(defaults: Value) =>
  (differences: Partial<Value> = {}): Value => ({ ...defaults, ...differences });

export const image = (seed: number, differences: Partial<Image> = {}): Image =>
  anImage("", {
    id: imageId(`sha256:${hex(seed)}`),
    repoTags: [`registry.example/team/app-${seed}:1.${seed}`],
    repoDigests: [`registry.example/team/app-${seed}@sha256:${hex(seed + 4096)}`],
    sizeBytes: BigInt(100 + seed * 17) * MIB,
    ...differences,
  });

export const record = (differences: Partial<ImageRecord> = {}): ImageRecord =>
  aRecord({
    firstSeenAt: at("2026-01-01T00:00:00Z"),
    lastUsedAt: at("2026-01-12T08:00:00Z"),
    lastUsedUptime: totalUptime(1n),
    ...differences,
  });

export const candidate = (
  seed: number,
  differences: Partial<ImageCandidate> = {},
): ImageCandidate =>
  aCandidate("", {
    image: image(seed),
    record: record(),
    unusedFor: hours(100 - seed),
    expected: false,
    ...differences,
  });

export const kept = (seed: number, reason: ImageKeepReason): KeptImage => ({
  image: image(seed),
  record: record(),
  reason,
  tried: ["in-use", reason.kind],
});

export const filesystem = (differences: Partial<Filesystem> = {}): Filesystem =>
  aFilesystem({
    roles: ["nodefs", "imagefs"],
    path: "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs",
    mountpoint: "/var/lib/containerd",
    capacityBytes: 50n * GIB,
    availableBytes: 6n * GIB,
    inodes: 3_276_800n,
    inodesFree: 2_900_000n,
    imageUsedBytes: 20n * GIB,
    ...differences,
  });

export const measured = builder<MeasuredFilesystem>({
  ...filesystem(),
  measuredAt: NOW,
});

export const usage = builder<DiskUsage>({
  filesystem: filesystem(),
  usedPercent: 88,
  inodesUsedPercent: null,
  highPercent: 85,
  lowPercent: 80,
});

export const runtime: RuntimeInfo = {
  endpoint: "unix:///run/containerd/containerd.sock",
  imageEndpoint: "unix:///run/containerd/containerd.sock",
  name: "containerd",
  version: "1.7.24",
  apiVersion: "v1",
  sandboxImages: [],
};

export const container = (seed: number, differences: Partial<Container> = {}): Container =>
  aContainer(`worker-${seed}`, {
    id: containerId(hex(seed)),
    sandboxId: sandboxId(hex(seed + 512)),
    attempt: seed,
    podUid: podUid(`uid-${seed}`),
    podName: `pod-${seed}`,
    imageName: "registry.example/team/app:1",
    state: "exited",
    createdAt: at("2026-01-10T00:00:00Z"),
    ...differences,
  });

export const sandbox = (seed: number, differences: Partial<Sandbox> = {}): Sandbox =>
  aSandbox(String(seed), {
    id: sandboxId(hex(seed + 512)),
    state: "not-ready",
    createdAt: at("2026-01-10T00:00:00Z"),
    ...differences,
  });

export const removedContainer = (seed: number): PlannedContainer => ({
  container: container(seed),
  decision: { kind: "remove", reason: { kind: "pod-gone" }, tried: ["pod-gone"] },
});

export const keptContainer = (seed: number): PlannedContainer => ({
  container: container(seed, { state: "running" }),
  decision: { kind: "keep", reason: { kind: "running" }, tried: ["running"] },
});

export const imagePlan = builder<ImagePlan>({
  ...anImagePlan([
    candidate(1, { expected: true }),
    candidate(2, { expected: true }),
    candidate(3, { record: record({ lastUsedAt: null }) }),
  ]),
  now: NOW,
  targets: [spaceTarget(10n * GIB, 4n * GIB)],
  kept: [
    kept(20, {
      kind: "in-use",
      users: [
        {
          kind: "container",
          id: containerId(hex(7)),
          name: "web",
          podName: "shop-0",
          state: "running",
        },
      ],
    }),
    kept(21, { kind: "pinned" }),
    kept(22, {
      kind: "keep-rule",
      pattern: "registry.example/team/*",
      source: "/etc/crigc/keep.d/base.list:3",
      name: "registry.example/team/app-22:1.22",
    }),
    kept(23, { kind: "too-young", age: seconds(40), minimumAge: minutes(2) }),
  ],
  usage: [usage()],
});

export const containerPlan = builder<ContainerPlan>({
  purpose: "periodic",
  now: NOW,
  containers: [removedContainer(1), keptContainer(2), keptContainer(3)],
  sandboxes: [
    {
      sandbox: sandbox(1),
      decision: { kind: "remove", reason: { kind: "pod-gone" }, tried: ["pod-gone"] },
    },
    {
      sandbox: sandbox(2, { state: "ready" }),
      decision: { kind: "keep", reason: { kind: "ready" }, tried: ["ready"] },
    },
  ],
  podLogs: [
    {
      directory: { entry: "default_pod-1_uid-1", uid: podUid("uid-1") },
      decision: { kind: "remove", reason: { kind: "pod-gone" }, tried: ["pod-gone"] },
    },
  ],
  links: [],
  strays: ["lost+found"],
  logsError: null,
  blocks: [],
  podSource: { kind: "ready", source: "kubelet-dir" },
});

export const removedImage = (seed: number, differences: Partial<ImageItem> = {}): ImageItem => ({
  candidate: candidate(seed, { expected: true }),
  trigger: { kind: "space" },
  result: {
    kind: "removed",
    reportedBytes: image(seed).sizeBytes,
    measuredBytes: image(seed).sizeBytes * 2n,
  },
  startedAt: NOW,
  took: durationFromMs(120),
  ...differences,
});

export const imageOutcome = builder<ImageOutcome>({
  end: "target-reached",
  items: [removedImage(1), removedImage(2)],
  wantedBytes: 4n * GIB,
  reportedFreedBytes: 251n * MIB,
  measuredFreedBytes: 502n * MIB,
  availableBefore: 6n * GIB,
  availableAfter: 6n * GIB + 502n * MIB,
  capacityBytes: 50n * GIB,
  error: null,
  ghosts: [],
});

export const containerOutcome = builder<ContainerOutcome>({
  end: "done",
  containers: [
    {
      planned: removedContainer(1),
      reason: { kind: "pod-gone" },
      result: { kind: "removed" },
      stopped: false,
      logFiles: ["0.log"],
      logBytes: 2n * MIB,
      logError: null,
    },
  ],
  sandboxes: [{ sandbox: sandbox(1), reason: { kind: "pod-gone" }, result: { kind: "removed" } }],
  logs: [
    {
      kind: "pod-logs",
      entry: "default_pod-1_uid-1",
      reason: { kind: "pod-gone" },
      result: { kind: "removed" },
      bytes: 3n * MIB,
    },
  ],
  measuredFreedBytes: 12n * MIB,
  errors: [],
});

export const pass = builder<Pass>({
  id: passId("20260115T120000Z-0a1b2c"),
  kind: "gc",
  purpose: { kind: "periodic" },
  startedAt: NOW,
  endedAt: plus(NOW, durationFromMs(1850)),
  dryRun: false,
  plan: { containers: containerPlan(), images: imagePlan() },
  images: imageOutcome(),
  containers: containerOutcome(),
  events: [],
  error: null,
});

export const status = builder<StatusReport>({
  version: "0.1.0",
  pid: 12,
  now: plus(NOW, minutes(3)),
  startedAt: NOW,
  dryRun: false,
  runtime,
  runtimeError: null,
  runtimeAnsweredAt: NOW,
  ledgerError: null,
  hold: { kind: "none" },
  bootGrace: null,
  waiting: null,
  podSource: null,
  loops: [
    {
      name: "image-gc",
      periodMs: 300_000,
      enabled: true,
      lastStartedAt: NOW,
      lastEndedAt: NOW,
      nextAt: plus(NOW, minutes(5)),
      lastError: null,
      consecutiveFailures: 0,
    },
  ],
  lastPasses: [passStatus(pass())],
  filesystems: [
    { filesystem: measured(), thresholds: { lowPercent: 80, highPercent: 85 } },
    {
      filesystem: measured({ mountpoint: "/", roles: ["nodefs"] }),
      thresholds: null,
    },
  ],
  underPressure: false,
  pressure: [],
  images: { count: 10, sizeBytes: GIB },
  deadContainers: 1,
  events: [],
  values: [
    { field: "imageGCHighThresholdPercent", value: 85, text: "85", source: "default", from: [] },
    {
      field: "keep",
      value: ["a", "b"],
      text: "a, b",
      source: "file",
      from: ["/etc/crigc/crigc.yaml:3"],
    },
  ],
});

export const passRow = builder<PassRow>({
  id: passId("P1"),
  kind: "image-gc",
  purpose: "periodic",
  signals: [],
  requestedBy: null,
  startedAt: NOW,
  endedAt: plus(NOW, seconds(4)),
  dryRun: false,
  error: null,
  imagesEnd: "target-reached",
  containersEnd: null,
  removed: 1,
  failed: 0,
  wantedBytes: GIB,
  reportedFreedBytes: GIB,
  measuredFreedBytes: 2n * GIB,
  availableBeforeBytes: null,
  availableAfterBytes: null,
  capacityBytes: null,
});

export const removalRow = builder<Removal>({
  passId: passId("P1"),
  kind: "image",
  subject: `sha256:${hex(1)}`,
  names: ["registry.example/team/app:1"],
  firstSeenAt: null,
  trigger: "space",
  signal: null,
  reason: "space",
  result: "removed",
  message: null,
  reportedBytes: GIB,
  measuredBytes: 2n * GIB,
  estimateBytes: null,
  at: NOW,
  took: seconds(1),
});
