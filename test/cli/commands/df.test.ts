// What df counts as other data.

import { expect, test } from "bun:test";
import { join } from "node:path";

import type { Openers } from "../../../src/engine/openers.ts";
import { podUid } from "../../../src/model/ids.ts";
import { walkDirectories } from "../../../src/node/directories.ts";
import { noLogs } from "../../support/build/pods.ts";
import { aFilesystem, anImage } from "../../support/build/values.ts";
import { put, scratch } from "../../support/scratch.ts";
import { openNodeOf } from "../open-node.ts";
import { crigc } from "../world.ts";

const imageDisk = aFilesystem();
const machine = () =>
  ({ device: async () => imageDisk.device }) as unknown as ReturnType<Openers["machine"]>;

test.each<[string, readonly string[]]>([
  ["of all images", []],
  ["of some, and one row for the others", ["--filter", "reference=registry.example/app"]],
])("the sizes add up to what is used: %s", async (_, filter) => {
  const podLogs = [{ entry: "default_web_1", uid: podUid("1") }];
  const images = ["app", "web"].map((name) => anImage(name, { sizeBytes: 100n }));
  const filesystem = { ...imageDisk, capacityBytes: 1_000n, availableBytes: 400n, freeBytes: 500n };
  const { node } = openNodeOf({
    snapshot: { images, filesystems: [filesystem], logs: { ...noLogs, podLogs } },
  });
  const walked = async () => ({ complete: true, directories: [], bytes: 7n });
  const run = (...words: readonly string[]) =>
    crigc(["df", ...filter, ...words], { open: { node, machine, walkDirectories: walked } });
  const { breakdown } = JSON.parse((await run("-o", "json")).stdout);
  expect(breakdown).toMatchObject({ podLogsBytes: 7, otherBytes: 7, usedBytes: 500 });
  const [, table = ""] = /^WHAT.*\n([^]*?)\n\n/m.exec((await run()).stdout) ?? [];
  const sizes = table.split("\n").map((row) => Number(/(-?\d+) B/.exec(row)?.[1] ?? 0));
  expect(sizes.at(-1)).toBe(500);
  expect(sizes.slice(0, -1).reduce((sum, bytes) => sum + bytes, 0)).toBe(500);
  expect(table.includes("other images")).toBe(filter.length > 0);
});

test.each([
  [
    "containerd",
    "io.containerd.snapshotter.v1.overlayfs",
    "io.containerd.content.v1.content/blobs",
  ],
  ["CRI-O", "overlay-images", "overlay/l"],
])(
  "on a disk that %s has for itself, layers of images are no other data",
  async (_, reported, layers) => {
    const disk = scratch();
    for (const name of [`${reported}/1`, `${layers}/2`, "backup/3"])
      put(disk, name, "x".repeat(8_192));
    const filesystem = aFilesystem({ path: join(disk, reported), mountpoint: disk });
    const { node } = openNodeOf({ snapshot: { filesystems: [filesystem] } });
    const { stdout } = await crigc(["df", "-o", "json"], {
      open: { node, machine, walkDirectories },
    });
    const { directories } = JSON.parse(stdout).rest;
    expect(directories.map(({ path }: { readonly path: string }) => path)).toEqual([
      join(disk, "backup"),
    ]);
  },
);

test("pod logs that took too long to measure are incomplete, and container layers that the runtime does not report unknown", async () => {
  const podLogs = [{ entry: "default_web_1", uid: podUid("1") }];
  const { node } = openNodeOf({ snapshot: { logs: { ...noLogs, podLogs } } });
  const slow = async () => ({ complete: false, directories: [], bytes: 5n });
  const { stdout } = await crigc(["df"], { open: { node, machine, walkDirectories: slow } });
  expect(stdout).toMatch(/\ncontainer layers +unknown\npod logs +5 B\nother files +5 B\n/);
  expect(stdout).toContain("content not in any image's size, and files not read in time");
});
