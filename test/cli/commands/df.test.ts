// What df counts as other data.

import { expect, test } from "bun:test";
import { join } from "node:path";

import { walkDirectories } from "../../../src/node/directories.ts";
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
