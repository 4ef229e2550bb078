import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import { HostError } from "../../src/model/errors.ts";
import { defaultRootDirectory, diskOf } from "../../src/node/disk.ts";
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

async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => value,
    (error: unknown) => error,
  );
}

describe("measure", () => {
  test.each(["/", "/dev/shm", "/proc"])("%s has the figures that stat -f gives", async (path) => {
    const reading = await diskOf(() => "/").measure(path);
    const [unit = "", blocks = "", inodes = ""] = run("stat", "-f", "-c", "%S %b %c", path).split(
      " ",
    );
    expect(reading.capacityBytes).toBe(BigInt(unit) * BigInt(blocks));
    expect(reading.inodes).toBe(BigInt(inodes));
    expect(reading.availableBytes).toBeLessThanOrEqual(reading.capacityBytes);
  });

  test.each(["/does/not/exist", "relative", ""])("%j is an error of kind stat", async (path) => {
    const error = await errorOf(diskOf(() => "/").measure(path));
    expect(error).toBeInstanceOf(HostError);
    expect(error).toMatchObject({ kind: "stat" });
  });
});

describe("filesystems", () => {
  test("paths on one device are one filesystem with every role, their used bytes added", async () => {
    const disk = diskOf(() => here);
    const inner = join(here, "inner");
    mkdirSync(inner, { recursive: true });
    expect(
      await disk.filesystems({
        images: [entry(here, 2n), entry(inner, 3n)],
        containers: [entry(inner, 5n)],
      }),
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
    const found = await diskOf(() => "/").filesystems({
      images: [entry(shm, 7n)],
      containers: [entry(here)],
    });
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
      const found = await diskOf(() => "/").filesystems({
        images: [entry(shm), entry("/")],
        containers: [],
      });
      expect(found.map((it) => it.roles)).toEqual([
        ["imagefs", "containerfs"],
        ["imagefs", "nodefs"],
      ]);
    },
  );

  test("the device is the one that stat names", async () => {
    const [found] = await diskOf(() => "/").filesystems({ images: [], containers: [] });
    const [major = "", minor = ""] = run("stat", "-c", "%Hd %Ld", "/").split(" ");
    expect(found?.device).toBe(`${major}:${minor}`);
  });

  test("one path that is missing fails the whole reading, naming it", async () => {
    const error = await errorOf(
      diskOf(() => "/").filesystems({
        images: [entry("/"), entry("/does/not/exist")],
        containers: [],
      }),
    );
    expect(error).toMatchObject({ name: "HostError", kind: "stat" });
    expect(String(error)).toContain("/does/not/exist");
  });

  test("a link is measured at its target", async () => {
    const link = join(here, "link");
    symlinkSync("/dev/shm", link);
    const [found] = await diskOf(() => "/dev/shm").filesystems({
      images: [entry(link)],
      containers: [],
    });
    expect(found?.roles).toEqual(["imagefs", "containerfs", "nodefs"]);
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
    const found = await diskOf(() => "/").filesystems({
      images: [entry(join(small, "images")), entry(bind)],
      containers: [],
    });
    expect(found).toHaveLength(2);
    expect(found[0]).toMatchObject({
      roles: ["imagefs", "containerfs"],
      mountpoint: small,
      capacityBytes: 1024n * 1024n,
      inodes: 100n,
    });
    const [alone] = await diskOf(() => "/").filesystems({ images: [entry(bind)], containers: [] });
    expect(alone).toMatchObject({ mountpoint: bind, device: found[0]?.device ?? "" });
  });

  test("a filesystem without an inode limit has 0 inodes", async () => {
    const path = mount("unlimited", "-t", "tmpfs", "-o", "size=1m,nr_inodes=0", "none");
    expect(await diskOf(() => "/").measure(path)).toMatchObject({ inodes: 0n, inodesFree: 0n });
  });
});

test("the kubelet's directory is the default root directory if there is one", async () => {
  expect(await defaultRootDirectory(here)).toBe(here);
  expect(await defaultRootDirectory(join(here, "absent"))).toBe("/");
});
