// The node's filesystems: statfs of the directories of runtime and kubelet, one entry per device, and their commits.

import { type BigIntStatsFs, constants, openSync } from "node:fs";
import { open, readFile, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";

import { HostError, messageOf } from "../model/errors.ts";
import type { DiskReader, ReportedFilesystem, ReportedFilesystems } from "../model/ports.ts";
import type { DiskReading, Filesystem, FilesystemRole } from "../model/snapshot.ts";
import { timer } from "./clock.ts";
import { mountIdIn } from "./directory.ts";
import { hostError } from "./files.ts";
import { syncfs } from "./libc.ts";

/** A local filesystem answers in microseconds; a network one that hangs must not block a pass forever. */
const ANSWER_MS = 10_000;

/** `rootDirectory`: the kubelet's, which makes its filesystem `nodefs`; read each time, because kubelets come and go. */
export function diskOf(rootDirectory: () => string): DiskReader {
  return {
    measure: async (path) => {
      const fs = await statOf(path);
      return readingOf(fs);
    },
    filesystems: async (reported) => {
      const byDevice = new Map<string, Filesystem>();
      const places = new Map<string, Pick<Filesystem, "unmeasured"> & Mount & DiskReading>();
      for (const use of usesOf(reported, rootDirectory())) {
        const { path, role } = use;
        const place =
          places.get(path) ??
          (await placeOf(path).catch((thrown: unknown) => {
            // Without the figures of its images' filesystem no pass can do anything.
            if (role === "imagefs") throw thrown;
            return { ...UNMEASURED, device: path, mountpoint: path, unmeasured: messageOf(thrown) };
          }));
        places.set(path, place);
        const known = byDevice.get(place.device) ?? { ...place, ...unused, path };
        byDevice.set(place.device, withUse(known, use));
      }
      return [...byDevice.values()];
    },
  };
}

interface Use extends ReportedFilesystem {
  readonly role: FilesystemRole;
}

function usesOf(reported: ReportedFilesystems, rootDirectory: string): readonly Use[] {
  const images = reported.images.map((it): Use => ({ ...it, role: "imagefs" }));
  const containers = reported.containers.map((it): Use => ({ ...it, role: "containerfs" }));
  const unreported = { usedBytes: null, inodesUsed: null };
  // containerd names no container filesystem: writable layers are with the images of its default snapshotter, its
  // first.
  const [first] = images;
  if (containers.length === 0 && first !== undefined)
    containers.push({ ...unreported, role: "containerfs", path: first.path });
  return [...images, ...containers, { ...unreported, role: "nodefs", path: rootDirectory }];
}

/** A capacity of 0 decides nothing. */
export const UNMEASURED = {
  capacityBytes: 0n,
  availableBytes: 0n,
  inodes: 0n,
  inodesFree: 0n,
} satisfies DiskReading;

const unused = {
  roles: [],
  imageUsedBytes: null,
  imageInodesUsed: null,
  containerUsedBytes: null,
} satisfies Partial<Filesystem>;

function withUse(filesystem: Filesystem, { role, usedBytes, inodesUsed }: Use): Filesystem {
  const { imageUsedBytes, imageInodesUsed = null, containerUsedBytes } = filesystem;
  return {
    ...filesystem,
    roles: [...new Set([...filesystem.roles, role])],
    ...(role === "imagefs" && {
      imageUsedBytes: added(imageUsedBytes, usedBytes),
      imageInodesUsed: added(imageInodesUsed, inodesUsed),
    }),
    ...(role === "containerfs" && { containerUsedBytes: added(containerUsedBytes, usedBytes) }),
  };
}

const added = (sum: bigint | null, bytes: bigint | null): bigint | null =>
  bytes === null ? sum : (sum ?? 0n) + bytes;

const placeOf = async (path: string): Promise<Mount & DiskReading> => ({
  ...readingOf(await statOf(path)),
  ...(await withinDeadline(path, () => mountOf(path))),
});

async function statOf(path: string): Promise<BigIntStatsFs> {
  if (!path.startsWith("/"))
    throw new HostError(
      "stat",
      `cannot measure the filesystem of "${path}": it is not an absolute path; check what the runtime reports in ImageFsInfo`,
    );
  return withinDeadline(path, () => statfs(path, { bigint: true }));
}

/** Counts are in fragments, not in blocks of the preferred size; the two differ on network and user-space filesystems. */
const unitOf = ({ frsize, bsize }: BigIntStatsFs): bigint => (frsize > 0n ? frsize : bsize);

export function readingOf(fs: BigIntStatsFs): DiskReading {
  const unitBytes = unitOf(fs);
  return {
    capacityBytes: fs.blocks * unitBytes,
    availableBytes: fs.bavail * unitBytes,
    freeBytes: fs.bfree * unitBytes,
    reservedBytes: reservedBlocks(fs) * unitBytes,
    inodes: fs.files,
    inodesFree: fs.ffree,
    ...(FREE_ON_COMMIT.has(fs.type) && { freesOnCommit: true }),
  };
}

/** The kernel's numbers of btrfs and ZFS. */
const FREE_ON_COMMIT: ReadonlySet<bigint> = new Set([0x9123683en, 0x2fc12fc1n]);
const EXT4 = 0xef53n;
/** mkfs's default share of an ext4 that only root may use. */
const RESERVED_PART = 20n;

/** While anything is available, the rest of the free blocks; a filesystem whose reserve is in use does not tell. */
function reservedBlocks({ type, blocks, bfree, bavail }: BigIntStatsFs): bigint {
  if (bavail > 0n) return bfree - bavail;
  return type === EXT4 ? blocks / RESERVED_PART : 0n;
}

/** The device of the filesystem that a path is on, or would be once it exists. Throws if it cannot be determined. */
export async function deviceOf(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    const found = await stat(at).catch(() => null);
    if (found !== null || at === dirname(at)) return (await mountOf(at)).device;
  }
}

// 0o10000000 is O_PATH on every processor that Bun runs on; node has no name for it. Such a handle needs no read
// permission.
const OPEN_PATH_ONLY = 0o10000000 | constants.O_RDONLY;

/** The mount through which a path is seen, according to the kernel rather than guessed from prefixes of paths. */
async function mountOf(path: string): Promise<Mount> {
  {
    await using handle = await open(path, OPEN_PATH_ONLY);
    const id = mountIdIn(await readProc(`/proc/self/fdinfo/${handle.fd}`));
    const mount =
      id === undefined ? null : findMount(await readProc("/proc/self/mountinfo"), Number(id));
    if (mount !== null) return mount;
  }
  // The kernel's 64-bit device number as `major:minor`: 12 + 20 bits each, interleaved.
  const { dev } = await stat(path, { bigint: true });
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
  const minor = BigInt.asUintN(32, (dev & 0xffn) | ((dev >> 12n) & ~0xffn));
  return { device: `${major}:${minor}`, mountpoint: path };
}

const readProc = (path: string): Promise<string> => readFile(path, "utf8").catch(() => "");

export interface Mount {
  /** `major:minor` of the filesystem: one for all subvolumes of a btrfs, unlike in stat. */
  readonly device: string;
  readonly mountpoint: string;
}

/** The mount with this ID, or `null`. Parses only its own line: a node has a thousand others. */
export function findMount(mountinfo: string, id: number): Mount | null {
  const start = `\n${mountinfo}`.indexOf(`\n${id} `);
  if (start < 0) return null;
  const end = mountinfo.indexOf("\n", start);
  return parseMount(mountinfo.slice(start, end < 0 ? undefined : end));
}

/** `ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAG…] - TYPE SOURCE SUPEROPTIONS`; `null` for any other text. */
export function parseMount(line: string): Mount | null {
  const [id = "", , device = "", , mountpoint, ...rest] = line.split(" ");
  // A lone dash ends the options and tags; no field can be one, since spaces are escaped.
  if (!/^\d+$/.test(id) || !/^\d+:\d+$/.test(device) || !rest.includes("-", 1)) return null;
  if (mountpoint === undefined) return null;
  // The kernel writes space, tab, newline, backslash and `#` as a backslash and three octal digits, byte by byte.
  const plain = mountpoint.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
  return { device, mountpoint: plain };
}

const unanswered = new Set<string>();

/**
 * Asks one call about a path, which may never be answered (statfs on a dead network share), with a deadline and
 * crigc's own error message. Asks nothing more about the path until an answer comes, because each call would block
 * another thread forever.
 */
export async function withinDeadline<T>(
  path: string,
  call: () => Promise<T>,
  withinMs = ANSWER_MS,
): Promise<T> {
  const returned = new AbortController();
  try {
    if (unanswered.has(path)) throw new Error("an earlier call is still pending");
    const answer = call();
    const note = (): void => {
      returned.abort();
      unanswered.delete(path);
    };
    answer.then(note, note);
    const late = timer.sleep(withinMs, returned.signal).then(() => {
      if (returned.signal.aborted) return answer;
      unanswered.add(path);
      throw new Error(`no answer within ${withinMs} ms`);
    });
    return await Promise.race([answer, late]);
  } catch (error) {
    throw hostError(
      "stat",
      error,
      (why) =>
        `cannot measure the filesystem of ${path}: ${why}; check that the directory exists and is mounted`,
    );
  }
}

/** Space that has not appeared by then appears with a later commit. */
const COMMIT_MS = 5_000;

/**
 * Commits a filesystem in a separate process, because `syncfs` hangs with its disk. `command`: runs `commitHere` for
 * the path that follows it. The result never rejects.
 */
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
