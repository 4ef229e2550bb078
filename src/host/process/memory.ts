/** Garbage that is given back before it doubles what the process holds. */

import { fullGC } from "bun:jsc";
import { memoryUsage } from "node:process";

/** What a node of a thousand images needs is below it, so that no collection is made there that would not be made anyway. */
const GROWTH_BYTES = 24 * 1024 * 1024;
/** To look takes microseconds. */
const LOOK_EACH = 32;

/**
 * Is told of work that allocates: of a call, of rows that were read. The engine begins a full collection once as much was
 * allocated as lives, for as long as the machine has memory to spare: of a large node that is a hundred megabytes.
 */
export function collectWhenGrown(
  residentBytes = (): number => memoryUsage.rss(),
  collect: () => unknown = fullGC,
): (worth?: number) => void {
  let worked = LOOK_EACH;
  let lowest = Infinity;
  return (worth = 1) => {
    worked += worth;
    if (worked < LOOK_EACH) return;
    worked = 0;
    const resident = residentBytes();
    lowest = Math.min(lowest, resident);
    if (resident - lowest < GROWTH_BYTES) return;
    collect();
    lowest = residentBytes();
  };
}

/** Of this process. */
export const giveBack = collectWhenGrown();
/** What is worth a look by itself. */
export const MUCH = LOOK_EACH;
