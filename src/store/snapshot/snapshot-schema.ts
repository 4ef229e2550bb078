// The shape of a recorded node: every field that the model needs is required, so that a misspelt one is missed; others may be there.

import * as v from "valibot";

import { type ContainerId, containerId, imageId, podUid, sandboxId } from "../../model/ids.ts";
import type {
  ImageVolumes,
  LogReading,
  PodReading,
  Resolution,
  Snapshot,
} from "../../model/snapshot.ts";
import { bytes, count, durationNs, shapeOf, texts, time } from "../codec.ts";

const anImageId = v.pipe(v.string(), v.transform(imageId));
const aContainerId = v.pipe(v.string(), v.transform(containerId));
const aSandboxId = v.pipe(v.string(), v.transform(sandboxId));
const aPodUid = v.pipe(v.string(), v.transform(podUid));

const aBytes = shapeOf(bytes);
const aCount = shapeOf(count);
const aDurationNs = shapeOf(durationNs);
const aTexts = shapeOf(texts);
const aTime = shapeOf(time);

/** A list in which each key stands once, as a map. */
function mapField<Entry extends v.GenericSchema, Key extends string, Value>(
  entry: Entry,
  split: (entry: v.InferOutput<Entry>) => readonly [Key, Value],
) {
  return v.pipe(
    v.array(entry),
    v.rawTransform(({ dataset, addIssue, NEVER }): ReadonlyMap<Key, Value> => {
      const entries = dataset.value.map(split);
      const map = new Map(entries);
      if (map.size === entries.length) return map;
      addIssue({ message: "a key occurs twice" });
      return NEVER;
    }),
  );
}

const image = v.object({
  id: anImageId,
  repoTags: aTexts,
  repoDigests: aTexts,
  sizeBytes: aBytes,
  pinned: v.boolean(),
});

const container = v.object({
  id: aContainerId,
  sandboxId: aSandboxId,
  name: v.string(),
  attempt: aCount,
  podUid: aPodUid,
  podName: v.string(),
  podNamespace: v.string(),
  imageName: v.string(),
  imageRef: v.string(),
  imageId: v.string(),
  state: v.picklist(["created", "running", "exited", "unknown"]),
  createdAt: aTime,
});

const sandbox = v.object({
  id: aSandboxId,
  podUid: aPodUid,
  metadataUid: aPodUid,
  name: v.string(),
  namespace: v.string(),
  attempt: aCount,
  state: v.picklist(["ready", "not-ready"]),
  createdAt: aTime,
});

const volumes = v.variant("kind", [
  v.object({ id: aContainerId, kind: v.literal("known"), references: aTexts }),
  v.object({ id: aContainerId, kind: v.literal("gone") }),
  v.object({ id: aContainerId, kind: v.literal("unsupported") }),
  v.object({ id: aContainerId, kind: v.literal("unknown"), message: v.string() }),
]);

const resolution = v.variant("kind", [
  v.object({ reference: v.string(), kind: v.literal("image"), id: anImageId }),
  v.object({ reference: v.string(), kind: v.literal("absent") }),
  v.object({ reference: v.string(), kind: v.literal("unknown"), message: v.string() }),
]);

const filesystem = v.object({
  roles: v.array(v.picklist(["imagefs", "containerfs", "nodefs"])),
  path: v.string(),
  mountpoint: v.string(),
  device: v.string(),
  capacityBytes: aBytes,
  availableBytes: aBytes,
  inodes: aBytes,
  inodesFree: aBytes,
  imageUsedBytes: v.nullable(aBytes),
  imageInodesUsed: v.optional(v.nullable(aBytes), null),
  containerUsedBytes: v.nullable(aBytes),
});

const source = v.picklist(["cri", "kubelet-dir", "kubelet-api"]);

const manifests = {
  manifests: v.exactOptional(
    v.array(
      v.object({
        path: v.string(),
        images: aTexts,
        fault: v.nullable(
          v.object({ kind: v.picklist(["invalid", "unreadable"]), message: v.string() }),
        ),
      }),
    ),
  ),
};

const pods: v.GenericSchema<unknown, PodReading> = v.variant("kind", [
  v.object({
    kind: v.literal("ready"),
    source,
    pods: v.array(
      v.object({
        uid: aPodUid,
        origin: v.optional(v.picklist(["api", "static", "listed", "directory"]), "api"),
        finished: v.boolean(),
        evicted: v.boolean(),
        images: aTexts,
      }),
    ),
    ...manifests,
  }),
  v.object({ kind: v.literal("none"), why: v.string(), ...manifests }),
  v.object({ kind: v.literal("failed"), source, message: v.string(), ...manifests }),
]);

const logFacts = v.object({
  kind: v.optional(v.literal("read"), "read"),
  podLogsDirectory: v.string(),
  podLogs: v.array(v.object({ entry: v.string(), uid: aPodUid })),
  strays: aTexts,
  danglingLinks: v.array(v.object({ entry: v.string(), containerId: v.string() })),
  sizeBytes: v.nullable(aBytes),
});

const logs: v.GenericSchema<unknown, LogReading> = v.variant("kind", [
  v.object({ kind: v.literal("failed"), message: v.string() }),
  logFacts,
]);

const keep = v.object({
  rules: v.array(v.object({ pattern: v.string(), source: v.string() })),
  problems: v.array(v.object({ source: v.string(), message: v.string() })),
  directoriesRead: aTexts,
});

export const snapshotShape = v.pipe(
  v.object({
    clocks: v.object({ wall: aTime, uptimeNs: aDurationNs, bootId: v.string() }),
    observedAt: aTime,
    runtime: v.object({
      endpoint: v.string(),
      imageEndpoint: v.string(),
      name: v.string(),
      version: v.string(),
      apiVersion: v.string(),
      sandboxImages: aTexts,
    }),
    images: v.array(image),
    containers: v.array(container),
    sandboxes: v.array(sandbox),
    imageVolumes: mapField(volumes, ({ id, ...it }): readonly [ContainerId, ImageVolumes] => [
      id,
      it,
    ]),
    containerEnds: mapField(
      v.object({ id: aContainerId, finishedAt: aTime }),
      (it) => [it.id, it.finishedAt] as const,
    ),
    resolutions: mapField(resolution, ({ reference, ...it }): readonly [string, Resolution] => [
      reference,
      it,
    ]),
    sandboxImages: mapField(
      v.object({ id: aSandboxId, name: v.string() }),
      (it) => [it.id, it.name] as const,
    ),
    filesystems: v.array(filesystem),
    pods,
    logs: v.nullable(logs),
    keep,
  }),
  v.transform(({ clocks, ...rest }): Snapshot => ({
    ...rest,
    // What was read of images is in the ledger that was recorded with them.
    origins: new Map(),
    clocks: { wall: clocks.wall, uptime: clocks.uptimeNs, bootId: clocks.bootId },
  })),
);
