// This process on the machine: its figures for metrics, its memory and compilation, its inherited signals; and several of its
// program at once.

import { gcAndSweep } from "bun:jsc";
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { memoryUsage, resourceUsage } from "node:process";

import { HostError, usageError } from "../model/errors.ts";
import type { ProcessFigures } from "../model/ports.ts";
import { mapBounded } from "../model/values.ts";
import { procText } from "./files.ts";

export function processFigures(): ProcessFigures {
  const usage = resourceUsage();
  return {
    cpuSeconds: (usage.userCPUTime + usage.systemCPUTime) / 1e6,
    residentBytes: residentMemory(),
    openFiles: orNull(() => readdirSync("/proc/self/fd").length),
  };
}

/** In bytes; null where `/proc` is not mounted, the kernel's only place for it. */
const residentMemory = (): number | null => orNull(() => memoryUsage.rss());

function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** More than a small node needs, and than an agent's pass leaves that finds nothing: they cause no collections. */
const GROWTH_BYTES = 16 * 1024 * 1024;

/**
 * The result is called for work that allocates, and checks the memory once the weights add up to 1; a check takes
 * microseconds. While the machine has memory to spare, the engine starts a full collection only once allocations equal
 * the live heap; on a large node that is a hundred megabytes. It also leaves dead strings in place until something new
 * takes their memory, unless they are swept.
 */
export function growthCollector(
  residentBytes: () => number | null,
  collect: () => void,
): (weight?: number) => void {
  let done = 1;
  let lowest = Infinity;
  return (weight = 1) => {
    done += weight;
    if (done < 1) return;
    done = 0;
    const resident = residentBytes();
    if (resident === null) return;
    lowest = Math.min(lowest, resident);
    if (resident - lowest < GROWTH_BYTES) return;
    collect();
    lowest = residentBytes() ?? resident;
  };
}

const SETTLED_MS = 10_000;
let settling: Timer | undefined;

/**
 * Frees memory once nothing has made the process grow for 10 s. It discards compiled code, too, whose caches keep dead
 * values alive (on a large node tens of megabytes, whatever is collected); code that runs again is loaded again.
 */
export function shrinkOnceSettled(): void {
  clearTimeout(settling);
  settling = setTimeout(() => Bun.shrink(), SETTLED_MS);
  settling.unref();
}

/** For this process. */
export const collectIfGrown = growthCollector(residentMemory, () => {
  gcAndSweep();
  shrinkOnceSettled();
});

/** More runtime calls within the window than a small node causes. */
const BUSY_CALLS = 500;
const BUSY_WINDOW_MS = 10_000;

/**
 * Counts calls, and work worth several. Once there are many, hot code is compiled as early as usual: by default the
 * executable rarely compiles (the `--compile-jit-policy` of `scripts/build`), which suits short commands and an idle
 * agent.
 */
export function compileWhenBusy(
  nowMs: () => number,
  compile: () => void = () => Bun.unsafe.setJITPolicy(1),
): (calls?: number) => void {
  let calls = 0;
  let startedMs = nowMs();
  return (more = 1) => {
    if (calls >= BUSY_CALLS) return;
    if (nowMs() - startedMs > BUSY_WINDOW_MS) [calls, startedMs] = [0, nowMs()];
    calls += more;
    if (calls >= BUSY_CALLS) compile();
  };
}

/** The bit of SIGHUP in the kernel's masks of signals. */
const HANGUP = 1n;

/**
 * Whether a closing terminal is to be ignored, as nohup asks; a handler of ours would undo that, so call it before
 * setting one. `false` if unknown.
 */
export function ignoresHangup(proc = "/proc"): boolean {
  const mask = /^SigIgn:\s*([0-9a-f]+)$/m.exec(procText(`${proc}/self/status`))?.[1];
  return mask !== undefined && (BigInt(`0x${mask}`) & HANGUP) !== 0n;
}

/** Its exit code for what is wrong with the command line or a file that it names. */
const USAGE = 2;

const STOPPED = (): HostError => new HostError("read", "stopped by a signal");

export interface Job {
  /** What it is about, for errors: a file. */
  readonly subject: string;
  readonly args: readonly string[];
}

/** What each prints, in the order of the jobs. Rejects with the first that fails. */
export const sideBySide = (
  program: readonly string[],
  jobs: readonly Job[],
  signal: AbortSignal,
): Promise<readonly string[]> =>
  mapBounded(jobs, availableParallelism(), async ({ subject, args }) => {
    if (signal.aborted) throw STOPPED();
    const child = Bun.spawn([...program, ...args], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      signal,
    });
    const [text, errors, code] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ]);
    if (code === 0) return text;
    if (signal.aborted) throw STOPPED();
    const why = errors.trim().replace(/^crigc: /, "");
    if (code === USAGE) throw usageError("crigc simulate", subject, why);
    throw new HostError("read", `${subject}: ${why === "" ? `it ended with ${code}` : why}`);
  });
