/** The node's filesystems: statfs of the directories of runtime and kubelet, one entry per device, and their commits. */

import { type BigIntStatsFs, constants, openSync } from "node:fs";
import { open, readFile, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";

import { messageOf } from "../model/errors.ts";
import type { DiskReader, ReportedFilesystem, ReportedFilesystems } from "../model/ports.ts";
import type { DiskReading, Filesystem, FilesystemRole } from "../model/snapshot.ts";
import { hostError } from "./files.ts";
import { syncfs } from "./libc.ts";

/** `rootDirectory`: the kubelet's, which makes its filesystem `nodefs`; read each time, because kubelets come and go. */
export function diskOf(rootDirectory: () => string): DiskReader {
  return {
    measure: (path) => measured(path, () => readingIn(path)),
    filesystems: async (reported) => {
      const uses = await Promise.all(usesOf(reported, rootDirectory()).map(placed));
      const ofDevice = ({ place: { device } }: PlacedUse): readonly PlacedUse[] =>
        uses.filter(({ place }) => place.device === device);
      return uses
        .filter((use) => ofDevice(use)[0] === use)
        .map((first) => filesystemOf(first, ofDevice(first)));
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

interface PlacedUse extends Use {
  readonly place: Pick<Filesystem, "unmeasured"> & Mount & DiskReading;
}

async function placed(use: Use): Promise<PlacedUse> {
  const { path, role } = use;
  try {
    const place = await measured(path, async () => ({
      ...(await readingIn(path)),
      ...(await mountOf(path)),
    }));
    return { ...use, place };
  } catch (thrown) {
    // Without the figures of its images' filesystem no pass can do anything.
    if (role === "imagefs") throw thrown;
    const unmeasured = messageOf(thrown);
    return { ...use, place: { ...UNMEASURED, device: path, mountpoint: path, unmeasured } };
  }
}

function filesystemOf({ path, place }: PlacedUse, uses: readonly PlacedUse[]): Filesystem {
  /** `null`: not reported. */
  const sumOf = (ofRole: FilesystemRole, figure: "usedBytes" | "inodesUsed"): bigint | null =>
    uses
      .map((use) => (use.role === ofRole ? use[figure] : null))
      .reduce((sum, amount) => (amount === null ? sum : (sum ?? 0n) + amount), null);
  return {
    ...place,
    path,
    roles: [...new Set(uses.map(({ role }) => role))],
    imageUsedBytes: sumOf("imagefs", "usedBytes"),
    imageInodesUsed: sumOf("imagefs", "inodesUsed"),
    containerUsedBytes: sumOf("containerfs", "usedBytes"),
  };
}

const readingIn = async (path: string): Promise<DiskReading> =>
  readingOf(await statfs(path, { bigint: true }));

async function measured<T>(path: string, measure: () => Promise<T>): Promise<T> {
  try {
    if (!path.startsWith("/")) throw new Error("it is not an absolute path");
    return await measure();
  } catch (error) {
    const what = `cannot measure the filesystem of "${path}"`;
    throw hostError("stat", error, what, "; check that the directory exists and is mounted");
  }
}

export function readingOf(fs: BigIntStatsFs): DiskReading {
  // Counts are in fragments, not in blocks of the preferred size: they differ on network and user-space filesystems.
  const unitBytes = fs.frsize > 0n ? fs.frsize : fs.bsize;
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

/** Free blocks that are not available; once the reserve itself is in use, statfs no longer shows it. */
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
  await using handle = await open(path, OPEN_PATH_ONLY);
  const id = mountIdIn(await readProc(`/proc/self/fdinfo/${handle.fd}`));
  const mount = id === undefined ? null : findMount(await readProc("/proc/self/mountinfo"), id);
  return mount ?? { device: `${(await stat(path)).dev}`, mountpoint: path };
}

/** The mount of an open file, in the text of its `/proc/self/fdinfo`. */
export const mountIdIn = (fdinfo: string): string | undefined =>
  /^mnt_id:\s*(\d+)$/m.exec(fdinfo)?.[1];

const readProc = (path: string): Promise<string> => readFile(path, "utf8").catch(() => "");

export interface Mount {
  /** `major:minor` of the filesystem: one for all subvolumes of a btrfs, unlike in stat. */
  readonly device: string;
  readonly mountpoint: string;
}

/** `ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAG…] - TYPE SOURCE SUPEROPTIONS`; `null`: no such line. */
export function findMount(mountinfo: string, id: string): Mount | null {
  const line = new RegExp(`(?:^|\\n)${id} \\d+ (\\d+:\\d+) [^ \\n]+ ([^ \\n]+) [^\\n]* - `);
  const [, device, escaped] = line.exec(mountinfo) ?? [];
  if (device === undefined || escaped === undefined) return null;
  // The kernel writes space, tab, newline, backslash and `#` as a backslash and three octal digits, byte by byte.
  const mountpoint = escaped.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
  return { device, mountpoint };
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
    try {
      const child = Bun.spawn([...command, path], {
        stdio: ["ignore", "ignore", "ignore"],
        cwd: "/",
        env: {},
        timeout: limitMs,
        killSignal: "SIGKILL",
      });
      running.add(path);
      child.unref();
      const ended = child.exited.then(() => running.delete(path));
      await Promise.race([ended, Bun.sleep(limitMs)]);
    } catch {
      // Without another process, space appears with the filesystem's own commit.
    }
  };
}

/** The whole work of that process. */
export const commitHere = (path: string): boolean => syncfs(openSync(path, "r"));
