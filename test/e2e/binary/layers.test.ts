// Layers are known before a removal: what frees nothing stays, a base follows its last child, and no pass waits in vain.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";

import { type ImageDescription, imageIdOf } from "../../support/fake-runtime/describe.ts";
import { familyImages } from "../../support/families.ts";
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
const verboseStatuses = ({ runtime }: TestNode): number =>
  runtime.callsOf("ImageStatus").filter(({ request }) => (request as Json).verbose === true).length;

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

  test("with compat kubelet the base of a running image is a candidate, and crigc reads no layers", async () => {
    await using disk = await smallDisk(capacityBytes);
    await using node = await nodeOf(disk, [running, base, other]);
    const plan = await node.json(["plan", "--images", "--compat=kubelet"]);
    expect(plan.images.candidates.map(nameOf)).toContain("base");
    expect(verboseStatuses(node)).toBe(0);
  });

  test("with --all-unused the base of a running image is removed", async () => {
    await using disk = await smallDisk(capacityBytes);
    await using node = await nodeOf(disk, [running, base, other]);
    const report = await node.json(["gc", "--images", "--all-unused"]);
    expect(removedNames(report).toSorted()).toEqual(["base", "other"]);
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

  test("an image whose verbose status fails counts as sharing nothing, and is read again by the next pass", async () => {
    await using disk = await smallDisk(capacityBytes);
    await using node = await nodeOf(disk, [running, base, other]);
    const lift = node.runtime.fail("ImageStatus", { kind: "error", code: "INTERNAL" });
    const plan = await node.json(["plan", "--images"]);
    expect(plan.images.candidates.map(nameOf).toSorted()).toEqual(["base", "other"]);
    lift();
    const again = await node.json(["plan", "--images"]);
    expect(again.images.candidates.map(nameOf)).toEqual(["other"]);
  });

  test("reads the layers of an image once, and none while no threshold is exceeded", async () => {
    await using disk = await smallDisk(capacityBytes);
    await using node = await nodeOf(disk, [running, base, other]);
    const relaxed = ["--image-gc-high-threshold=90", "--image-gc-low-threshold=80"];
    await node.json(["gc", "--images", ...relaxed]);
    expect(verboseStatuses(node)).toBe(0);
    await node.json(["gc", "--images"], 4);
    expect(verboseStatuses(node)).toBe(3);
    await node.json(["gc", "--images"], 4);
    expect(verboseStatuses(node)).toBe(3);
  });
});

describe.skipIf(diskObstacle !== null)("75 images of ten families, a fifth of them in use", () => {
  const families = familyImages({
    families: 10,
    images: 75,
    baseBytes: 5 * MiB,
    ownBytes: MiB / 2,
  });
  const keep = families.slice(0, 15).map(({ repoTags = [] }) => `--keep=${repoTags[0]}`);

  const passOver = async (images: readonly ImageDescription[]): Promise<Json> => {
    await using disk = await smallDisk(capacityBytes);
    await using node = await startNode({
      node: { images },
      store: { directory: join(disk.directory, "store") },
      flags: [...flags, ...keep, "--image-gc-high-threshold=85", "--image-gc-low-threshold=80"],
    });
    expect(disk.usedPercent()).toBeGreaterThan(85);
    const report = await node.json(["gc", "--images"]);
    expect(report.images.end).toBe("target-reached");
    expect(disk.usedPercent()).toBeLessThanOrEqual(80);
    return report;
  };

  test("are collected below the low threshold in about a second, on an unknown runtime", async () => {
    const report = await passOver(families);
    expect(report.tookMs).toBeLessThan(3_000);
  });
});

describe.skipIf(diskObstacle !== null)("large bases that small children hold", () => {
  // By last use alone the children of one family after the other go; each family but one is needed by a kept image.
  const held = familyImages({
    name: "held",
    families: 6,
    images: 36,
    baseBytes: 6 * MiB,
    ownBytes: MiB / 4,
  });
  const free = familyImages({
    name: "free",
    families: 2,
    images: 6,
    baseBytes: 10 * MiB,
    ownBytes: MiB / 4,
  });
  const bases = held.slice(0, 6).map((one, index) => ({
    id: imageIdOf(`base ${index}`),
    repoTags: [`registry.example/base-${index}:1`],
    layers: (one.layers ?? []).slice(0, 1),
  }));
  const keep = held.slice(0, 6).map(({ repoTags = [] }) => `--keep=${repoTags[0]}`);

  // Bases are seen first, so by time alone each of them goes before any child.
  const removals = async (): Promise<readonly string[]> => {
    await using disk = await smallDisk(capacityBytes);
    await using node = await startNode({
      node: { images: bases },
      store: { directory: join(disk.directory, "store") },
      flags: [...flags, ...keep],
    });
    await node.json(["gc", "--images"]);
    for (const one of [...held, ...free]) node.runtime.node.addImage(one);
    const report = await node.json([
      "gc",
      "--images",
      "--image-gc-high-threshold=50",
      "--image-gc-low-threshold=45",
    ]);
    expect(report.images.end).toBe("target-reached");
    return removedNames(report);
  };

  test("stay: the target is reached by the two families that no kept image holds, and nothing else", async () => {
    const removed = await removals();
    expect(removed).toHaveLength(free.length);
    expect(removed.every((name) => name.includes("free-"))).toBe(true);
  });
});
