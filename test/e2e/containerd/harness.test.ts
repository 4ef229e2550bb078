// The harness itself, on every release: what it starts is a real node, and nothing of it is left behind.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { fillDiskTo, mebibyte, readDisk, takeInodes } from "../../support/containerd/disk.ts";
import { ctr, loadImages, pinnedLabel } from "../../support/containerd/import.ts";
import { imageTags, takeInventory } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { runPod, startContainer } from "../../support/containerd/pods.ts";
import { cgroupsOf, processesOf } from "../../support/containerd/processes.ts";
import { releases } from "../../support/containerd/release.ts";
import {
  mountsBelow,
  shimSocketsOf,
  tearDownAbandoned,
} from "../../support/containerd/teardown.ts";
import { until } from "../../support/containerd/until.ts";

setDefaultTimeout(60_000);

const playScript = join(import.meta.dir, "../../../scripts/real-node.ts");

const app = "docker.io/library/app:1";
const layer = (seed: string, sizeMib: number) => ({ seed, sizeBytes: sizeMib * mebibyte });

describe.each([...releases])("a node with containerd %s", (release) => {
  let node: ContainerdNode;

  beforeAll(async () => {
    node = await startNode(release);
    await loadImages(node, [{ names: [app] }]);
  });

  afterAll(async () => {
    await node?.stop();
  });

  test("an unshared random layer frees twice its size before the answer, a shared one nothing", async () => {
    const shared = layer("shared", 20);
    const images = await loadImages(node, [
      { names: ["docker.io/library/one:1"], layers: [shared, layer("one", 30)] },
      { names: ["docker.io/library/two:1"], layers: [shared, layer("two", 30)] },
    ]);
    const freedMib: number[] = [];
    for (const { id } of images) {
      const before = readDisk(node.disk.path).availableBytes;
      await node.cri.call("RemoveImage", { image: { image: id } });
      freedMib.push((readDisk(node.disk.path).availableBytes - before) / mebibyte);
    }
    expect(freedMib[0]).toBeWithin(59, 62);
    expect(freedMib[1]).toBeWithin(99, 102);
  });

  test("an image imported with its digest disappears from CRI but not from the disk", async () => {
    const [image] = await loadImages(
      node,
      [{ names: ["docker.io/library/leak:1"], layers: [layer("leak", 10)] }],
      { digests: true },
    );
    const listed = (await takeInventory(node)).images.find(({ id }) => id === image?.id);
    expect(listed?.digests).toHaveLength(1);
    expect(listed?.digests[0]).toMatch(/^docker\.io\/library\/import-\d{4}-\d\d-\d\d@sha256:/);
    const before = readDisk(node.disk.path).availableBytes;
    await node.cri.call("RemoveImage", { image: { image: image?.id ?? "" } });
    expect(await imageTags(node)).not.toContain("docker.io/library/leak:1");
    expect((readDisk(node.disk.path).availableBytes - before) / mebibyte).toBeLessThan(2);
    const name = listed?.digests[0]?.replace("docker.io/library/", "") ?? "";
    await ctr(node, "images", "rm", "--sync", name);
    expect((readDisk(node.disk.path).availableBytes - before) / mebibyte).toBeWithin(19, 22);
  });

  test("the pin label pins on 1.7 and later, and the sandbox image is pinned by configuration", async () => {
    await loadImages(node, [{ names: ["docker.io/library/kept:1"] }], { labels: pinnedLabel });
    const expected = release === "1.6" ? [] : ["docker.io/library/kept:1", node.sandboxImage];
    // containerd learns of labels by its own events.
    await until(`pinned: ${expected.join()}`, 5_000, async () => {
      const { images } = await takeInventory(node);
      const pinned = images.filter((image) => image.pinned).flatMap(({ tags }) => tags);
      return Bun.deepEquals(pinned.toSorted(), expected);
    });
  });
});

describe.each([...releases])("disks of a node with containerd %s", (release) => {
  test("images, unpacked layers and the rest lie on disks of their own, of chosen size and kind", async () => {
    const node = await startNode(release, {
      disk: { sizeBytes: 256 * mebibyte, inodes: 4_096 },
      imageDisk: { sizeBytes: 512 * mebibyte },
      snapshotDisk: { sizeBytes: 512 * mebibyte, filesystem: "xfs" },
    });
    try {
      const before = [node.imageDisk, node.snapshotDisk].map(({ path }) => readDisk(path));
      await loadImages(node, [{ names: [app], layers: [layer("app", 30)] }]);
      const after = [node.imageDisk, node.snapshotDisk].map(({ path }) => readDisk(path));
      for (const [i, { availableBytes }] of before.entries()) {
        const takenMib = (availableBytes - (after[i]?.availableBytes ?? 0)) / mebibyte;
        expect(takenMib).toBeWithin(30, 40);
      }
      const { image_filesystems } = await node.cri.call("ImageFsInfo", {});
      expect(image_filesystems.map(({ fs_id }) => fs_id?.mountpoint)).toEqual([
        release === "1.6"
          ? `${node.imageDisk.path}/containerd/io.containerd.snapshotter.v1.overlayfs`
          : `${node.snapshotDisk.path}/overlayfs`,
      ]);

      await fillDiskTo(node.disk, 97);
      expect(readDisk(node.disk.path).usedPercent).toBeWithin(97, 97.2);
      takeInodes(node.disk, 100);
      expect(readDisk(node.disk.path).inodesFree).toBe(100);
      await until("the runtime has measured its snapshots", 5_000, async () => {
        const info = await node.cri.call("ImageFsInfo", {});
        return Number(info.image_filesystems[0]?.used_bytes?.value ?? 0) > 30 * mebibyte;
      });
    } finally {
      await node.stop();
    }
  });
});

describe("cleaning up", () => {
  test("removes processes, mounts, control groups, shim sockets and files", async () => {
    const node = await startNode("1.7");
    const pod = await runPod(node, { name: "left" });
    await loadImages(node, [{ names: [app] }]);
    await startContainer(node, pod, { name: "app", image: app });
    expect(processesOf(node.directory).length).toBeGreaterThan(3);
    expect(cgroupsOf(node.directory).length).toBeGreaterThan(0);
    expect(mountsBelow(node.directory).length).toBeGreaterThan(2);
    const sockets = shimSocketsOf(node.directory);
    expect(sockets.filter((socket) => existsSync(socket))).not.toEqual([]);
    await node.stop();
    expectGone(node.directory);
    expect(sockets.filter((socket) => existsSync(socket))).toEqual([]);
    await node.stop();
  });

  test("the next run takes down the node of a killed run, but not that of a live one", async () => {
    const living = await startNode("1.7");
    try {
      const child = Bun.spawn([process.execPath, playScript, "--images=0"], {
        stdout: "pipe",
        stderr: "inherit",
      });
      const directory = await directorySaid(child.stdout);
      expect(processesOf(directory).length).toBeGreaterThan(3);
      child.kill("SIGKILL");
      await child.exited;
      expect(processesOf(directory).length).toBeGreaterThan(3);
      await tearDownAbandoned();
      expectGone(directory);
      expect(await imageTags(living)).toEqual([living.sandboxImage]);
    } finally {
      await living.stop();
    }
  });
});

function expectGone(directory: string): void {
  expect(processesOf(directory)).toEqual([]);
  expect(cgroupsOf(directory)).toEqual([]);
  expect(mountsBelow(directory)).toEqual([]);
  expect(existsSync(directory)).toBe(false);
  const loops = readdirSync("/sys/block")
    .map((device) => `/sys/block/${device}/loop/backing_file`)
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file, "utf8"));
  expect(loops.filter((file) => file.startsWith(directory))).toEqual([]);
}

/** Waits until scripts/real-node has said where its node's socket is. */
async function directorySaid(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream) {
    text += new TextDecoder().decode(chunk);
    const directory = /ENDPOINT=unix:\/\/(\S+)\/state\//.exec(text)?.[1];
    if (directory !== undefined) return directory;
  }
  throw new Error(`scripts/real-node ended without naming an endpoint: ${text}`);
}
