/** Changes a keep file under a lock, so that concurrent commands lose no change. */

import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

import { HostError } from "../model/errors.ts";
import { asRoot, codeOf, hostError, writeWholeFile } from "./files.ts";
import { tryFlock, unlockFlock } from "./libc.ts";

/** The new text of a file, and a result. */
export interface TextChange<T> {
  /** `null`: leave it as it is. */
  readonly text: string | null;
  readonly answer: T;
}

/**
 * `change` gets `null` if the file does not exist; of a link, its target is changed. Throws `HostError` `read` or `write`,
 * and what `change` throws.
 */
export function changeKeepFile<T>(
  named: string,
  change: (before: string | null) => TextChange<T>,
  waitMs = 10_000,
): T {
  const path = targetOf(named);
  const fd = lockDotfile(path, waitMs);
  try {
    const { text, answer } = change(readKeepFile(path));
    if (text !== null) writeWholeFile(path, text);
    return answer;
  } finally {
    unlockFlock(fd);
    closeSync(fd);
  }
}

function targetOf(path: string): string {
  try {
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return isLink ? realpathSync(path) : path;
  } catch (error) {
    throw hostError(
      "write",
      error,
      (why) => `cannot write ${path}: the target of the link: ${why}`,
    );
  }
}

export function readKeepFile(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw hostError("read", error, (why) => `cannot read ${path}: ${why}${asRoot(error)}`);
  }
}

const PAUSE_MS = 20;

/**
 * A dotfile, which keep directories ignore, and unreadable to others, who could hold a lock on the directory itself
 * forever.
 */
function lockDotfile(path: string, waitMs: number): number {
  const lock = join(dirname(path), `.${basename(path)}.lock`);
  let fd: number;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    fd = openSync(lock, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  } catch (error) {
    throw hostError("write", error, (why) => `cannot write ${path}: ${why}${asRoot(error)}`);
  }
  const why = lockWithin(fd, waitMs);
  if (why === null) return fd;
  closeSync(fd);
  throw new HostError("write", `cannot write ${path}: ${why}`);
}

/** `null`: locked. */
function lockWithin(fd: number, waitMs: number): string | null {
  for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
    const result = tryFlock(fd);
    if (result.kind === "locked") return null;
    if (result.kind === "failed") return `the filesystem refuses locks (error ${result.errno})`;
    if (waitedMs >= waitMs) return "another crigc is changing it; try again";
    Bun.sleepSync(PAUSE_MS);
  }
}
