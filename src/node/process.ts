/**
 * This process on the machine: its memory, its compilation and its output. An agent on 10,000 images takes 200 MB, 246 at
 * most; without the collections 218 MB, 409 at most.
 */

import { gcAndSweep } from "bun:jsc";
import { fstatSync, writeFileSync } from "node:fs";
import { memoryUsage } from "node:process";
import { isatty } from "node:tty";

import { procText } from "./files.ts";

/** In bytes; null where `/proc` is not mounted, the kernel's only place for it. */
function residentMemory(): number | null {
  try {
    return memoryUsage.rss();
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

/** Between two steps of work that is not waited for: lets output go out, and collects what it leaves. */
export async function giveBack(): Promise<void> {
  await Bun.sleep(0);
  collectIfGrown();
}

/** More runtime calls within the window than a small node causes. */
const BUSY_CALLS = 500;
const BUSY_WINDOW_MS = 10_000;

/**
 * Counts calls, and work worth several. Once there are many, hot code is compiled as early as usual: by default the
 * executable rarely compiles (the `--compile-jit-policy` of `scripts/build`), which suits short commands and an idle
 * agent. Without it the first pass over 10,000 images takes 19 instead of 10 s of CPU time.
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

type OutputStream = NodeJS.WriteStream & { readonly fd: number };

export class Output {
  readonly #stream: OutputStream;
  readonly #isFile: boolean;
  readonly #wasClosed: boolean;
  #failure: unknown = null;

  constructor(stream: OutputStream) {
    this.#stream = stream;
    this.#isFile = isFile(stream.fd);
    this.#wasClosed = wasClosed(stream.fd);
    stream.on("error", (error: unknown) => this.#note(error));
  }

  /** The first write error; `null` if there was none. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Never throws. Later writes are tried even after a failure: a log continues once its disk has room. */
  write(text: string): void {
    if (this.#wasClosed) this.#note(new Error("it is closed"));
    if (!this.#isFile) {
      this.#stream.write(text, (error) => this.#note(error ?? null));
      return;
    }
    try {
      writeFileSync(this.#stream.fd, text);
    } catch (error) {
      this.#note(error);
    }
  }

  /** Resolves when a pipe has accepted everything: exiting earlier would cut off what is beyond its 64 KiB. */
  async close(): Promise<void> {
    if (!this.#isFile) await new Promise<void>((resolve) => this.#stream.end(() => resolve()));
  }

  #note(error: unknown): void {
    this.#failure ??= error;
  }
}

/**
 * On a file that accepts nothing more (a full disk, /dev/full), Bun's stream loses the error of one write and retries
 * the others forever. Pipes, sockets and terminals still use it: their readers may be slow, and waiting for one must
 * not stop the agent.
 */
function isFile(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return !stats.isFIFO() && !stats.isSocket() && !isatty(fd);
  } catch {
    return true;
  }
}

/** The engine opens /dev/null in the place of a closed descriptor, as one that no process inherits. */
function wasClosed(fd: number): boolean {
  const flags = /^flags:\s*([0-7]+)$/m.exec(procText(`/proc/self/fdinfo/${fd}`))?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) !== 0;
}

const O_CLOEXEC = 0o2000000;

/** Internal command: runs `syncfs` on the path that follows. */
export const COMMIT_PROCESS = "__commit";
