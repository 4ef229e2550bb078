import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";

// Real runtimes tell the layers of their images: what frees nothing stays, and estimates come true on the disk.
import { type ImageOptions, library } from "../../support/containerd/archive.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { runPod, startContainer } from "../../support/containerd/pods.ts";
import { type Release, releases } from "../../support/containerd/release.ts";
import {
  gc,
  type ImageItem,
  type ImagePlanDocument,
  planImages,
  removedImages,
  ripen,
  youngAge,
} from "../../support/containerd/reports.ts";

setDefaultTimeout(600_000);

const FAMILIES = 8;
/** Those that are loaded first are due first. */
const OLD_MEMBERS = 4;
const MEMBERS = 12;
/** The second half of the families is of layers that gzip makes a third of. */
const layer = (family: number, name: string, sizeMib: number) => ({
  seed: `${name}-${family}`,
  sizeBytes: sizeMib * mebibyte * (family < FAMILIES / 2 ? 1 : 3),
  content: family < FAMILIES / 2 ? ("random" as const) : ("mixed" as const),
});
const base = (family: number) => layer(family, "base", 5);
const member = (family: number, index: number): ImageOptions => ({
  names: [library(`family-${family}:${index}`)],
  layers: [base(family), layer(family, `own-${index}`, 0.5)],
});

const nodes: ContainerdNode[] = [];

afterEach(async () => {
  for (const node of nodes.splice(0)) await node.stop();
});

async function aNode(release: Release, sizeMib: number): Promise<ContainerdNode> {
  const node = await startNode(release, { disk: { sizeBytes: sizeMib * mebibyte } });
  nodes.push(node);
  return node;
}

/**
 * Eight families: a base of 5 MiB as reported, above a layer that all images have, and twelve members of half a MiB. Bases are the
 * oldest images, and every second one is tagged; a pod runs a member of the first family.
 */
async function families(): Promise<ContainerdNode> {
  const node = await aNode("2.1", 448);
  const all = Array.from({ length: FAMILIES }, (_, family) => family);
  const members = (from: number, to: number): readonly ImageOptions[] =>
    all.flatMap((family) =>
      Array.from({ length: to - from }, (_, index) => member(family, from + index)),
    );
  const bases = all.filter((family) => family % 2 === 0);
  await loadImages(
    node,
    bases.map((family) => ({ names: [library(`base-${family}:1`)], layers: [base(family)] })),
  );
  await ripen(node);
  await loadImages(node, members(0, OLD_MEMBERS));
  const pod = await runPod(node, { name: "steady" });
  await startContainer(node, pod, { name: "app", image: library("family-0:2") });
  await ripen(node);
  await loadImages(node, members(OLD_MEMBERS, MEMBERS));
  await ripen(node);
  return node;
}

/** Thresholds that ask for so many points of the disk. */
const below = (node: ContainerdNode, points: number): readonly string[] => {
  const low = Math.floor(readDisk(node.disk.path).usedPercent) - points;
  return [`--image-gc-high-threshold=${low + 5}`, `--image-gc-low-threshold=${low}`];
};

const reasonOf = (plan: ImagePlanDocument, name: string): string | undefined =>
  plan.kept.find((entry) => entry.name === library(name))?.reason.code;
const candidateOf = (plan: ImagePlanDocument, name: string) =>
  plan.candidates.find((entry) => entry.name === library(name));

/** Removes by CRI in this order until so much is free that was not before; returns how many images that took. */
async function removedUntil(
  node: ContainerdNode,
  names: readonly string[],
  gainBytes: number,
): Promise<number> {
  const before = readDisk(node.disk.path).availableBytes;
  for (const [index, image] of names.entries()) {
    await node.cri.call("RemoveImage", { image: { image } });
    if (readDisk(node.disk.path).availableBytes - before >= gainBytes) return index + 1;
  }
  throw new Error(`${names.length} images freed less than ${gainBytes} bytes`);
}

const sumOf = (items: readonly ImageItem[], figure: (item: ImageItem) => number | undefined) =>
  items.reduce((sum, item) => sum + (figure(item) ?? 0), 0);
const mib = (bytes: number): string => `${(bytes / mebibyte).toFixed(1)} MiB`;

// Half a minute long, and nothing in it depends on the release.
describe("images of eight families under containerd 2.1", () => {
  test("free what their bounds say once removals were measured, with fewer removals than by last use", async () => {
    const node = await families();
    const plan = await planImages(node, youngAge, ...below(node, 25));
    expect(reasonOf(plan, "base-0:1")).toBe("shares-all-layers");
    const names = plan.candidates.map(({ name }) => name);
    const lastChild = names.findLastIndex((name) => name.includes("/family-2:"));
    expect(names.indexOf(library("base-2:1"))).toBeGreaterThan(lastChild);

    const first = await gc(node, youngAge, ...below(node, 25), "--max-removals-per-pass=30");
    const removed = removedImages(first.report);
    expect(removed).toHaveLength(30);
    expect(removed.filter((name) => name.includes("base-"))).toEqual([]);
    const gained = first.report.images?.measuredFreedBytes ?? 0;

    // The same node once more, from which images go by last use alone, each measured as well.
    const reference = await families();
    const flags = [youngAge, "--space-accounting=reported", ...below(reference, 25)];
    const byLastUse = (await planImages(reference, ...flags)).candidates.map(({ name }) => name);
    expect(byLastUse).toContain(library("base-0:1"));
    const needed = await removedUntil(reference, byLastUse, gained);
    console.info(
      `${mib(gained)} freed by 30 removals, by ${needed} in the order of last use alone`,
    );
    expect(needed).toBeGreaterThan(30);

    const second = await gc(node, youngAge, ...below(node, 20));
    expect(second.report.images?.end).toBeOneOf(["target-reached", "own-gain-reached"]);
    const items = (second.report.images?.items ?? []).filter(
      ({ result }) => result.kind === "removed",
    );
    const measured = second.report.images?.measuredFreedBytes ?? 0;
    const estimated = second.report.images?.estimatedFreedBytes ?? 0;
    const atLeast = sumOf(items, ({ freesAtLeastBytes }) => freesAtLeastBytes);
    const atMost = sumOf(items, ({ freesAtMostBytes }) => freesAtMostBytes);
    const outside = items.filter(
      ({ freesAtLeastBytes = 0, freesAtMostBytes = 0, result: { measuredBytes = 0 } }) =>
        measuredBytes < freesAtLeastBytes || measuredBytes > freesAtMostBytes,
    );
    console.info(
      `${items.length} removals, ${mib(estimated)} estimated (${mib(atLeast)} to ${mib(atMost)}), ${mib(measured)} measured, ${outside.length} outside their bounds, ${second.report.tookMs} ms`,
    );
    expect(estimated).toBe(sumOf(items, ({ freesBytes }) => freesBytes));
    // One factor for the whole node, half of whose families are compressed.
    expect(estimated / measured).toBeWithin(0.25, 4);
    expect(measured).toBeWithin(atLeast, atMost);
    expect(outside).toEqual([]);
  });
});

describe.each([...releases])("images under containerd %s", (release) => {
  test("of one layer, or of the layers of another image, free only their own layers", async () => {
    const node = await aNode(release, 192);
    const twin = (name: string): ImageOptions => ({
      names: [library(name)],
      layers: [layer(0, "twin", 12)],
      withBusybox: false,
    });
    await loadImages(node, [
      twin("twin-a:1"),
      twin("twin-b:1"),
      { names: [library("single:1")], layers: [layer(0, "single", 10)], withBusybox: false },
      { names: [library("packed:1")], layers: [layer(7, "packed", 8)], withBusybox: false },
    ]);
    await ripen(node);
    const { report } = await gc(node, youngAge, ...below(node, 30));
    const items = report.images?.items ?? [];
    expect(items.map(({ name }) => name).toSorted()).toEqual(
      ["packed:1", "single:1", "twin-a:1", "twin-b:1"].map(library),
    );
    const freed = (name: string) => {
      const item = items.find((one) => one.name === library(name));
      return {
        atMost: (item?.freesAtMostBytes ?? 0) / mebibyte,
        measured: (item?.result.measuredBytes ?? 0) / mebibyte,
      };
    };
    const twins = [freed("twin-a:1"), freed("twin-b:1")].toSorted(
      (one, other) => one.measured - other.measured,
    );
    expect(twins[0]?.measured).toBeLessThan(0.5);
    expect(twins[0]?.atMost).toBeLessThan(0.5);
    expect(twins[1]?.measured).toBeWithin(23, 26);
    expect(freed("single:1").measured).toBeWithin(19, 22);
    expect(freed("packed:1").measured).toBeWithin(31, 34);
  });

  test("include the base of a running image as a candidate with compat kubelet, and crigc reads no layers", async () => {
    const node = await aNode(release, 128);
    await loadImages(node, [
      { names: [library("base:1")], layers: [base(0)] },
      { names: [library("app:1")], layers: [base(0), layer(0, "app", 1)] },
    ]);
    const pod = await runPod(node, { name: "steady" });
    await startContainer(node, pod, { name: "app", image: library("app:1") });
    const kubelet = await planImages(
      node,
      "--minimum-image-ttl-duration=0s",
      "--compat=kubelet",
      "--image-gc-high-threshold=2",
      "--image-gc-low-threshold=1",
    );
    expect(candidateOf(kubelet, "base:1")).toBeDefined();
    expect(candidateOf(kubelet, "base:1")?.freesBytes).toBeUndefined();
  });
});
