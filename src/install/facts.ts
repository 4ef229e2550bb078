/** The state of a file tree: at the paths of an installation, and its init system; gathered before anything is decided. */

import { HostError } from "../model/errors.ts";
import type { Found, RootedTree } from "../node/rooted-tree.ts";
import { type Init, type Manifest, parseManifest } from "./manifest.ts";
import { installed, parentsOf } from "./paths.ts";

/** Missing paths do not exist. */
export type Facts = ReadonlyMap<string, Found>;

/** The paths and all their parents. */
async function factsOf(tree: RootedTree, paths: readonly string[]): Promise<Facts> {
  const facts = new Map<string, Found>();
  const all = new Set(paths.flatMap((path) => [...parentsOf(path), path]));
  for (const path of all) facts.set(path, await tree.look(path));
  return facts;
}

/** With the copies of the files that are there. */
export async function factsWithCopies(
  tree: RootedTree,
  paths: readonly string[],
  copyOf: (path: string) => string,
): Promise<Facts> {
  const facts = await factsOf(tree, paths);
  const files = paths.filter((path) => factOf(facts, path).kind === "file");
  return new Map([...facts, ...(await factsOf(tree, files.map(copyOf)))]);
}

export const factOf = (facts: Facts, path: string): Found => facts.get(path) ?? { kind: "absent" };

export async function manifestIn(tree: RootedTree): Promise<Manifest | null> {
  const text = await tree.readText(installed.manifest);
  return text === null ? null : parseManifest(text);
}

const SIGNS: readonly (readonly [Init, readonly string[]])[] = [
  ["systemd", ["/usr/lib/systemd/systemd", "/lib/systemd/systemd"]],
  ["openrc", ["/sbin/openrc-run", "/usr/sbin/openrc-run"]],
];

/** Throws if none is found. */
export async function initOf(tree: RootedTree): Promise<Init> {
  for (const [init, paths] of SIGNS) {
    for (const path of paths) {
      if ((await tree.look(path)).kind !== "absent") return init;
    }
  }
  throw new HostError(
    "refused",
    "cannot install: neither systemd nor OpenRC found; set --init, or --init none to start crigc yourself",
  );
}

/** In every tree that could start a program; an overlay may bring a `/usr/lib` with units or settings. */
const SYSTEM_SIGNS: readonly string[] = [
  "/etc/os-release",
  "/usr/lib/os-release",
  "/lib",
  "/bin/sh",
  ...SIGNS.flatMap(([, paths]) => paths),
];

/** Whether no system is in the tree: it is an overlay, or packed into one later. */
export async function isOverlay(tree: RootedTree): Promise<boolean> {
  const found = await Promise.all(SYSTEM_SIGNS.map((path) => tree.look(path)));
  return found.every(({ kind }) => kind === "absent");
}

/** Made by the init system when it boots, so absent in a container or a tree that is being built. */
const RUNNING: Readonly<Record<Init, string>> = {
  systemd: "/run/systemd/system",
  openrc: "/run/openrc/softlevel",
  none: "/nonexistent",
};

export const isRunning = async (init: Init, tree: RootedTree): Promise<boolean> =>
  (await tree.look(RUNNING[init])).kind !== "absent";
