// The operator's hook for events: whether it can run, and running it.

import { accessSync, constants, statSync } from "node:fs";
import { kill } from "node:process";

import { codeOf, reasonOf } from "./files.ts";

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
