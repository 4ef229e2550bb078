/** Directories of the node: whether one is usable, and which of a filesystem are the largest. */

import { accessSync, constants, lstatSync, statfsSync, statSync } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";

import type { DirectorySize, DirectoryWalk } from "../model/reports.ts";
import type { DiskReading } from "../model/snapshot.ts";
import { compared, mapBounded } from "../model/values.ts";
import { readingOf } from "./disk.ts";
import { codeOf, reasonOf } from "./files.ts";

export type DirectoryFact =
  | ({ readonly kind: "present"; readonly writable: boolean } & Omit<DiskReading, "capacityBytes">)
  /** `creatable`: the nearest existing parent directory is writable. */
  | { readonly kind: "absent"; readonly creatable: boolean }
  | { readonly kind: "failed"; readonly message: string };

/** Whether a directory exists, is writable and has free space; writes nothing. */
export function directoryFact(path: string): DirectoryFact {
  try {
    if (!statSync(path).isDirectory()) return { kind: "failed", message: "it is not a directory" };
    const reading = readingOf(statfsSync(path, { bigint: true }));
    return { kind: "present", writable: isWritable(path), ...reading };
  } catch (error) {
    if (codeOf(error) !== "ENOENT") return { kind: "failed", message: reasonOf(error) };
    return isLink(path)
      ? { kind: "failed", message: "it is a link to a directory that does not exist" }
      : { kind: "absent", creatable: isCreatable(path) };
  }
}

/** A link that leads nowhere is in the way of a new directory. */
const isLink = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;

function isCreatable(path: string): boolean {
  for (let above = dirname(path); ; above = dirname(above)) {
    const found = statSync(above, { throwIfNoEntry: false });
    if (found !== undefined) return found.isDirectory() && isWritable(above);
    if (isLink(above) || above === dirname(above)) return false;
  }
}

/** By the kernel, which refuses on a read-only mount even to root. */
function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Entries read in parallel, on each of the first levels: enough to keep a disk busy, few enough to share it. */
const CONCURRENCY = 4;
/** Maximum depth of a reported directory; what is deeper counts towards its ancestor. */
const SHOWN_DEPTH = 3;
/** A directory is replaced by its subdirectories if these explain most of it. */
const EXPLAINED_PERCENT = 80n;

/** A file of this size is reported by its name. */
const FILE_SHOWN_BYTES = 64n << 20n;

interface WalkOptions {
  readonly withinMs: number;
  /** Directories to exclude. */
  readonly apart: readonly string[];
  /** Maximum number of directories and large files reported. */
  readonly most: number;
}

/**
 * Adds up the disk usage below `root`, without links and other filesystems, counting a hard-linked file once. Ends after
 * `withinMs` with the sums so far. Unreadable directories count nothing.
 */
export async function walkDirectories(
  root: string,
  { withinMs, apart, most }: WalkOptions,
  signal: AbortSignal,
): Promise<DirectoryWalk> {
  const factsOf = (path: string) => lstat(path, { bigint: true }).catch(() => null);
  const start = await factsOf(root);
  if (start === null) return { complete: false, directories: [], bytes: 0n };
  const endsAt = performance.now() + withinMs;
  let complete = true;
  const linked = new Set<bigint>();

  /** What is in a directory: all of it, and what is worth a line. */
  async function within(directory: string, depth: number): Promise<Within> {
    const sum: Within = { bytes: 0n, files: 0n, shown: [] };
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    await mapBounded(entries, depth < SHOWN_DEPTH ? CONCURRENCY : 1, async (entry) => {
      complete &&= !signal.aborted && performance.now() < endsAt;
      const path = join(directory, entry.name);
      const facts = complete && !apart.includes(path) ? await factsOf(path) : null;
      if (facts === null || facts.dev !== start?.dev || linked.has(facts.ino)) return;
      if (!entry.isDirectory() && facts.nlink > 1n) linked.add(facts.ino);
      const inside = entry.isDirectory() ? await within(path, depth + 1) : null;
      const bytes = facts.blocks * 512n + (inside?.bytes ?? 0n);
      sum.bytes += bytes;
      if (depth >= SHOWN_DEPTH) return;
      const deeper = inside?.shown ?? [];
      const explained = deeper.reduce((total, it) => total + it.bytes, 0n);
      if (explained > 0n && explained * 100n >= bytes * EXPLAINED_PERCENT)
        sum.shown.push(...deeper);
      else if (inside !== null || bytes >= FILE_SHOWN_BYTES) sum.shown.push({ path, bytes });
      else sum.files += bytes;
    });
    return sum;
  }

  const { bytes, files, shown } = await within(root, 0);
  const directories = [...shown, { path: root, bytes: files }]
    .filter((it) => it.bytes > 0n)
    .toSorted((one, other) => compared(other.bytes, one.bytes))
    .slice(0, most);
  return { complete, directories, bytes };
}

interface Within {
  bytes: bigint;
  /** Of files that are not worth a line of their own. */
  files: bigint;
  readonly shown: DirectorySize[];
}
