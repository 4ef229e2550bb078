/** Which roles share a device, and what may be reclaimed there for a signal. */

import { assertNever } from "../../model/assert.ts";
import type { Signal } from "../../model/limits.ts";
import type { Filesystem, FilesystemRole } from "../../model/snapshot.ts";

/**
 * `single`: images, containers and the node's own files on one device. `dedicated`: images and writable layers together
 * on their own device. `split`: images on their own device, writable layers with the node's own files or on a third
 * one.
 */
export type Topology = "single" | "dedicated" | "split";

/** What a signal lets the collector remove. */
export interface Reclaim {
  readonly containers: boolean;
  readonly images: boolean;
  /** Logs of deleted pods, which are on the node's own filesystem. */
  readonly logs: boolean;
}

/** Determined for every observation: disks are mounted and unmounted while agents run. */
export function topologyOf(filesystems: readonly Filesystem[]): Topology {
  const image = withRole(filesystems, "imagefs");
  const node = withRole(filesystems, "nodefs");
  const container = withRole(filesystems, "containerfs") ?? image;
  if (image !== undefined && container !== undefined && container.device !== image.device)
    return "split";
  return image !== undefined && node !== undefined && image.device !== node.device
    ? "dedicated"
    : "single";
}

/**
 * The kubelet's table. With images on their own disk it has nothing for the node's filesystem, where crigc still
 * deletes orphaned logs.
 */
export function reclaimFor(
  signal: Signal,
  topology: Topology,
  compat: "none" | "kubelet",
): Reclaim {
  const role = roleOf(signal);
  const logs = compat === "none";
  switch (topology) {
    case "single":
      return { containers: true, images: true, logs };
    case "dedicated":
      return role === "nodefs"
        ? { containers: false, images: false, logs }
        : { containers: true, images: true, logs: false };
    case "split":
      return {
        containers: role !== "imagefs",
        images: role === "imagefs",
        logs: logs && role === "nodefs",
      };
    default:
      return assertNever(topology);
  }
}

export function roleOf(signal: Signal): FilesystemRole {
  switch (signal) {
    case "nodefs.available":
    case "nodefs.inodesFree":
      return "nodefs";
    case "imagefs.available":
    case "imagefs.inodesFree":
      return "imagefs";
    case "containerfs.available":
    case "containerfs.inodesFree":
      return "containerfs";
    default:
      return assertNever(signal);
  }
}

/**
 * The filesystems that a signal refers to: every distinct device with the role. Writable layers are on the image
 * filesystem unless the runtime names another.
 */
export function filesystemsOf(
  role: FilesystemRole,
  filesystems: readonly Filesystem[],
): readonly Filesystem[] {
  const direct = filesystems.filter((filesystem) => filesystem.roles.includes(role));
  if (direct.length > 0 || role !== "containerfs") return direct;
  return filesystems.filter((filesystem) => filesystem.roles.includes("imagefs"));
}

const withRole = (
  filesystems: readonly Filesystem[],
  role: FilesystemRole,
): Filesystem | undefined => filesystems.find((filesystem) => filesystem.roles.includes(role));
