// The node's filesystems: statfs of the directories of runtime and kubelet, one entry per device.

import { type BigIntStatsFs, constants } from "node:fs";
import { open, readFile, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";

import { HostError } from "../../model/errors.ts";
import type { DiskReader, DiskReading, ReportedFilesystems } from "../../model/ports.ts";
import type { Filesystem, FilesystemRole } from "../../model/snapshot.ts";
import { reasonOf } from "../files/errno.ts";
import { Questions } from "../time/deadline.ts";
import { findMount, type Mount } from "./mountinfo.ts";

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

const questions = new Questions();

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
