/** Commits a filesystem in a separate process, because `syncfs` hangs with its disk. */

import { openSync } from "node:fs";

import { syncfs } from "../process/libc.ts";
import { timer } from "../time/timer.ts";

/** Space that has not appeared by then appears with a later commit. */
const COMMIT_MS = 5_000;

/** `command`: runs `commitHere` for the path that follows it. The result never rejects. */
export function commitBy(
  command: readonly string[],
  limitMs = COMMIT_MS,
): (path: string) => Promise<void> {
  const running = new Set<string>();
  return async (path) => {
    // A process that hangs cannot be killed, so there is at most one for each path.
    if (running.has(path)) return;
    const ended = new AbortController();
    try {
      const child = Bun.spawn([...command, path], {
        stdio: ["ignore", "ignore", "ignore"],
        cwd: "/",
        env: {},
      });
      running.add(path);
      child.unref();
      void child.exited.then(() => {
        running.delete(path);
        ended.abort();
      });
      await timer.sleep(limitMs, ended.signal);
      if (!ended.signal.aborted) child.kill("SIGKILL");
    } catch {
      // Without another process, space appears with the filesystem's own commit.
    }
  };
}

/** The whole work of that process. */
export const commitHere = (path: string): boolean => syncfs(openSync(path, "r"));
