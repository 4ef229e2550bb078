// Everything on a test node that the program could write to, with times, so that a command that must not write is caught.
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

import type { ContainerdNode } from "./node.ts";

/**
 * Paths with inode, size and times of change, down to the nanosecond. The runtime's own directories are left out, and so
 * is its log; that it removed nothing is for its lists to show.
 */
export function footprintOf(node: ContainerdNode): Readonly<Record<string, string>> {
  const runtimes = [
    join(node.directory, "state"),
    join(node.directory, "containerd.log"),
    join(node.imageDisk.path, "containerd"),
    ...[node.disk, node.imageDisk].map(({ imageFile }) => imageFile),
  ];
  return filesBelow(node.directory, new Set(runtimes));
}

function filesBelow(
  top: string,
  except: ReadonlySet<string>,
  found: Record<string, string> = {},
): Readonly<Record<string, string>> {
  const facts = lstatSync(top, { bigint: true, throwIfNoEntry: false });
  if (facts === undefined || except.has(top)) return found;
  found[top] = [facts.ino, facts.mode, facts.size, facts.mtimeNs, facts.ctimeNs].join(" ");
  if (facts.isDirectory())
    for (const name of readdirSync(top)) filesBelow(join(top, name), except, found);
  return found;
}
