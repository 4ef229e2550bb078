// The kubelet's pull records on a real containerd: what no record names stays, and what comes back from an archive too.

import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { library } from "../../support/containerd/archive.ts";
import { mebibyte } from "../../support/containerd/disk.ts";
import { loadImages, nameByDigest } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { startNode } from "../../support/containerd/node.ts";
import { gc, removedImages, ripen, youngAge } from "../../support/containerd/reports.ts";
import { pullRecord } from "../../support/pull-records.ts";

setDefaultTimeout(120_000);

const [pulled, preloaded] = [library("pulled:1"), library("preloaded:1")];
const image = (name: string) => ({
  names: [name],
  layers: [{ seed: name.replaceAll(/\W/g, "-"), sizeBytes: 2 * mebibyte }],
});

describe("--keep-preloaded with containerd 2.1", () => {
  test("removes the image with a record, and keeps the one from an archive, also if it is the removed one come back", async () => {
    await using node = await startNode("2.1");
    const [first] = await loadImages(node, [image(pulled), image(preloaded)]);
    await nameByDigest(node, pulled);
    pullRecord(node.rootDirectory, first?.id ?? "");
    await ripen(node);
    const pass = () => gc(node, youngAge, "--all-unused", "--keep-preloaded");
    expect(removedImages((await pass()).report)).toEqual([pulled]);
    expect(await imageTags(node)).toContain(preloaded);
    // Its record is still there.
    await loadImages(node, [image(pulled)]);
    await ripen(node);
    expect(removedImages((await pass()).report)).toEqual([]);
    expect(await imageTags(node)).toContain(pulled);
  });
});
