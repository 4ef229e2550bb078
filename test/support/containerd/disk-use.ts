// What a file system says of its own fullness, read the way the kubelet reads it.
import { statfsSync } from "node:fs";

export interface DiskUse {
  readonly capacityBytes: number;
  /** To unprivileged users: free blocks less the reserve. */
  readonly availableBytes: number;
  /** Capacity less available, of capacity: the reserve counts as used. */
  readonly usedPercent: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

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
