// Whether anything still asks for the removal of images, judged on what the disks show.

import type { PassKind } from "../../src/model/pass.ts";
import { available, inodesFree, type SimDisk } from "./node.ts";
import type { Simulation } from "./simulation.ts";

/** By the targets that a pass of the kind can have with the thresholds that simulations use. */
export function isNeeded(sim: Simulation, kind: PassKind | null): boolean {
  const { node, weather } = sim;
  const { maximumAge, storeBudgetBytes } = weather.limits.images;
  const disk = node.imageDisk();
  const pressure = kind === "pressure";
  const free = freeShare(sim, disk);
  // A fraction is a float32, as with the kubelet: a threshold is a little more than its percentage.
  if (free.bytes < (pressure ? 15_001n : 20_001n)) return true;
  if (pressure) return free.inodes < 5_001n;
  if (maximumAge > 0n) return true;
  if (storeBudgetBytes === null) return false;
  // The budget counts the sizes that the runtime lists; here it reports no layers.
  const listed = weather.images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
  return listed > storeBudgetBytes;
}

/** In thousandths of a percent. */
function freeShare({ node }: Simulation, disk: SimDisk): { bytes: bigint; inodes: bigint } {
  return {
    bytes: (100_000n * available(node, disk)) / disk.capacity,
    inodes: (100_000n * inodesFree(node, disk)) / disk.inodes,
  };
}
