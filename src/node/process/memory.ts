/** Makes the engine collect garbage before it doubles the size of the process. */

import { gcAndSweep } from "bun:jsc";
import { memoryUsage } from "node:process";

/** More than a small node needs, and than an agent's pass leaves that finds nothing: they cause no collections. */
const GROWTH_BYTES = 16 * 1024 * 1024;
/** Of a process this large, until so long after a collection, less growth is enough: it reads or collects a large node. */
const LARGE_BYTES = 136 * 1024 * 1024;
const GROWING_MS = 5_000;
const GROWTH_BYTES_GROWING = 8 * 1024 * 1024;
/** Checking takes microseconds. */
const LOOK_EACH = 32;

/**
 * The result is called for work that allocates: calls, rows read. While the machine has memory to spare, the engine
 * starts a full collection only once allocations equal the live heap; on a large node that is a hundred megabytes. It
 * also leaves dead strings in place until something new takes their memory, unless they are swept.
 */
export function collectWhenGrown(
  residentBytes: () => number | null = residentMemory,
  collect: () => unknown = gcAndSweep,
  nowMs: () => number = () => performance.now(),
): (worth?: number) => void {
  let worked = LOOK_EACH;
  let lowest = Infinity;
  let growingUntilMs = 0;
  return (worth = 1) => {
    worked += worth;
    if (worked < LOOK_EACH) return;
    worked = 0;
    const resident = residentBytes();
    if (resident === null) return;
    lowest = Math.min(lowest, resident);
    const isGrowing = resident > LARGE_BYTES && nowMs() < growingUntilMs;
    if (resident - lowest < (isGrowing ? GROWTH_BYTES_GROWING : GROWTH_BYTES)) return;
    collect();
    growingUntilMs = nowMs() + GROWING_MS;
    lowest = residentBytes() ?? resident;
  };
}

/** In bytes; null where `/proc` is not mounted, since the kernel tells it there only. */
export function residentMemory(): number | null {
  try {
    return memoryUsage.rss();
  } catch {
    return null;
  }
}

/** For this process. */
export const giveBack = collectWhenGrown();
/** Work that is worth a check by itself. */
export const MUCH = LOOK_EACH;
