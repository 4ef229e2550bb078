// The node's filesystems: statfs of the directories of runtime and kubelet, one entry per device.

import { type BigIntStatsFs, constants, openSync } from "node:fs";
import { open, readFile, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";

import { HostError } from "../model/errors.ts";
import type { DiskReader, DiskReading, ReportedFilesystems } from "../model/ports.ts";
import type { Filesystem, FilesystemRole } from "../model/snapshot.ts";
import { timer } from "./clock.ts";
import { reasonOf } from "./files.ts";
import { syncfs } from "./libc.ts";

/** A local filesystem answers in microseconds; a network one that hangs must not block a pass forever. */
const answerWithinMs = 10_000;

/** `rootDirectory`: the kubelet's, which makes its filesystem `nodefs`; read each time, because kubelets come and go. */
export function diskOf(rootDirectory: () => string): DiskReader {
  return {
    measure,
    filesystems: async (reported) => {
      const uses = usesOf(reported, rootDirectory());
      const places = new Map<string, Place>();
      for (const path of new Set(uses.map((use) => use.path)))
        places.set(path, await placeOf(path));
      return merged(uses, places);
    },
  };
}

/** The default of `--root-dir`: the kubelet's directory if it exists, else the root. */
export async function defaultRootDirectory(kubelet = "/var/lib/kubelet"): Promise<string> {
  const found = await stat(kubelet).catch(() => null);
  return found?.isDirectory() === true ? kubelet : "/";
}

interface Use {
  readonly role: FilesystemRole;
  readonly path: string;
  readonly usedBytes: bigint | null;
  readonly inodesUsed: bigint | null;
}

function usesOf(reported: ReportedFilesystems, rootDirectory: string): readonly Use[] {
  const images = reported.images.map((it): Use => ({ ...it, role: "imagefs" }));
  const containers = reported.containers.map((it): Use => ({ ...it, role: "containerfs" }));
  // containerd names no container filesystem: writable layers are with the images of its default snapshotter, its
  // first.
  const [first] = images;
  const implied: readonly Use[] =
    containers.length === 0 && first !== undefined
      ? [{ role: "containerfs", path: first.path, usedBytes: null, inodesUsed: null }]
      : [];
  const node: Use = { role: "nodefs", path: rootDirectory, usedBytes: null, inodesUsed: null };
  return [...images, ...containers, ...implied, node];
}

interface Place extends DiskReading {
  readonly device: string;
  readonly mountpoint: string;
}

function merged(uses: readonly Use[], places: ReadonlyMap<string, Place>): readonly Filesystem[] {
  const byDevice = new Map<string, Filesystem>();
  for (const use of uses) {
    const place = places.get(use.path);
    if (place === undefined) continue;
    const known = byDevice.get(place.device) ?? fresh(use.path, place);
    byDevice.set(place.device, withUse(known, use));
  }
  return [...byDevice.values()];
}

const fresh = (path: string, place: Place): Filesystem => ({
  ...place,
  path,
  roles: [],
  imageUsedBytes: null,
  imageInodesUsed: null,
  containerUsedBytes: null,
});

function withUse(filesystem: Filesystem, use: Use): Filesystem {
  const roles = filesystem.roles.includes(use.role)
    ? filesystem.roles
    : [...filesystem.roles, use.role];
  return {
    ...filesystem,
    roles,
    imageUsedBytes:
      use.role === "imagefs"
        ? added(filesystem.imageUsedBytes, use.usedBytes)
        : filesystem.imageUsedBytes,
    imageInodesUsed:
      use.role === "imagefs"
        ? added(filesystem.imageInodesUsed ?? null, use.inodesUsed)
        : (filesystem.imageInodesUsed ?? null),
    containerUsedBytes:
      use.role === "containerfs"
        ? added(filesystem.containerUsedBytes, use.usedBytes)
        : filesystem.containerUsedBytes,
  };
}

const added = (sum: bigint | null, bytes: bigint | null): bigint | null =>
  bytes === null ? sum : (sum ?? 0n) + bytes;

async function placeOf(path: string): Promise<Place> {
  const reading = await measure(path);
  return { ...reading, ...(await asked(path, () => mountOf(path))) };
}

// 0o10000000 is O_PATH on every processor that Bun runs on; node has no name for it. Such a handle needs no read
// permission.
const openPathOnly = 0o10000000 | constants.O_RDONLY;

/** The device of the filesystem that a path is on, or would be once it exists. Throws if it cannot be determined. */
export async function deviceOf(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    const found = await stat(at).catch(() => null);
    if (found !== null || at === dirname(at)) return (await mountOf(at)).device;
  }
}

/** The mount through which a path is seen, according to the kernel rather than guessed from prefixes of paths. */
async function mountOf(path: string): Promise<Mount> {
  {
    await using handle = await open(path, openPathOnly);
    const id = /^mnt_id:\s*(\d+)$/m.exec(await readProc(`/proc/self/fdinfo/${handle.fd}`))?.[1];
    const mount =
      id === undefined ? null : findMount(await readProc("/proc/self/mountinfo"), Number(id));
    if (mount !== null) return mount;
  }
  const { dev } = await stat(path, { bigint: true });
  return { device: deviceText(dev), mountpoint: path };
}

const readProc = (path: string): Promise<string> => readFile(path, "utf8").catch(() => "");

/** The kernel's 64-bit device number as `major:minor`: 12 + 20 bits each, interleaved. */
function deviceText(device: bigint): string {
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn);
  const minor = (device & 0xffn) | ((device >> 12n) & ~0xffn);
  return `${major}:${BigInt.asUintN(32, minor)}`;
}

async function measure(path: string): Promise<DiskReading> {
  if (!path.startsWith("/"))
    throw new HostError(
      "stat",
      `cannot measure the filesystem of "${path}": it is not an absolute path; check what the runtime reports in ImageFsInfo`,
    );
  return readingOf(await asked(path, () => statfs(path, { bigint: true })));
}

export function readingOf(fs: BigIntStatsFs): DiskReading {
  // Counts are in fragments, not in blocks of the preferred size; the two differ on network and user-space filesystems.
  const unitBytes = fs.frsize > 0n ? fs.frsize : fs.bsize;
  return {
    capacityBytes: fs.blocks * unitBytes,
    availableBytes: fs.bavail * unitBytes,
    inodes: fs.files,
    inodesFree: fs.ffree,
    ...(FREE_ON_COMMIT.has(fs.type) && { freesOnCommit: true }),
  };
}

/** The kernel's numbers of btrfs and ZFS. */
const FREE_ON_COMMIT: ReadonlySet<bigint> = new Set([0x9123683en, 0x2fc12fc1n]);

/** One question about a path, with a deadline and crigc's own error message. */
async function asked<T>(path: string, question: () => Promise<T>): Promise<T> {
  try {
    return await questions.ask(path, question, answerWithinMs);
  } catch (error) {
    throw new HostError(
      "stat",
      `cannot measure the filesystem of ${path}: ${reasonOf(error)}; check that the directory exists and is mounted`,
      { cause: error },
    );
  }
}

export interface Mount {
  /** `major:minor` of the filesystem: one for all subvolumes of a btrfs, unlike in stat. */
  readonly device: string;
  readonly mountpoint: string;
}

/** The mount with this ID, or `null`. Parses only its own line: a node has a thousand others. */
export function findMount(mountinfo: string, id: number): Mount | null {
  const start = mountinfo.startsWith(`${id} `) ? 0 : mountinfo.indexOf(`\n${id} `) + 1;
  if (start === 0 && !mountinfo.startsWith(`${id} `)) return null;
  const end = mountinfo.indexOf("\n", start);
  return parseMount(mountinfo.slice(start, end < 0 ? undefined : end));
}

/** `ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAG…] - TYPE SOURCE SUPEROPTIONS`; `null` for any other text. */
export function parseMount(line: string): Mount | null {
  const [id = "", , device = "", , mountpoint, ...rest] = line.split(" ");
  // A lone dash ends the options and tags; no field can be one, since spaces are escaped.
  if (!/^\d+$/.test(id) || !/^\d+:\d+$/.test(device) || !rest.includes("-", 1)) return null;
  return mountpoint === undefined ? null : { device, mountpoint: unescape(mountpoint) };
}

/** The kernel writes space, tab, newline, backslash and `#` as a backslash and three octal digits, byte by byte. */
function unescape(field: string): string {
  if (!field.includes("\\")) return field;
  return field.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}

/** The result of `answer`, or a rejection after `ms`. Does not cancel the call. */
async function withDeadline<T>(answer: Promise<T>, ms: number): Promise<T> {
  let handle: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    handle = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(handle);
  }
}

/** Does not repeat a call while one is unanswered, because each would block another thread forever. */
export class Questions {
  readonly #open = new Set<string>();

  /**
   * Resolves with the answer; rejects after `ms`, or at once while an earlier question with the same key is open past
   * its deadline.
   */
  async ask<T>(key: string, question: () => Promise<T>, ms: number): Promise<T> {
    if (this.#open.has(key)) throw new Error("an earlier call is still pending");
    const answer = question();
    let answered = false;
    const note = (): void => {
      answered = true;
      this.#open.delete(key);
    };
    answer.then(note, note);
    try {
      return await withDeadline(answer, ms);
    } finally {
      // Whatever ended the wait: while there is no answer, nothing else should wait for one.
      if (!answered) this.#open.add(key);
    }
  }
}

/** Space that has not appeared by then appears with a later commit. */
const COMMIT_MS = 5_000;

/** `command`: runs `commitHere` for the path that follows it. The result never rejects. */
export function commitBy(
  command: readonly string[],
  limitMs = COMMIT_MS,
): (path: string) => Promise<void> {
  const running = new Set<string>();
  return async (path) => {
    // A process that hangs cannot be killed, so there is at most one for each path.
    if (running.has(path)) return;
    const ended = new AbortController();
    try {
      const child = Bun.spawn([...command, path], {
        stdio: ["ignore", "ignore", "ignore"],
        cwd: "/",
        env: {},
      });
      running.add(path);
      child.unref();
      void child.exited.then(() => {
        running.delete(path);
        ended.abort();
      });
      await timer.sleep(limitMs, ended.signal);
      if (!ended.signal.aborted) child.kill("SIGKILL");
    } catch {
      // Without another process, space appears with the filesystem's own commit.
    }
  };
}

/** The whole work of that process. */
export const commitHere = (path: string): boolean => syncfs(openSync(path, "r"));

const questions = new Questions();
