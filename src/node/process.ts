// This process's use of the machine, for metrics.

import { gcAndSweep } from "bun:jsc";
import { readdirSync } from "node:fs";
import { memoryUsage, resourceUsage } from "node:process";

import type { ProcessFigures } from "../model/ports.ts";
import { procText } from "./files.ts";

export function processFigures(): ProcessFigures {
  const usage = resourceUsage();
  return {
    cpuSeconds: (usage.userCPUTime + usage.systemCPUTime) / 1e6,
    residentBytes: residentMemory(),
    openFiles: openFiles(),
  };
}

function openFiles(): number | null {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return null;
  }
}

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

/** More runtime calls within the window than a small node causes. */
const CALLS = 500;
const WINDOW_MS = 10_000;

/** Counts calls, and work worth several. Once there are many, hot code is compiled as early as usual. */
export function compileWhenBusy(
  nowMs: () => number,
  compile = usualCompilation,
): (calls?: number) => void {
  let calls = 0;
  let startedMs = nowMs();
  let isBusy = false;
  return (more = 1) => {
    if (isBusy) return;
    if (nowMs() - startedMs > WINDOW_MS) {
      calls = 0;
      startedMs = nowMs();
    }
    calls += more;
    if (calls < CALLS) return;
    isBusy = true;
    compile();
  };
}

/** Reverts the `--compile-jit-policy` of `scripts/build`. */
const usualCompilation = (): void => Bun.unsafe.setJITPolicy(1);

/** The bit of SIGHUP in the kernel's masks of signals. */
const HANGUP = 1n;

/** Whether a closing terminal is to be ignored, as nohup asks; `false` where it cannot be told. Asked before any handler is set. */
export function ignoresHangup(proc = "/proc"): boolean {
  const mask = /^SigIgn:\s*([0-9a-f]+)$/m.exec(procText(`${proc}/self/status`))?.[1];
  return mask !== undefined && (BigInt(`0x${mask}`) & HANGUP) !== 0n;
}
