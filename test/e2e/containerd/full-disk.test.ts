// A disk without a byte left under real runtimes.
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { startAgent } from "../../support/containerd/agent.ts";
import { library } from "../../support/containerd/archive.ts";
import { command, tryCommand } from "../../support/containerd/command.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { type Release, releases } from "../../support/containerd/release.ts";
import { gc, removedImages, ripen, youngAge } from "../../support/containerd/reports.ts";
import { until } from "../../support/containerd/until.ts";

setDefaultTimeout(120_000);

/** Until the file system itself says that it is full: root's daemons write into its reserve, too. */
async function fullNode(release: Release): Promise<ContainerdNode> {
  const node = await startNode(release, { disk: { sizeBytes: 256 * mebibyte } });
  for (let number = 1; readDisk(node.disk.path).usedPercent < 88; number += 1) {
    const layers = [{ seed: `unused-${number}`, sizeBytes: 8 * mebibyte }];
    await loadImages(node, [{ names: [library(`unused:${number}`)], layers }]);
  }
  await ripen(node);
  const dd = await tryCommand(["dd", "if=/dev/zero", `of=${node.disk.path}/all`, "bs=4k"]);
  expect(dd.stderr).toContain("No space left");
  await command("sync", "-f", node.disk.path);
  expect(readDisk(node.disk.path).availableBytes).toBe(0);
  return node;
}

describe.each([...releases])("a full disk under containerd %s", (release) => {
  test("without a free byte is still collected by gc", async () => {
    await using node = await fullNode(release);
    const before = await imageTags(node);
    const { exitCode, report } = await gc(node, youngAge);
    expect({ exitCode, end: report.images.end }).toEqual({ exitCode: 0, end: "target-reached" });
    expect(readDisk(node.disk.path).usedPercent).toBeLessThanOrEqual(80);
    expect(await imageTags(node)).toHaveLength(before.length - removedImages(report).length);
  });

  test("without a free byte is still collected by the agent", async () => {
    await using node = await fullNode(release);
    await using agent = await startAgent(node, youngAge);
    await until("the disk is below its thresholds", 20_000, () => {
      return readDisk(node.disk.path).usedPercent <= 85;
    });
    expect(agent.said()).not.toContain("NothingFreed");
  });
});
