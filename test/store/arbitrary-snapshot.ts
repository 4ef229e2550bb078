// Snapshots as fast-check makes them: every value that the model allows.

import fc from "fast-check";

import { containerId, imageId, podUid, sandboxId } from "../../src/model/ids.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { aDuration, anInstant, someBytes } from "./arbitrary.ts";

const text = fc.string({ unit: "binary" });
const texts = fc.array(text, { maxLength: 3 });
const attempt = fc.nat();
const nullable = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(of, { nil: null });
const some = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(of, { maxLength: 3 });
const mapOf = <K, V>(keys: fc.Arbitrary<K>, values: fc.Arbitrary<V>): fc.Arbitrary<Map<K, V>> =>
  some(fc.tuple(keys, values)).map((entries) => new Map(entries));
const kind = <K extends string>(name: K): fc.Arbitrary<K> => fc.constant(name);
const source = fc.constantFrom("cri" as const, "kubelet-dir" as const, "kubelet-api" as const);

const image = fc.record({
  id: text.map(imageId),
  repoTags: texts,
  repoDigests: texts,
  sizeBytes: someBytes,
  pinned: fc.boolean(),
});

const container = fc.record({
  id: text.map(containerId),
  sandboxId: text.map(sandboxId),
  name: text,
  attempt,
  podUid: text.map(podUid),
  podName: text,
  podNamespace: text,
  imageName: text,
  imageRef: text,
  imageId: text,
  state: fc.constantFrom(
    "created" as const,
    "running" as const,
    "exited" as const,
    "unknown" as const,
  ),
  createdAt: anInstant,
});

const sandbox = fc.record({
  id: text.map(sandboxId),
  podUid: text.map(podUid),
  metadataUid: text.map(podUid),
  name: text,
  namespace: text,
  attempt,
  state: fc.constantFrom("ready" as const, "not-ready" as const),
  createdAt: anInstant,
});

const volumes = fc.oneof(
  fc.record({ kind: kind("known"), references: texts }),
  fc.record({ kind: kind("gone") }),
  fc.record({ kind: kind("unsupported") }),
  fc.record({ kind: kind("unknown"), message: text }),
);

const resolution = fc.oneof(
  fc.record({ kind: kind("image"), id: text.map(imageId) }),
  fc.record({ kind: kind("absent") }),
  fc.record({ kind: kind("unknown"), message: text }),
);

const filesystem = fc.record({
  roles: fc.subarray(["imagefs" as const, "containerfs" as const, "nodefs" as const]),
  path: text,
  mountpoint: text,
  device: text,
  capacityBytes: someBytes,
  availableBytes: someBytes,
  inodes: someBytes,
  inodesFree: someBytes,
  imageUsedBytes: nullable(someBytes),
  imageInodesUsed: nullable(someBytes),
  containerUsedBytes: nullable(someBytes),
});

const pods = fc.oneof(
  fc.record({
    kind: kind("ready"),
    source,
    pods: some(
      fc.record({
        uid: text.map(podUid),
        origin: fc.constantFrom("api" as const, "static" as const, "listed" as const),
        finished: fc.boolean(),
        evicted: fc.boolean(),
        images: texts,
      }),
    ),
  }),
  fc.record({ kind: kind("none"), why: text }),
  fc.record({
    kind: kind("none"),
    why: text,
    manifests: some(
      fc.record({
        path: text,
        images: texts,
        fault: nullable(
          fc.record({
            kind: fc.constantFrom("invalid" as const, "unreadable" as const),
            message: text,
          }),
        ),
      }),
    ),
  }),
  fc.record({ kind: kind("failed"), source, message: text }),
);

const creations = fc.record({
  clocks: fc.record({ wall: anInstant, uptime: aDuration, bootId: text }),
  inProgress: some(
    fc.record({
      podUid: text.map(podUid),
      sandboxId: text.map(sandboxId),
      name: text,
      markedAt: anInstant,
    }),
  ),
});

const logFacts = fc.record({
  kind: kind("read"),
  podLogsDirectory: text,
  podLogs: some(fc.record({ entry: text, uid: text.map(podUid) })),
  strays: texts,
  danglingLinks: some(fc.record({ entry: text, containerId: text })),
  sizeBytes: nullable(someBytes),
});

const logs = fc.oneof(logFacts, fc.record({ kind: kind("failed"), message: text }));

export const aSnapshot: fc.Arbitrary<Snapshot> = fc.record({
  clocks: fc.record({ wall: anInstant, uptime: aDuration, bootId: text }),
  observedAt: anInstant,
  runtime: fc.record({
    endpoint: text,
    imageEndpoint: text,
    name: text,
    version: text,
    apiVersion: text,
    sandboxImages: texts,
    instance: text,
  }),
  images: some(image),
  containers: some(container),
  sandboxes: some(sandbox),
  imageVolumes: mapOf(text.map(containerId), volumes),
  containerEnds: mapOf(text.map(containerId), anInstant),
  resolutions: mapOf(text, resolution),
  sandboxImages: mapOf(text.map(sandboxId), text),
  filesystems: some(filesystem),
  pods,
  creations: nullable(creations),
  logs: nullable(logs),
  keep: fc.record({
    rules: some(fc.record({ pattern: text, source: text })),
    problems: some(fc.record({ source: text, message: text })),
    directoriesRead: texts,
  }),
});
