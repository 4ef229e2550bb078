// The files of the state directory, for the store: made private, moved, listed and copied.

import {
  chmodSync,
  closeSync,
  copyFileSync,
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

import type { StateFiles } from "../model/ports.ts";
import { codeOf, syncDirectory } from "./files.ts";

export const stateFiles: StateFiles = {
  makeDirectory: (path, mode) => void mkdirSync(path, { recursive: true, mode }),
  createFile: (path, mode) => closeSync(openSync(path, "a", mode)),
  sizeBytes: (path) => statSync(path, { throwIfNoEntry: false })?.size ?? null,
  identity: (path) => {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? null : `${found.dev}:${found.ino}`;
  },
  stamp: (path) => {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (found === undefined) return null;
    return `${found.dev}:${found.ino}:${found.size}:${found.ctimeNs}`;
  },
  text: (path) => {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return null;
    }
  },
  write: (path, text) => writeFileSync(path, text, { mode: 0o600 }),
  rename: (from, to) => renameSync(from, to),
  remove: (path) => unlinkSync(path),
  removeForGood: (path) => {
    try {
      unlinkSync(path);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return;
      throw error;
    }
    syncDirectory(dirname(path));
  },
  names: (directory) => readdirSync(directory),
  copyAside: (paths) => {
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
  dropCopy: (directory) => rmSync(directory, { recursive: true, force: true }),
};
