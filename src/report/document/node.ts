/** The node in JSON documents: images, containers, sandboxes, filesystems, events. */

import type { ImageRecord } from "../../model/ledger.ts";
import type { Event } from "../../model/pass.ts";
import type { DiskUsage } from "../../model/plan.ts";
import type { Container, Filesystem, Image, RuntimeInfo, Sandbox } from "../../model/snapshot.ts";
import { usedPercent } from "../bytes.ts";
import { imageName } from "../names.ts";
import { type JsonObject, picked, timeOf } from "./json.ts";

export const imageJson = (image: Image): JsonObject => ({
  id: image.id,
  name: imageName(image),
  ...picked(image, "repoTags", "repoDigests", "sizeBytes", "pinned"),
});

export const recordJson = (record: ImageRecord): JsonObject => ({
  firstSeenAt: timeOf(record.firstSeenAt),
  lastUsedAt: timeOf(record.lastUsedAt),
});

export const containerJson = (container: Container): JsonObject => ({
  ...picked(container, "id", "sandboxId", "name", "attempt", "podUid", "podName", "podNamespace"),
  ...picked(container, "imageName", "state"),
  createdAt: timeOf(container.createdAt),
});

export const sandboxJson = (sandbox: Sandbox): JsonObject => ({
  ...picked(sandbox, "id", "podUid", "name", "namespace", "attempt", "state"),
  createdAt: timeOf(sandbox.createdAt),
});

export const filesystemJson = (filesystem: Filesystem): JsonObject => ({
  ...picked(filesystem, "roles", "path", "mountpoint", "device"),
  ...picked(filesystem, "capacityBytes", "availableBytes"),
  usedPercent: usedPercent(filesystem.capacityBytes, filesystem.availableBytes),
  ...picked(filesystem, "inodes", "inodesFree", "imageUsedBytes"),
  imageInodesUsed: filesystem.imageInodesUsed ?? null,
  containerUsedBytes: filesystem.containerUsedBytes,
});

export const usageJson = (usage: DiskUsage): JsonObject => ({
  ...filesystemJson(usage.filesystem),
  ...picked(usage, "usedPercent", "inodesUsedPercent", "highPercent", "lowPercent"),
  evictions: (usage.evictions ?? []).map((mark) => ({ ...mark })),
});

export const eventJson = (event: Event): JsonObject => ({
  ...picked(event, "reason", "message"),
  at: timeOf(event.at),
  passId: event.passId,
});

export const runtimeJson = (runtime: RuntimeInfo): JsonObject =>
  picked(runtime, "name", "version", "apiVersion", "endpoint", "imageEndpoint");
