/** Detects the init system of a tree, and whether it is running. */

import type { RootedTree } from "../host/files/rooted-tree.ts";
import { HostError } from "../model/errors.ts";
import type { Init } from "./manifest.ts";

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

/** Exists in every tree that can start a program. */
const SYSTEM_SIGNS = ["/etc/os-release", "/usr/lib/os-release", "/lib", "/usr/lib", "/bin/sh"];

/** Whether the tree contains no system, as an overlay or a staging directory. */
export async function isOverlay(tree: RootedTree): Promise<boolean> {
  const found = await Promise.all(SYSTEM_SIGNS.map((path) => tree.look(path)));
  return found.every(({ kind }) => kind === "absent");
}

/** Created by the init system at boot, so absent in a container or a tree being built. */
const RUNNING: Readonly<Record<Init, string>> = {
  systemd: "/run/systemd/system",
  openrc: "/run/openrc/softlevel",
  none: "/nonexistent",
};

export const isRunning = async (init: Init, tree: RootedTree): Promise<boolean> =>
  (await tree.look(RUNNING[init])).kind !== "absent";
