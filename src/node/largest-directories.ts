// Disk usage of the directories of one filesystem: a walk that follows no links, enters no other filesystem, and ends
// in time.

import type { Dirent } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";

import type { DirectorySize, DirectoryWalk } from "../model/disk-usage.ts";
import { compared } from "../model/values.ts";

/** Entries examined in parallel: enough to keep a disk busy, few enough to share it. */
const CONCURRENCY = 16;
/** Maximum depth of a reported directory; what is deeper counts towards its ancestor. */
const SHOWN_DEPTH = 3;
/** A directory is replaced by its subdirectories if these explain most of it. */
const EXPLAINED_PERCENT = 80n;

/**
 * Adds up the disk usage below `root`, without links and other filesystems, counting a hard-linked file once. Ends after
 * `withinMs` with the sums so far. Unreadable directories count nothing. `apart`: directories to exclude.
 */
export async function walkDirectories(
  root: string,
  options: { readonly withinMs: number; readonly apart: readonly string[]; readonly most: number },
  signal: AbortSignal,
): Promise<DirectoryWalk> {
  const walk = new Walk(root, options, signal);
  const complete = await walk.run();
  return { complete, directories: walk.largest(options.most), bytes: walk.bytesOf(root) };
}

interface Found {
  readonly path: string;
  readonly depth: number;
}

class Walk {
  readonly #root: string;
  readonly #apart: ReadonlySet<string>;
  readonly #signal: AbortSignal;
  readonly #endsAt: number;
  readonly #sizes = new Map<string, bigint>();
  readonly #linked = new Set<bigint>();
  readonly #open: Found[] = [];
  #device = 0n;
  /** Of files directly in the root. */
  #ownFiles = 0n;

  constructor(
    root: string,
    options: { readonly withinMs: number; readonly apart: readonly string[] },
    signal: AbortSignal,
  ) {
    this.#root = root;
    this.#apart = new Set(options.apart);
    this.#signal = signal;
    this.#endsAt = performance.now() + options.withinMs;
  }

  /** `false`: time ran out first. */
  async run(): Promise<boolean> {
    const start = await lstat(this.#root, { bigint: true }).catch(() => null);
    if (start === null) return false;
    this.#device = start.dev;
    this.#open.push({ path: this.#root, depth: 0 });
    let busy = 0;
    const worker = async (): Promise<void> => {
      while (!this.#isOver() && (this.#open.length > 0 || busy > 0)) {
        const next = this.#open.pop();
        if (next === undefined) {
          await Bun.sleep(1);
          continue;
        }
        busy += 1;
        await this.#read(next);
        busy -= 1;
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    return this.#open.length === 0;
  }

  bytesOf(path: string): bigint {
    return this.#sizes.get(path) ?? 0n;
  }

  /** The largest directories; one that its subdirectories explain is replaced by them. The root counts its own files. */
  largest(most: number): readonly DirectorySize[] {
    const within = new Map<string, DirectorySize[]>();
    for (const [path, bytes] of this.#sizes) {
      if (path === this.#root) continue;
      const parent = parentOf(path);
      within.set(parent, [...(within.get(parent) ?? []), { path, bytes }]);
    }
    const explained = (path: string): readonly DirectorySize[] => {
      const inside = (within.get(path) ?? []).flatMap((one) => {
        const deeper = explained(one.path);
        return deeper.length > 0 ? deeper : [one];
      });
      const sum = inside.reduce((total, { bytes }) => total + bytes, 0n);
      const whole = path === this.#root || sum * 100n >= this.bytesOf(path) * EXPLAINED_PERCENT;
      return whole ? inside : [];
    };
    return [...explained(this.#root), { path: this.#root, bytes: this.#ownFiles }]
      .filter(({ bytes }) => bytes > 0n)
      .toSorted((one, other) => compared(other.bytes, one.bytes))
      .slice(0, most);
  }

  async #read({ path, depth }: Found): Promise<void> {
    const entries: readonly Dirent[] = await readdir(path, { withFileTypes: true }).catch(() => []);
    let bytes = 0n;
    for (const entry of entries) {
      if (this.#isOver()) break;
      bytes += await this.#entry(join(path, entry.name), entry, depth + 1);
    }
    this.#add(path, depth, bytes);
  }

  async #entry(path: string, entry: Dirent, depth: number): Promise<bigint> {
    if (this.#apart.has(path)) return 0n;
    const found = await lstat(path, { bigint: true }).catch(() => null);
    if (found === null || found.dev !== this.#device) return 0n;
    if (entry.isDirectory()) this.#open.push({ path, depth });
    else if (found.nlink > 1n) {
      if (this.#linked.has(found.ino)) return 0n;
      this.#linked.add(found.ino);
    }
    const bytes = found.blocks * 512n;
    if (depth === 1 && !entry.isDirectory()) this.#ownFiles += bytes;
    return bytes;
  }

  /** Adds to the directory and its ancestors, as far as they are reported. */
  #add(path: string, depth: number, bytes: bigint): void {
    let at = path;
    for (let level = depth; ; level -= 1) {
      if (level <= SHOWN_DEPTH) this.#sizes.set(at, this.bytesOf(at) + bytes);
      if (level === 0) return;
      at = parentOf(at);
    }
  }

  #isOver(): boolean {
    return this.#signal.aborted || performance.now() >= this.#endsAt;
  }
}

const parentOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf("/")));
