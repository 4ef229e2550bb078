// Executables: what they are, whether they can run, running one to its end, and the operator's hook for events.

import { accessSync, closeSync, constants, openSync, readSync, statSync } from "node:fs";
import { kill } from "node:process";

import { HostError, messageOf } from "../model/errors.ts";
import { codeOf, hostError, reasonOf } from "./files.ts";

/** `null`: it can be run. */
export function executableFault(path: string): string | null {
  try {
    if (!statSync(path).isFile()) return "it is not a regular file";
    accessSync(path, constants.X_OK);
    return null;
  } catch (error) {
    return codeOf(error) === "EACCES" ? "it is not executable" : reasonOf(error);
  }
}

/** As long as a service may take to stop, and a little more. */
const COMMAND_TIMEOUT_MS = 200_000;

/** Throws with the command's output if it failed. */
export async function runCommand(command: readonly string[]): Promise<void> {
  const failed = (reason: string, cause?: unknown): HostError =>
    new HostError(
      "refused",
      `cannot run ${command.join(" ")}: ${reason}; run it by hand to see why`,
      { cause },
    );
  try {
    const child = Bun.spawn([...command], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: COMMAND_TIMEOUT_MS,
    });
    const [stdout, stderr, code] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ]);
    if (code === 0) return;
    const said = `${stderr}\n${stdout}`.trim().split("\n").slice(0, 5).join(" ");
    throw failed(said === "" ? `it exited with ${child.signalCode ?? code}` : said);
  } catch (error) {
    throw error instanceof HostError ? error : failed(messageOf(error), error);
  }
}

const ELF_MAGIC = 0x7f454c46;
const CLASS_64 = 2;
const LITTLE_ENDIAN = 1;
const LOADER_SEGMENT = 3;
/** Headers and the loader's name are at the start of every executable that a linker writes. */
const HEAD_BYTES = 16 * 1024;

/** Whether the file is a Linux executable, rather than an archive or a web page. */
export function isElf(path: string): boolean {
  const head = headOf(path);
  return head.byteLength >= 4 && head.getUint32(0) === ELF_MAGIC;
}

/**
 * The loader that an executable needs, which shows whether it can run in a root filesystem:
 * `/lib64/ld-linux-x86-64.so.2`, `/lib/ld-musl-x86_64.so.1`; `null` if it needs none or is not a 64-bit ELF file.
 */
export function loaderOf(path: string): string | null {
  const head = headOf(path);
  if (head.byteLength < 64 || head.getUint32(0) !== ELF_MAGIC) return null;
  if (head.getUint8(4) !== CLASS_64 || head.getUint8(5) !== LITTLE_ENDIAN) return null;
  const first = Number(head.getBigUint64(32, true));
  const size = head.getUint16(54, true);
  const count = head.getUint16(56, true);
  for (let index = 0; index < count; index += 1) {
    const at = first + index * size;
    if (at + 56 > head.byteLength) return null;
    if (head.getUint32(at, true) !== LOADER_SEGMENT) continue;
    const start = Number(head.getBigUint64(at + 8, true));
    const length = Number(head.getBigUint64(at + 32, true));
    if (start + length > head.byteLength) return null;
    return Buffer.from(head.buffer, start, length).toString().replace(/\0.*$/s, "");
  }
  return null;
}

/** Throws `HostError`. */
function headOf(path: string): DataView {
  try {
    const bytes = new Uint8Array(HEAD_BYTES);
    const file = openSync(path, "r");
    try {
      return new DataView(bytes.buffer, 0, readSync(file, bytes, 0, HEAD_BYTES, 0));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw hostError(
      "read",
      error,
      (why) => `cannot read the executable ${path}: ${why}; use one from a release`,
    );
  }
}

const CONCURRENCY = 2;
const WAITING_MAX = 50;
const CALL_MS = 10_000;
/** A hanging hook must not delay the exit, for which a service manager may wait. */
const CLOSE_MS = 2_000;

interface Call {
  readonly executable: string;
  readonly text: string;
}

/** A hook that fails, hangs or is missing is only reported. */
export class EventHook {
  readonly #failed: (message: string) => void;
  readonly #limitMs: number;
  readonly #waiting: Call[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #children = new Set<Bun.Subprocess>();
  #dropped = 0;
  #isClosed = false;
  #isHurried = false;

  constructor(failed: (message: string) => void, limitMs: number = CALL_MS) {
    this.#failed = failed;
    this.#limitMs = limitMs;
  }

  /** Returns at once. If too many are waiting, drops the oldest. */
  send(executable: string, text: string): void {
    if (this.#isClosed) return;
    this.#waiting.push({ executable, text });
    if (this.#waiting.length > WAITING_MAX) {
      this.#waiting.shift();
      this.#dropped += 1;
    }
    this.#next();
  }

  /** Accepts no more events, and resolves when the pending ones are done, or after `patienceMs` for all of them. */
  async close(patienceMs: number = CLOSE_MS): Promise<void> {
    this.#isClosed = true;
    const enough = setTimeout(() => {
      this.#isHurried = true;
      this.#dropped += this.#waiting.splice(0).length;
      for (const child of this.#children) killProcessGroup(child);
    }, patienceMs);
    // Each turn ends at least one of a bounded number of calls.
    while (this.#running.size > 0) await Promise.race(this.#running);
    clearTimeout(enough);
  }

  #next(): void {
    while (this.#running.size < CONCURRENCY) {
      const call = this.#waiting.shift();
      if (call === undefined) break;
      const running = this.#run(call).finally(() => {
        this.#running.delete(running);
        this.#next();
      });
      this.#running.add(running);
    }
    if (this.#dropped === 0 || this.#waiting.length > 0) return;
    this.#failed(`the event hook is too slow: dropped ${this.#dropped} events`);
    this.#dropped = 0;
  }

  async #run({ executable, text }: Call): Promise<void> {
    let child: Bun.Subprocess;
    try {
      child = Bun.spawn([executable], {
        stdin: new Blob([text]),
        stdout: "ignore",
        stderr: "ignore",
        // Its own process group, so that its child processes end with it.
        detached: true,
      });
    } catch (error) {
      const why = `${reasonOf(error)}; check that it and its interpreter can be run`;
      return this.#failed(`cannot start the event hook ${executable}: ${why}`);
    }
    this.#children.add(child);
    const tooLong = setTimeout(() => killProcessGroup(child), this.#limitMs);
    const exitCode = await child.exited;
    clearTimeout(tooLong);
    this.#children.delete(child);
    if (child.signalCode === "SIGKILL") {
      const when = this.#isHurried ? "when crigc stopped" : `after ${this.#limitMs} ms`;
      this.#failed(
        `the event hook ${executable} was killed ${when}, with its child processes; make it faster, or hand the work to another service`,
      );
    } else if (exitCode !== 0)
      this.#failed(
        `the event hook ${executable} failed with exit code ${exitCode}; run it by hand to see why`,
      );
  }
}

/** An ended process is left alone: its PID may have been reused. */
function killProcessGroup({ pid, exitCode, signalCode }: Bun.Subprocess): void {
  if (exitCode !== null || signalCode !== null) return;
  try {
    kill(-pid, "SIGKILL");
  } catch {
    // It has just ended; nothing is left to kill.
  }
}
