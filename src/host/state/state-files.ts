// The files of the state directory, for the store: made private, moved, listed and copied.

import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/** As declared in store/ports.ts. Every function throws the error of node:fs. */
export const stateFiles = {
  makeDirectory: (path: string, mode: number): void => {
    mkdirSync(path, { recursive: true, mode });
  },
  createFile: (path: string, mode: number): void => {
    closeSync(openSync(path, "a", mode));
  },
  sizeBytes: (path: string): number | null =>
    statSync(path, { throwIfNoEntry: false })?.size ?? null,
  identity: (path: string): string | null => {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? null : `${found.dev}:${found.ino}`;
  },
  rename: (from: string, to: string): void => renameSync(from, to),
  remove: (path: string): void => unlinkSync(path),
  names: (directory: string): readonly string[] => readdirSync(directory),
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
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
    return directory;
  },
  dropCopy: (directory: string): void => rmSync(directory, { recursive: true, force: true }),
} as const;
