// A directory of its own for a test, gone when the test file ends.

import { afterAll } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A fresh directory; `under` puts it on another filesystem. */
export function scratch(under: string = tmpdir()): string {
  const directory = mkdtempSync(join(under, "crigc-test-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A file with its directories; returns its path. */
export function put(directory: string, name: string, content = "", mode = 0o644): string {
  const path = join(directory, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}
