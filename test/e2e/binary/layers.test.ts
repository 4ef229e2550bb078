// Layers are known before a removal: what frees nothing stays, a base follows its last child, and no pass waits in vain.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";

import { type ImageDescription, imageIdOf } from "../../support/fake-runtime/describe.ts";
import { diskObstacle, layer, MiB, type SmallDisk, smallDisk } from "./disk.ts";
import { type Json, type NodeOptions, startNode, type TestNode } from "./node.ts";

const flags = ["--minimum-image-ttl-duration=0s"];
const capacityBytes = 100 * MiB;

const image = (name: string, layers: ImageDescription["layers"]): ImageDescription => ({
  id: imageIdOf(name),
  repoTags: [`registry.example/${name}:1`],
  layers: layers ?? [],
});

/** A pod with a container of this image. */
const podOf = (name: string): NonNullable<NodeOptions["node"]> => ({
  sandboxes: [{ id: "pod", uid: "uid", name: "web", namespace: "shop" }],
  containers: [{ id: "app", sandboxId: "pod", image: `registry.example/${name}:1` }],
});

const nameOf = (entry: Json): string => entry.repoTags[0].slice("registry.example/".length, -2);
const removedNames = (report: Json): readonly string[] =>
  report.images.items
    .filter((item: Json) => item.result.kind === "removed")
    .map((item: Json) => nameOf(item));

describe.skipIf(diskObstacle !== null)("a node whose images share layers", () => {
  const running = image("running", [layer("base", 40), layer("running", 2)]);
  const base = image("base", [layer("base", 40)]);
  const other = image("other", [layer("other", 8)]);

  const nodeOf = async (disk: SmallDisk, images: readonly ImageDescription[]): Promise<TestNode> =>
    startNode({
      node: { images, ...podOf("running") },
      store: { directory: join(disk.directory, "store") },
      flags: [...flags, "--image-gc-high-threshold=40", "--image-gc-low-threshold=30"],
    });

  test("keeps the base of a running image, because its removal would free nothing, and names the image with its layers", async () => {
    await using disk = await smallDisk(capacityBytes);
    await using node = await nodeOf(disk, [running, base, other]);
    const plan = await node.json(["plan", "--images"]);
    const kept = plan.images.kept.find((entry: Json) => nameOf(entry) === "base");
    expect(kept.reason).toMatchObject({
      code: "shares-all-layers",
      images: [{ id: running.id, name: "registry.example/running:1" }],
    });
    expect(kept.reason.text).toContain("registry.example/running:1 has all of its layers");
    const explained = await node.crigc("explain", "registry.example/base:1");
    expect(explained.stdout).toContain("has all of its layers");
    const report = await node.json(["gc", "--images"], 4);
    expect(removedNames(report)).toEqual(["other"]);
  });

  test("removes a base right after the last image that shares it", async () => {
    await using disk = await smallDisk(capacityBytes);
    const family = [
      image("a-base", [layer("a", 30)]),
      image("a-one", [layer("a", 30), layer("a-one", 1)]),
      image("a-two", [layer("a", 30), layer("a-two", 1)]),
    ];
    await using node = await startNode({
      node: { images: [...family, image("lone", [layer("lone", 15)])] },
      store: { directory: join(disk.directory, "store") },
      flags,
    });
    const plan = await node.json([
      "plan",
      "--images",
      "--image-gc-high-threshold=40",
      "--image-gc-low-threshold=5",
    ]);
    const order = plan.images.candidates.map(nameOf);
    expect(order.indexOf("a-base")).toBe(
      Math.max(order.indexOf("a-one"), order.indexOf("a-two")) + 1,
    );
    // Each frees its own layer; the base, which comes after both, frees the rest.
    const frees = Object.fromEntries(
      plan.images.candidates.map((entry: Json) => [nameOf(entry), entry.freesBytes / MiB]),
    );
    expect(frees).toEqual({ "a-one": 1, "a-two": 1, "a-base": 30, lone: 15 });
  });

  test("keeps a base whose child could not be removed", async () => {
    await using disk = await smallDisk(capacityBytes);
    const child = image("child", [layer("root", 30), layer("child", 1)]);
    const root = image("root", [layer("root", 30)]);
    await using node = await startNode({
      node: { images: [root, child, image("lone", [layer("lone", 15)])] },
      store: { directory: join(disk.directory, "store") },
      flags: [...flags, "--image-gc-high-threshold=40", "--image-gc-low-threshold=5"],
    });
    node.runtime.fail(
      "RemoveImage",
      { kind: "error", code: "INTERNAL" },
      { when: (request) => (request as Json).image.image === child.id },
    );
    const report = await node.json(["gc", "--images"], 5);
    expect(removedNames(report)).toEqual(["lone"]);
    const skipped = report.images.items.find((item: Json) => nameOf(item) === "root");
    expect(skipped.result).toMatchObject({
      kind: "skipped",
      reason: { code: "shares-all-layers" },
    });
  });
});
