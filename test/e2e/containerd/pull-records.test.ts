// The kubelet's pull records on a real containerd: what no record names stays, and what comes back from an archive too.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { library } from "../../support/containerd/archive.ts";
import { mebibyte } from "../../support/containerd/disk.ts";
import { ctr, loadImages } from "../../support/containerd/import.ts";
import { imageTags, takeInventory } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { releases } from "../../support/containerd/release.ts";
import { gc, removedImages, ripen, youngAge } from "../../support/containerd/reports.ts";
import { until } from "../../support/containerd/until.ts";
import { pullRecord } from "../../support/pull-records.ts";

setDefaultTimeout(120_000);

const [pulled, preloaded] = ["pulled:1", "preloaded:1"];
const image = (name: string) => ({
  names: [library(name)],
  layers: [{ seed: name.replace(":", "-"), sizeBytes: 2 * mebibyte }],
});

describe.each([...releases])("--keep-preloaded with containerd %s", (release) => {
  let node: ContainerdNode;
  const flags = [youngAge, "--all-unused", "--keep-preloaded"];

  beforeAll(async () => {
    node = await startNode(release);
    await loadImages(node, [image(pulled), image(preloaded)]);
    await nameByDigest(node, pulled);
    const { images } = await takeInventory(node);
    const found = images.find(({ tags }) => tags.includes(library(pulled)));
    pullRecord(node.rootDirectory, found?.id ?? "");
    await ripen(node);
  });

  afterAll(async () => {
    await node?.stop();
  });

  test("removes the image with a record, and keeps the one from an archive", async () => {
    const { report } = await gc(node, ...flags);
    expect(removedImages(report)).toEqual([library(pulled)]);
    expect(await imageTags(node)).toContain(library(preloaded));
  });

  test("keeps the removed image when it comes back from an archive, although its record is still there", async () => {
    await loadImages(node, [image(pulled)]);
    await ripen(node);
    const { report } = await gc(node, ...flags);
    expect(removedImages(report)).toEqual([]);
    expect(await imageTags(node)).toContain(library(pulled));
  });
});

/** As after a pull, by which the image also has a digest of its repository. */
async function nameByDigest(node: ContainerdNode, name: string): Promise<void> {
  const listed = await ctr(node, "images", "ls", `name==${library(name)}`);
  const digest = /sha256:[0-9a-f]{64}/.exec(listed)?.[0] ?? "";
  const repository = library(name).replace(/:[^:]*$/, "");
  await ctr(node, "images", "tag", library(name), `${repository}@${digest}`);
  await until(`CRI lists ${repository} by digest`, 10_000, async () => {
    const { images } = await takeInventory(node);
    return images.some(({ digests }) => digests.includes(`${repository}@${digest}`));
  });
}
