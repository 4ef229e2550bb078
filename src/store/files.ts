// The files of the state directory. Each function throws the error of node:fs with its `code`, except where a result says so.

import {
  chmodSync,
  closeSync,
  copyFileSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

const statOf = (path: string) => statSync(path, { bigint: true, throwIfNoEntry: false });

export const files = {
  /** With its parents; does nothing if it exists. */
  makeDirectory: (path: string, mode: number) => void mkdirSync(path, { recursive: true, mode }),
  /** Creates an empty file if there is none. */
  createFile: (path: string, mode: number) => closeSync(openSync(path, "a", mode)),
  /** `null` if it does not exist. Throws if that cannot be determined. */
  sizeBytes: (path: string): number | null =>
    statSync(path, { throwIfNoEntry: false })?.size ?? null,
  /** Distinguishes a file from another that replaced it; `null` if it does not exist. */
  identity: (path: string): string | null => {
    const found = statOf(path);
    return found === undefined ? null : `${found.dev}:${found.ino}`;
  },
  /** Changes whenever the file is written, replaced or restored; `null` if it does not exist. */
  stamp: (path: string): string | null => {
    const found = statOf(path);
    return found === undefined ? null : `${found.dev}:${found.ino}:${found.size}:${found.ctimeNs}`;
  },
  /** `null` if it cannot be read. */
  text: (path: string): string | null => {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return null;
    }
  },
  write: (path: string, text: string) => writeFileSync(path, text, { mode: 0o600 }),
  rename: (from: string, to: string) => renameSync(from, to),
  remove: (path: string) => unlinkSync(path),
  /** Removes the file, if there is one, also from the disk. */
  removeForGood: (path: string) => {
    try {
      unlinkSync(path);
    } catch (error) {
      // Another process may have removed it just now.
      if (statOf(path) === undefined) return;
      throw error;
    }
    const directory = openSync(dirname(path), "r");
    try {
      fsyncSync(directory);
    } finally {
      closeSync(directory);
    }
  },
  names: (directory: string): readonly string[] => readdirSync(directory),
  /** Copies files into a fresh private directory and returns its path. */
  copyAside: (paths: readonly string[]): string => {
    const directory = mkdtempSync(join(tmpdir(), "crigc-"));
    try {
      for (const path of paths) {
        const copy = join(directory, basename(path));
        copyFileSync(path, copy);
        chmodSync(copy, 0o600);
      }
    } catch (error) {
      // A full disk must not become fuller with each attempt.
      files.dropCopy(directory);
      throw error;
    }
    return directory;
  },
  /** Removes what `copyAside` made. */
  dropCopy: (directory: string) => rmSync(directory, { recursive: true, force: true }),
};
