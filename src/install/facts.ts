/** The state of a file tree at the paths of an installation, gathered before anything is decided. */

import type { Found, RootedTree } from "../host/files/rooted-tree.ts";
import { type Manifest, parseManifest } from "./manifest.ts";
import { installed, parentsOf } from "./paths.ts";

/** Missing paths do not exist. */
export type Facts = ReadonlyMap<string, Found>;

/** The paths and all their parents. */
export async function factsOf(tree: RootedTree, paths: readonly string[]): Promise<Facts> {
  const facts = new Map<string, Found>();
  const all = new Set(paths.flatMap((path) => [...parentsOf(path), path]));
  for (const path of all) facts.set(path, await tree.look(path));
  return facts;
}

export async function manifestIn(tree: RootedTree): Promise<Manifest | null> {
  const text = await tree.readText(installed.manifest);
  return text === null ? null : parseManifest(text);
}
