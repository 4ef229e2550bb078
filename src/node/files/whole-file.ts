/** Writes a file atomically: a reader finds the old content or the new one, even after a crash. */

import { randomBytes } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

import { HostError } from "../../model/errors.ts";
import { asRoot, reasonOf } from "./errno.ts";

/** Creates parent directories. An existing file keeps its mode. Throws `HostError` `write`. */
export function writeWholeFile(path: string, text: string): void {
  // A dotfile in the same directory: keep directories ignore those, and renaming stays within one filesystem.
  const draft = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}`);
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    const existing = statSync(path, { throwIfNoEntry: false });
    write(draft, text, existing === undefined ? 0o644 : existing.mode & 0o777);
    renameSync(draft, path);
    syncDirectory(dirname(path));
  } catch (error) {
    dropped(draft);
    throw new HostError("write", `cannot write ${path}: ${reasonOf(error)}${asRoot(error)}`, {
      cause: error,
    });
  }
}

/** The draft does not exist if its directory cannot be entered; the write error is what gets reported. */
function dropped(draft: string): void {
  try {
    rmSync(draft, { force: true });
  } catch {}
}

function write(path: string, text: string, mode: number): void {
  const file = openSync(path, "wx", mode);
  try {
    const bytes = new TextEncoder().encode(text);
    for (let offset = 0; offset < bytes.length;)
      offset += writeSync(file, bytes, offset, bytes.length - offset);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
