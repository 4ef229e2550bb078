// Deletes a directory with everything in it, by handles: follows no link, enters no mount.

import { HostError } from "../../model/errors.ts";
import { type Directory, type EntryName, ifThere } from "../files/directory.ts";

/** The kubelet's layout is two levels deep; the rest is for what containers may have written there. */
const DEPTH_MAX = 32;
/** A directory with more entries is not a log directory. */
const ENTRIES_MAX = 1_000_000;

export interface Deleted {
  /** Relative to the directory's parent; without directories. */
  readonly names: string[];
  bytes: bigint;
}

/** Throws if something cannot be deleted, after deleting what comes before it. */
export async function deleteTree(parent: Directory, name: string): Promise<Deleted> {
  const deleted: Deleted = { names: [], bytes: 0n };
  await deleteDirectory({ parent, name, path: name, depth: 0 }, deleted);
  return deleted;
}

interface Place {
  readonly parent: Directory;
  readonly name: EntryName;
  /** As text. */
  readonly path: string;
  readonly depth: number;
}

async function deleteDirectory(place: Place, deleted: Deleted): Promise<void> {
  const { parent, name, path, depth } = place;
  if (depth > DEPTH_MAX) {
    throw refused(path, `it is more than ${DEPTH_MAX} directories deep`);
  }
  {
    await using directory = await ifThere(parent.openBelow(name));
    if (directory === undefined) return;
    if (!(await directory.isOnMountOf(parent))) {
      throw refused(path, "something is mounted there");
    }
    for (const entry of await directory.entries()) {
      const below: Place = {
        parent: directory,
        name: entry.raw,
        path: `${path}/${entry.name}`,
        depth: depth + 1,
      };
      await (entry.kind === "directory"
        ? deleteDirectory(below, deleted)
        : deleteEntry(below, deleted));
    }
  }
  await ifThere(parent.removeDirectory(name));
}

async function deleteEntry({ parent, name, path }: Place, deleted: Deleted): Promise<void> {
  if (deleted.names.length >= ENTRIES_MAX) {
    throw refused(path, `more than ${ENTRIES_MAX} entries were deleted already`);
  }
  const facts = await ifThere(parent.facts(name));
  if (facts === undefined) return;
  await ifThere(parent.unlink(name));
  deleted.names.push(path);
  deleted.bytes += facts.bytes;
}

const refused = (path: string, why: string): HostError =>
  new HostError(
    "refused",
    `refusing to delete ${path} in the pod logs: ${why}; check it and delete it by hand`,
  );
