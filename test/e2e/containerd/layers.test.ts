// Real runtimes tell the layers of their images: what frees nothing stays, and estimates come true on the disk.
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { type ImageOptions, library } from "../../support/containerd/archive.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { runPod, startContainer } from "../../support/containerd/pods.ts";
import { type Release, releases } from "../../support/containerd/release.ts";
import {
  type Document,
  gc,
  keepCodes,
  namesOf,
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

const aNode = (release: Release, sizeMib: number): Promise<ContainerdNode> =>
  startNode(release, { disk: { sizeBytes: sizeMib * mebibyte } });

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

const sumOf = (items: readonly Document[], figure: string): number =>
  items.reduce((sum, item) => sum + (item[figure] ?? 0), 0);
const mib = (bytes: number): string => `${(bytes / mebibyte).toFixed(1)} MiB`;

// Half a minute long, and nothing in it depends on the release.
test("images of eight families under containerd 2.1 free what their bounds say once removals were measured", async () => {
  await using node = await families();
  const plan = await planImages(node, youngAge, ...below(node, 25));
  expect(keepCodes(plan)[library("base-0:1")]).toBe("shares-all-layers");
  const names = namesOf(plan.candidates);
  const lastChild = names.findLastIndex((name) => name.includes("/family-2:"));
  expect(names.indexOf(library("base-2:1"))).toBeGreaterThan(lastChild);
  const byLastUse = [youngAge, "--space-accounting=reported", ...below(node, 25)];
  expect(namesOf((await planImages(node, ...byLastUse)).candidates)).toContain(library("base-0:1"));

  const first = await gc(node, youngAge, ...below(node, 25), "--max-removals-per-pass=30");
  const removed = removedImages(first.report);
  expect(removed).toHaveLength(30);
  expect(removed.filter((name) => name.includes("base-"))).toEqual([]);

  const { images, tookMs } = (await gc(node, youngAge, ...below(node, 20))).report;
  expect(images.end).toBeOneOf(["target-reached", "own-gain-reached"]);
  const items = images.items.filter(({ result }: Document) => result.kind === "removed");
  const { measuredFreedBytes: measured, estimatedFreedBytes: estimated } = images;
  const [atLeast, atMost] = [sumOf(items, "freesAtLeastBytes"), sumOf(items, "freesAtMostBytes")];
  const outside = items.filter(
    ({ freesAtLeastBytes, freesAtMostBytes, result: { measuredBytes } }: Document) =>
      measuredBytes < freesAtLeastBytes || measuredBytes > freesAtMostBytes,
  );
  console.info(
    `${items.length} removals, ${mib(estimated)} estimated (${mib(atLeast)} to ${mib(atMost)}), ${mib(measured)} measured, ${tookMs} ms`,
  );
  expect(estimated).toBe(sumOf(items, "freesBytes"));
  // One factor for the whole node, half of whose families are compressed.
  expect(estimated / measured).toBeWithin(0.25, 4);
  expect(measured).toBeWithin(atLeast, atMost);
  expect(outside).toEqual([]);
});

describe.each([...releases])("images under containerd %s", (release) => {
  test("of one layer, or of the layers of another image, free only their own layers", async () => {
    await using node = await aNode(release, 192);
    const of = (name: string, layers: ImageOptions["layers"]): ImageOptions => ({
      names: [library(name)],
      layers: layers ?? [],
      withBusybox: false,
    });
    await loadImages(node, [
      of("twin-a:1", [layer(0, "twin", 12)]),
      of("twin-b:1", [layer(0, "twin", 12)]),
      of("single:1", [layer(0, "single", 10)]),
      of("packed:1", [layer(7, "packed", 8)]),
    ]);
    await ripen(node);
    const { items } = (await gc(node, youngAge, ...below(node, 30))).report.images;
    expect(namesOf(items).toSorted()).toEqual(
      ["packed:1", "single:1", "twin-a:1", "twin-b:1"].map(library),
    );
    const freed = (name: string) => {
      const item = items.find((one: Document) => one.name === library(name));
      return {
        atMost: (item.freesAtMostBytes ?? 0) / mebibyte,
        measured: (item.result.measuredBytes ?? 0) / mebibyte,
      };
    };
    const [less, more] = [freed("twin-a:1"), freed("twin-b:1")].toSorted(
      (one, other) => one.measured - other.measured,
    );
    expect(less?.measured).toBeLessThan(0.5);
    expect(less?.atMost).toBeLessThan(0.5);
    expect(more?.measured).toBeWithin(23, 26);
    expect(freed("single:1").measured).toBeWithin(19, 22);
    expect(freed("packed:1").measured).toBeWithin(31, 34);
  });
});
