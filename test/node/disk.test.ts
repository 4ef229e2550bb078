import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";

import fc from "fast-check";

import { commitBy, commitHere, diskOf, findMount } from "../../src/node/disk.ts";
import { failureOf } from "../support/failure.ts";
import { scratch } from "../support/scratch.ts";

const isRoot = process.getuid?.() === 0;
const shm = scratch("/dev/shm");
const here = scratch();
const isOtherDevice = statSync(shm).dev !== statSync(here).dev;

function run(...command: readonly string[]): string {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...command]);
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
  return stdout.toString().trim();
}

const entry = (path: string, usedBytes: bigint | null = null) => ({
  path,
  usedBytes,
  inodesUsed: null,
});

const filesystems = (
  images: readonly ReturnType<typeof entry>[],
  containers: typeof images = [],
  root = "/",
) => diskOf(() => root).filesystems({ images, containers });

describe("measure", () => {
  test.each(["/", "/dev/shm", "/proc"])("%s has the figures that stat -f gives", async (path) => {
    const reading = await diskOf(() => "/").measure(path);
    const shown = run("stat", "-f", "-c", "%S %b %c", path);
    const [unit = "", blocks = "", inodes = ""] = shown.split(" ");
    expect(reading.capacityBytes).toBe(BigInt(unit) * BigInt(blocks));
    expect(reading.inodes).toBe(BigInt(inodes));
    expect(reading.freeBytes).toBeGreaterThanOrEqual(reading.availableBytes);
    expect(reading.freeBytes).toBeLessThanOrEqual(reading.capacityBytes);
  });

  test.each(["/does/not/exist", "relative", ""])("%j is an error of kind stat", async (path) => {
    const error = await failureOf(diskOf(() => "/").measure(path));
    expect(error).toMatchObject({ name: "HostError", kind: "stat" });
  });
});

test("paths on one device are one filesystem with every role, their used bytes added", async () => {
  const inner = join(here, "inner");
  mkdirSync(inner, { recursive: true });
  expect(
    await filesystems([entry(here, 2n), entry(inner, 3n)], [entry(inner, 5n)], here),
  ).toMatchObject([
    {
      roles: ["imagefs", "containerfs", "nodefs"],
      path: here,
      imageUsedBytes: 5n,
      containerUsedBytes: 5n,
    },
  ]);
});

test.skipIf(!isOtherDevice)("each device has its own mount point", async () => {
  const found = await filesystems([entry(shm, 7n)], [entry(here)]);
  expect(found.map((it) => [it.roles, it.path, it.imageUsedBytes])).toEqual([
    [["imagefs"], shm, 7n],
    [["containerfs", "nodefs"], here, null],
  ]);
  expect(found[0]?.mountpoint).toBe("/dev/shm");
  expect(found[0]?.device).not.toBe(found[1]?.device);
});

test.skipIf(!isOtherDevice)(
  "a runtime that reports no container filesystem keeps its layers on its first image filesystem",
  async () => {
    const found = await filesystems([entry(shm), entry("/")]);
    expect(found.map((it) => it.roles)).toEqual([
      ["imagefs", "containerfs"],
      ["imagefs", "nodefs"],
    ]);
  },
);

test("a root directory that cannot be measured has no figures, and the other directories keep theirs", async () => {
  const found = await filesystems([entry("/")], [], "/does/not/exist");
  expect(found).toMatchObject([
    { roles: ["imagefs", "containerfs"] },
    { roles: ["nodefs"], capacityBytes: 0n, unmeasured: expect.stringContaining("/does/not") },
  ]);
  expect(found[0]?.capacityBytes).toBeGreaterThan(0n);
});

test("one path of images that is missing fails the whole reading, naming it", async () => {
  expect(await failureOf(filesystems([entry("/"), entry("/does/not/exist")]))).toMatchObject({
    kind: "stat",
    message: expect.stringContaining("/does/not/exist"),
  });
});

describe.skipIf(!isRoot)("mounts (these tests need root)", () => {
  const mounted: string[] = [];
  afterAll(() => {
    for (const path of mounted.toReversed()) run("umount", "-l", path);
  });
  const base = scratch();
  const mount = (name: string, ...options: readonly string[]): string => {
    const path = join(base, name);
    mkdirSync(path);
    run("mount", ...options, path);
    mounted.push(path);
    return path;
  };

  test("a bind mount is its device, seen under its own mount point", async () => {
    const small = mount("a small one", "-t", "tmpfs", "-o", "size=1m,nr_inodes=100", "none");
    mkdirSync(join(small, "images"));
    const bind = mount("bound", "--bind", join(small, "images"));
    const found = await filesystems([entry(join(small, "images")), entry(bind)]);
    expect(found).toHaveLength(2);
    expect(found[0]).toMatchObject({
      roles: ["imagefs", "containerfs"],
      mountpoint: small,
      capacityBytes: 1024n * 1024n,
      inodes: 100n,
    });
    const [alone] = await filesystems([entry(bind)]);
    expect(alone).toMatchObject({ mountpoint: bind, device: found[0]?.device ?? "" });
  });

  test("a filesystem without an inode limit has 0 inodes", async () => {
    const path = mount("unlimited", "-t", "tmpfs", "-o", "size=1m,nr_inodes=0", "none");
    expect(await diskOf(() => "/").measure(path)).toMatchObject({ inodes: 0n, inodesFree: 0n });
  });
});

const root = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard";
const bind =
  "136 27 254:0 /var/lib/images /mnt/image\\040store rw shared:7 master:1 - ext4 /dev/vda rw";
const overlay = "140 27 0:52 / /run/c/rootfs rw - overlay overlay rw,lowerdir=/l\\072x,upperdir=/u";

test.each([
  "",
  "27",
  "27 1 / / / rw - ext4 /dev/vda rw",
  "27 1 254:0 / / rw,relatime",
  "x 1 254:0 / / rw - a b c",
])("%j is not a mount", (line) => {
  expect(findMount(line, "27")).toBeNull();
});

test("a mount is found by its full ID, on any line", () => {
  const text = `${root}\n${bind}\n${overlay}\n`;
  expect(findMount(text, "27")?.mountpoint).toBe("/");
  expect(findMount(text, "136")?.mountpoint).toBe("/mnt/image store");
  expect(findMount(text, "140")?.device).toBe("0:52");
  expect(findMount(text, "36")).toBeNull();
  expect(findMount(text, "1")).toBeNull();
  expect(findMount("", "1")).toBeNull();
});

test("every mount point is read back as the kernel wrote it", () => {
  const escaped = (path: string): string =>
    path.replace(/[ \t\n\\#]/g, (c) => `\\${c.charCodeAt(0).toString(8).padStart(3, "0")}`);
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (name) => {
      const mountpoint = `/${name.replaceAll("\0", "")}`;
      const line = `1 2 3:4 / ${escaped(mountpoint)} rw shared:1 - tmpfs none rw`;
      expect(findMount(line, "1")?.mountpoint).toBe(mountpoint);
    }),
  );
});

test("a hanging process is awaited up to the limit, and not started twice for one path", async () => {
  const commit = commitBy(["sh", "-c", 'kill -STOP $$ "$@"'], 100);
  const startMs = performance.now();
  let isOver = false;
  const first = commit("/").finally(() => (isOver = true));
  await commit("/");
  expect(isOver).toBeFalse();
  await first;
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(90);
});

test("a program that does not exist neither fails the pass nor is waited for", async () => {
  await commitBy(["/does/not/exist"], 3_600_000)("/");
});

test("the process itself commits the filesystem of its path", () => {
  expect(commitHere("/dev/shm")).toBeTrue();
});
