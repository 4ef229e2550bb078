// Directories of the node: whether one is usable, and which of a filesystem are the largest.

import { accessSync, constants, lstatSync, readdirSync, statfsSync, statSync } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";

import type { DirectorySize, DirectoryWalk } from "../model/reports.ts";
import type { DiskReading } from "../model/snapshot.ts";
import { compared, mapBounded } from "../model/values.ts";
import { readingOf } from "./disk.ts";
import { asRoot, codeOf, hostError, reasonOf } from "./files.ts";

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

/** The path itself, or the files of that directory whose names match, sorted. Throws `HostError` `read`. */
export function filesIn(path: string, wanted: RegExp): readonly string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    const names = readdirSync(path).filter((name) => wanted.test(name));
    return names.toSorted().map((name) => join(path, name));
  } catch (error) {
    throw hostError("read", error, (why) => `cannot read ${path}: ${why}${asRoot(error)}`);
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

/** Directories read in parallel: enough to keep a disk busy, few enough to share it. */
const CONCURRENCY = 16;
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
  const start = await lstat(root, { bigint: true }).catch(() => null);
  if (start === null) return { complete: false, directories: [], bytes: 0n };
  const endsAt = performance.now() + withinMs;
  let complete = true;
  const isOver = (): boolean => {
    complete &&= !signal.aborted && performance.now() < endsAt;
    return !complete;
  };
  const excluded = new Set(apart);
  const linked = new Set<bigint>();
  const sizes = new Map<string, bigint>();
  let ownFiles = 0n;
  let level = [root];
  for (let depth = 0; level.length > 0 && !isOver(); depth += 1) {
    const below: string[] = [];
    const bytesOf = async (path: string, isDirectory: boolean): Promise<bigint> => {
      const found = excluded.has(path)
        ? null
        : await lstat(path, { bigint: true }).catch(() => null);
      if (found === null || found.dev !== start.dev) return 0n;
      const bytes = found.blocks * 512n;
      if (isDirectory) below.push(path);
      else if (found.nlink > 1n && linked.has(found.ino)) return 0n;
      else if (found.nlink > 1n) linked.add(found.ino);
      if (isDirectory) return bytes;
      if (bytes >= FILE_SHOWN_BYTES && depth <= SHOWN_DEPTH) sizes.set(path, bytes);
      else if (depth === 0) ownFiles += bytes;
      return bytes;
    };
    await mapBounded(level, CONCURRENCY, async (path) => {
      if (isOver()) return;
      let bytes = 0n;
      for (const entry of await readdir(path, { withFileTypes: true }).catch(() => [])) {
        if (isOver()) break;
        bytes += await bytesOf(join(path, entry.name), entry.isDirectory());
      }
      // The directory and its ancestors, as far as they are reported.
      for (let [at, up] = [path, depth]; up >= 0; [at, up] = [parentOf(at), up - 1])
        if (up <= SHOWN_DEPTH) sizes.set(at, (sizes.get(at) ?? 0n) + bytes);
    });
    level = below;
  }
  const directories = [...explained(sizes, root), { path: root, bytes: ownFiles }]
    .filter(({ bytes }) => bytes > 0n)
    .toSorted((one, other) => compared(other.bytes, one.bytes))
    .slice(0, most);
  return { complete, directories, bytes: sizes.get(root) ?? 0n };
}

/** The directories below the root; one that its subdirectories explain is replaced by them. */
function explained(sizes: ReadonlyMap<string, bigint>, root: string): readonly DirectorySize[] {
  const within = Map.groupBy(
    Array.from(sizes, ([path, bytes]) => ({ path, bytes })).filter(({ path }) => path !== root),
    ({ path }) => parentOf(path),
  );
  const below = (path: string): readonly DirectorySize[] =>
    (within.get(path) ?? []).flatMap((one) => {
      const deeper = below(one.path);
      const sum = deeper.reduce((total, { bytes }) => total + bytes, 0n);
      const isExplained = deeper.length > 0 && sum * 100n >= one.bytes * EXPLAINED_PERCENT;
      return isExplained ? deeper : [one];
    });
  return below(root);
}

const parentOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf("/")));
