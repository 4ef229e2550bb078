// A disk of a chosen size for one test: a file with a file system in it, mounted over a loop device.
import { mkdirSync, statfsSync, truncateSync, writeFileSync } from "node:fs";

import { command, tryCommand } from "./command.ts";
import { until } from "./until.ts";

export interface DiskOptions {
  /** Default 2 GiB. xfs wants 300 MiB at least. */
  readonly sizeBytes?: number;
  /** Default ext4. */
  readonly filesystem?: "ext4" | "xfs" | "btrfs";
  /** ext4 only. Default: what mkfs takes for the size, one for 16 KiB. */
  readonly inodes?: number;
  /** Waits for writes as a node does. Default: it does not, since nothing here has to outlive a cut of the power. */
  readonly flushes?: true;
  /** ext4 only. What unprivileged users cannot have, so never counted as available. Default 5, as mkfs does. */
  readonly reservedPercent?: number;
}

export interface Disk {
  /** Where it is mounted. */
  readonly path: string;
  readonly imageFile: string;
  readonly sizeBytes: number;
}

export const mebibyte = 1024 * 1024;
export const gibibyte = 1024 * mebibyte;

/** Makes and mounts `directory`/`name` on `directory`/`name`.img. */
export async function mountDisk(
  directory: string,
  name: string,
  options: DiskOptions = {},
): Promise<Disk> {
  const sizeBytes = options.sizeBytes ?? 2 * gibibyte;
  const imageFile = `${directory}/${name}.img`;
  const path = `${directory}/${name}`;
  // Sparse: it takes of the machine's disk only what is written to it.
  writeFileSync(imageFile, "");
  truncateSync(imageFile, sizeBytes);
  await makeFilesystem(imageFile, options);
  mkdirSync(path);
  // The loop device goes by itself with the mount; `discard` gives removed blocks back to the machine.
  const without = { ext4: ",barrier=0", xfs: "", btrfs: ",nobarrier" }[
    options.filesystem ?? "ext4"
  ];
  const flushes = options.flushes === true ? "" : without;
  await command("mount", "-o", `loop,discard${flushes}`, imageFile, path);
  return { path, imageFile, sizeBytes };
}

/** Waits for the last process to let go of it, then takes it out of the tree in any case. */
export async function unmount(path: string): Promise<void> {
  try {
    await until(`${path} is unmounted`, 5_000, async () => {
      const result = await tryCommand(["umount", path]);
      return result.exitCode === 0 || /not mounted|no mount point/.test(result.stderr);
    });
  } catch {
    await command("umount", "--lazy", path);
  }
}

async function makeFilesystem(imageFile: string, options: DiskOptions): Promise<void> {
  if (options.filesystem === "xfs" || options.filesystem === "btrfs") {
    await command(`mkfs.${options.filesystem}`, "-q", "-f", imageFile);
    return;
  }
  const inodes = options.inodes === undefined ? [] : ["-N", String(options.inodes)];
  const reserved = String(options.reservedPercent ?? 5);
  await command("mkfs.ext4", "-q", "-F", "-m", reserved, ...inodes, imageFile);
}

/** Makes a file of `bytes` real blocks without writing them. */
export async function takeBytes(file: string, bytes: number): Promise<void> {
  await command("fallocate", "-l", String(bytes), file);
}

/**
 * Fills the disk with one file until `percent` of it is in use, as the kubelet counts: what is not available to
 * unprivileged users. It is not an image, and only the test removes it.
 */
export async function fillDiskTo(disk: Disk, percent: number): Promise<void> {
  const use = readDisk(disk.path);
  const target = Math.ceil((use.capacityBytes * (100 - percent)) / 100);
  const bytes = use.availableBytes - target;
  if (bytes <= 0) {
    throw new Error(
      `cannot fill ${disk.path} to ${percent}%: ${use.usedPercent.toFixed(1)}% is in use already`,
    );
  }
  await takeBytes(`${disk.path}/fill`, bytes);
}

/** Makes empty files below `directory` until at most `inodesFree` inodes are left on its disk. */
export function takeInodes(disk: Disk, inodesFree: number, name = "many"): string {
  const directory = `${disk.path}/${name}`;
  mkdirSync(directory, { recursive: true });
  const count = readDisk(disk.path).inodesFree - inodesFree;
  for (let i = 0; i < count; i += 1) writeFileSync(`${directory}/${i}`, "");
  return directory;
}

export interface DiskUse {
  readonly capacityBytes: number;
  /** To unprivileged users: free blocks less the reserve. */
  readonly availableBytes: number;
  /** Capacity less available, of capacity: the reserve counts as used. */
  readonly usedPercent: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

/** What the file system says of its own fullness, read the way the kubelet reads it. */
export function readDisk(path: string): DiskUse {
  const stat = statfsSync(path);
  const capacityBytes = stat.blocks * stat.bsize;
  const availableBytes = stat.bavail * stat.bsize;
  return {
    capacityBytes,
    availableBytes,
    usedPercent: ((capacityBytes - availableBytes) / capacityBytes) * 100,
    inodes: stat.files,
    inodesFree: stat.ffree,
  };
}
