/** Runs crigc itself several times at once, one process for each list of arguments, on all processors. */

import { availableParallelism } from "node:os";

import { HostError, usageError } from "../model/errors.ts";
import { mapBounded } from "../model/values.ts";

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
