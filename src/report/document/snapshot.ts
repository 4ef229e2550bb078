/** The node in JSON documents: images, containers, sandboxes, filesystems, events. */

import type { ImageRecord } from "../../model/ledger.ts";
import type { Event } from "../../model/pass.ts";
import type { DiskUsage } from "../../model/plan.ts";
import type { Container, Filesystem, Image, RuntimeInfo, Sandbox } from "../../model/snapshot.ts";
import { usedPercent } from "../bytes.ts";
import { imageName } from "../names.ts";
import { type JsonObject, timeOf } from "./json.ts";

export const imageJson = (image: Image): JsonObject => ({
  id: image.id,
  name: imageName(image),
  repoTags: image.repoTags,
  repoDigests: image.repoDigests,
  sizeBytes: image.sizeBytes,
  pinned: image.pinned,
});

export const recordJson = (record: ImageRecord): JsonObject => ({
  firstSeenAt: timeOf(record.firstSeenAt),
  lastUsedAt: timeOf(record.lastUsedAt),
});

export const containerJson = (container: Container): JsonObject => ({
  id: container.id,
  sandboxId: container.sandboxId,
  name: container.name,
  attempt: container.attempt,
  podUid: container.podUid,
  podName: container.podName,
  podNamespace: container.podNamespace,
  imageName: container.imageName,
  state: container.state,
  createdAt: timeOf(container.createdAt),
});

export const sandboxJson = (sandbox: Sandbox): JsonObject => ({
  id: sandbox.id,
  podUid: sandbox.podUid,
  name: sandbox.name,
  namespace: sandbox.namespace,
  attempt: sandbox.attempt,
  state: sandbox.state,
  createdAt: timeOf(sandbox.createdAt),
});

export const filesystemJson = (filesystem: Filesystem): JsonObject => ({
  roles: filesystem.roles,
  path: filesystem.path,
  mountpoint: filesystem.mountpoint,
  device: filesystem.device,
  capacityBytes: filesystem.capacityBytes,
  availableBytes: filesystem.availableBytes,
  usedPercent: usedPercent(filesystem.capacityBytes, filesystem.availableBytes),
  inodes: filesystem.inodes,
  inodesFree: filesystem.inodesFree,
  imageUsedBytes: filesystem.imageUsedBytes,
  imageInodesUsed: filesystem.imageInodesUsed ?? null,
  containerUsedBytes: filesystem.containerUsedBytes,
});

export const usageJson = (usage: DiskUsage): JsonObject => ({
  ...filesystemJson(usage.filesystem),
  usedPercent: usage.usedPercent,
  inodesUsedPercent: usage.inodesUsedPercent,
  highPercent: usage.highPercent,
  lowPercent: usage.lowPercent,
});

export const eventJson = (event: Event): JsonObject => ({
  reason: event.reason,
  message: event.message,
  at: timeOf(event.at),
  passId: event.passId,
});

export const runtimeJson = (runtime: RuntimeInfo): JsonObject => ({
  name: runtime.name,
  version: runtime.version,
  apiVersion: runtime.apiVersion,
  endpoint: runtime.endpoint,
  imageEndpoint: runtime.imageEndpoint,
});
