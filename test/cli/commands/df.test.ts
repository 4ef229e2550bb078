// What df counts as other data.

import { expect, test } from "bun:test";
import { join } from "node:path";

import { podUid } from "../../../src/model/ids.ts";
import { walkDirectories } from "../../../src/node/directories.ts";
import { noLogs } from "../../support/build/pods.ts";
import { aFilesystem } from "../../support/build/values.ts";
import { put, scratch } from "../../support/scratch.ts";
import { openNodeOf } from "../open-node.ts";
import { crigc } from "../world.ts";

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
    const { stdout } = await crigc(["df", "-o", "json"], { open: { node, walkDirectories } });
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
  const { stdout } = await crigc(["df"], { open: { node, walkDirectories: slow } });
  expect(stdout).toContain("  container layers: unknown\n  pod logs (incomplete): 5 B\n");
  expect(stdout).toContain("  other directories (incomplete): 5 B\n");
});
