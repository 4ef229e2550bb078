// Real runtimes tell the layers of their images: what frees nothing stays, and estimates come true on the disk.
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { library } from "../../support/containerd/archive.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { startNode } from "../../support/containerd/node.ts";
import { runPod, startContainer } from "../../support/containerd/pods.ts";
import { releases } from "../../support/containerd/release.ts";
import {
  type Document,
  gc,
  keepCodes,
  namesOf,
  planImages,
  ripen,
  youngAge,
} from "../../support/containerd/reports.ts";

setDefaultTimeout(120_000);

const layer = (seed: string, sizeMib: number, content?: "mixed") => ({
  seed,
  sizeBytes: sizeMib * mebibyte,
  ...(content && { content }),
});
const base = layer("base", 8);
/** Two of one layer, one alone, one that gzip makes a third of, and a base with what lies on it, of which a pod runs one. */
const images = {
  "twin-a:1": [layer("twin", 12)],
  "twin-b:1": [layer("twin", 12)],
  "single:1": [layer("single", 10)],
  "packed:1": [layer("packed", 24, "mixed")],
  "base:1": [base],
  "child:1": [base, layer("child-1", 2)],
  "child:2": [base, layer("child-2", 2)],
};

describe.each([...releases])("images under containerd %s", (release) => {
  test("free their own layers, within the bounds of the plan, and one whose layers an image in use has stays", async () => {
    await using node = await startNode(release, { disk: { sizeBytes: 256 * mebibyte } });
    await loadImages(
      node,
      Object.entries(images).map(([name, layers]) => ({
        names: [library(name)],
        layers,
        withBusybox: /^(?:base|child)/.test(name),
      })),
    );
    const pod = await runPod(node, { name: "steady" });
    await startContainer(node, pod, { name: "app", image: library("child:2") });
    await ripen(node);
    // More than two of the three that free most.
    const low = Math.floor(readDisk(node.disk.path).usedPercent) - 28;
    const flags = [
      youngAge,
      `--image-gc-high-threshold=${low + 5}`,
      `--image-gc-low-threshold=${low}`,
    ];
    expect(keepCodes(await planImages(node, ...flags))).toMatchObject({
      [library("base:1")]: "shares-all-layers",
    });
    const { items } = (await gc(node, ...flags)).report.images;
    const going = ["packed:1", "single:1", "twin-a:1", "twin-b:1"].map(library);
    expect(
      namesOf(items)
        .filter((name) => name !== library("child:1"))
        .toSorted(),
    ).toEqual(going);
    const freedMib = (name: string): number => {
      const item: Document = items.find((one: Document) => one.name === library(name));
      const measured = item.result.measuredBytes ?? 0;
      // The file system's own bookkeeping moves a little.
      const [least, most] = [item.freesAtLeastBytes ?? 0, item.freesAtMostBytes ?? Infinity];
      expect(measured).toBeWithin(least - mebibyte / 2, most + mebibyte / 2);
      return measured / mebibyte;
    };
    const twins = [freedMib("twin-a:1"), freedMib("twin-b:1")].toSorted((a, b) => a - b);
    expect(twins[0]).toBeLessThan(0.5);
    expect(twins[1]).toBeWithin(23, 26);
    expect(freedMib("single:1")).toBeWithin(19, 22);
    expect(freedMib("packed:1")).toBeWithin(31, 34);
  });
});
