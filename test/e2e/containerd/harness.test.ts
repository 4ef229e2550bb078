// The harness itself, on every release: what it starts is a real node, and nothing of it is left behind.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { readDisk } from "../../support/containerd/disk-use.ts";
import { fillDiskTo, mebibyte, takeInodes } from "../../support/containerd/disk.ts";
import { holdSpace } from "../../support/containerd/hold-space.ts";
import { ctr, loadImages, pinnedLabel } from "../../support/containerd/import.ts";
import { imageTags, takeInventory } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import {
  containerStatus,
  createContainer,
  execInContainer,
  removePod,
  runPod,
  runToEnd,
  startContainer,
  stopContainer,
  stopPod,
} from "../../support/containerd/pods.ts";
import { cgroupsOf, processesOf } from "../../support/containerd/processes.ts";
import { releases } from "../../support/containerd/release.ts";
import {
  mountsBelow,
  shimSocketsOf,
  tearDown,
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

  test("speaks CRI, is on its own disk, and has the sandbox image that it names", async () => {
    const version = await node.cri.call("Version", {});
    expect(version).toMatchObject({ runtime_name: "containerd" });
    // sid moves: a later 2.x may stand in for 2.1.
    const line = release === "2.1" ? "2." : `${release}.`;
    expect(version.runtime_version).toStartWith(line);
    expect(await imageTags(node)).toEqual(expect.arrayContaining([app, node.sandboxImage]));
    const { image_filesystems } = await node.cri.call("ImageFsInfo", {});
    expect(image_filesystems.map(({ fs_id }) => fs_id?.mountpoint)).toEqual([
      `${node.disk.path}/containerd/io.containerd.snapshotter.v1.overlayfs`,
    ]);
    expect(readDisk(node.disk.path).capacityBytes).toBeWithin(1900 * mebibyte, 2048 * mebibyte);
  });

  test("runs pods whose containers log, exit with their code, and have different states", async () => {
    const pod = await runPod(node, { name: "web" });
    const running = await startContainer(node, pod, { name: "app", image: app });
    const failed = await runToEnd(node, pod, {
      name: "job",
      image: app,
      attempt: 1,
      command: ["/bin/sh", "-c", "echo words; exit 3"],
    });
    const created = await createContainer(node, pod, { name: "later", image: app });

    expect(await execInContainer(node, running.id, ["echo", "alive"])).toBe("alive\n");
    expect((await containerStatus(node, failed.id)).exit_code).toBe(3);
    expect(readFileSync(failed.logFile ?? "", "utf8")).toContain("stdout F words\n");
    expect(readFileSync(failed.legacyLink ?? "", "utf8")).toContain("words");
    const { containers, sandboxes } = await takeInventory(node);
    expect(new Map(containers.map(({ id, state }) => [id, state]))).toEqual(
      new Map([
        [running.id, "CONTAINER_RUNNING"],
        [failed.id, "CONTAINER_EXITED"],
        [created.id, "CONTAINER_CREATED"],
      ]),
    );
    expect(sandboxes).toMatchObject([{ id: pod.sandboxId, state: "SANDBOX_READY" }]);

    const askedAt = performance.now();
    await stopContainer(node, running.id);
    expect(performance.now() - askedAt).toBeLessThan(4_000);
    expect((await containerStatus(node, running.id)).exit_code).toBe(0);
    await stopPod(node, pod);
    expect((await takeInventory(node)).sandboxes).toMatchObject([{ state: "SANDBOX_NOTREADY" }]);
    await removePod(node, pod);
    expect(await takeInventory(node)).toMatchObject({ containers: [], sandboxes: [] });
    expect(existsSync(failed.logFile ?? "")).toBe(true);
  });

  test("keeps pods running when the runtime crashes", async () => {
    const pod = await runPod(node, { name: "steady" });
    const container = await startContainer(node, pod, { name: "app", image: app });
    await node.killRuntime();
    await node.startRuntime();
    expect(await execInContainer(node, container.id, ["echo", "still here"])).toBe("still here\n");
    await removePod(node, pod);
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

  test("repeated content is reported as next to nothing and frees its whole size", async () => {
    const [image] = await loadImages(node, [
      {
        names: ["docker.io/library/zeros:1"],
        layers: [{ ...layer("zeros", 40), content: "repeated" }],
        withBusybox: false,
      },
    ]);
    const listed = (await takeInventory(node)).images.find(({ id }) => id === image?.id);
    expect(listed?.reportedBytes).toBe(image?.blobBytes);
    expect(listed?.reportedBytes).toBeLessThan(mebibyte);
    const before = readDisk(node.disk.path).availableBytes;
    await node.cri.call("RemoveImage", { image: { image: image?.id ?? "" } });
    expect((readDisk(node.disk.path).availableBytes - before) / mebibyte).toBeWithin(39, 42);
  });

  test("held space is freed when it is released, and not before", async () => {
    const [image] = await loadImages(node, [
      { names: ["docker.io/library/held:1"], layers: [layer("held", 30)], withBusybox: false },
    ]);
    const before = readDisk(node.disk.path).availableBytes;
    const held = holdSpace(`${node.imageDisk.path}/containerd`);
    await node.cri.call("RemoveImage", { image: { image: image?.id ?? "" } });
    expect((readDisk(node.disk.path).availableBytes - before) / mebibyte).toBeLessThan(2);
    held.release();
    expect((readDisk(node.disk.path).availableBytes - before) / mebibyte).toBeWithin(59, 62);
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
    const { images } = await takeInventory(node);
    const pinned = images.filter((image) => image.pinned).flatMap(({ tags }) => tags);
    const expected = release === "1.6" ? [] : ["docker.io/library/kept:1", node.sandboxImage];
    expect(pinned.toSorted()).toEqual(expected);
  });

  test("the runtime names its sandbox image on 1.x only", async () => {
    const { info } = await node.cri.call("Status", { verbose: true });
    const config: unknown = JSON.parse(info["config"] ?? "{}");
    const named = (config as { sandboxImage?: string }).sandboxImage;
    expect(named).toBe(release === "2.1" ? undefined : node.sandboxImage);
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

  test("a directory of no node is never torn down", async () => {
    await tearDown(import.meta.dir);
    expect(existsSync(import.meta.path)).toBe(true);
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
