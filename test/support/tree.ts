// A file tree as data, so that two states of it can be compared: kinds, modes, contents, link targets.

import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** By path, relative to the top; times are left out. */
export function treeOf(top: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  const visit = (path: string): void => {
    for (const name of readdirSync(join(top, path)).toSorted()) {
      const below = path === "" ? name : `${path}/${name}`;
      found[below] = entryOf(join(top, below));
      if (found[below].startsWith("directory")) visit(below);
    }
  };
  visit("");
  return found;
}

function entryOf(path: string): string {
  const facts = lstatSync(path);
  const mode = (facts.mode & 0o7777).toString(8);
  const owner = `${facts.uid}:${facts.gid}`;
  if (facts.isSymbolicLink()) return `link ${readlinkSync(path)}`;
  if (facts.isDirectory()) return `directory ${mode} ${owner}`;
  if (!facts.isFile()) return `other ${mode} ${owner}`;
  const sum = createHash("sha256").update(readFileSync(path)).digest("hex").slice(0, 16);
  return `file ${mode} ${owner} ${sum}`;
}

/** What is in `after` and not, or otherwise, in `before`; and what is gone. */
export function changesOf(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const paths = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
  return Object.fromEntries(
    paths
      .filter((path) => before[path] !== after[path])
      .map((path) => [path, after[path] ?? "gone"]),
  );
}
