// The agent beside real runtimes that crash, beside another agent, and on a disk without a byte left.
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { startAgent } from "../../support/containerd/agent.ts";
import { library } from "../../support/containerd/archive.ts";
import { command, tryCommand } from "../../support/containerd/command.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { runProgram } from "../../support/containerd/program.ts";
import { type Release, releases } from "../../support/containerd/release.ts";
import { gc, removedImages, ripen, youngAge } from "../../support/containerd/reports.ts";
import { until } from "../../support/containerd/until.ts";

setDefaultTimeout(120_000);

test("a pass during which the runtime dies ends, because the images in use are unknown", async () => {
  await using node = await nodeFilledTo(96);
  const before = await imageTags(node);
  const pass = gc(node, youngAge, "--removal-interval=2s");
  await until("the first image is gone", 20_000, async () => {
    return (await imageTags(node)).length < before.length;
  });
  // In the pause before the next removal: killed during one, its answer would be lost.
  await Bun.sleep(700);
  await node.killRuntime();
  const { exitCode, report } = await pass;
  expect({ exitCode, end: report.images.end }).toEqual({ exitCode: 3, end: "observation-failed" });
  expect(removedImages(report)).toHaveLength(1);
  await node.startRuntime();
  expect(await imageTags(node)).toHaveLength(before.length - 1);
});

test("a second agent for the same runtime exits 6 and names the first, whatever its state directory", async () => {
  await using node = await startNode("1.7");
  await using first = await startAgent(node);
  for (const more of [[], [`--state-dir=${node.directory}/s`, `--run-dir=${node.directory}/r`]]) {
    const second = await runProgram(node, "run", ...more);
    expect(second.exitCode).toBe(6);
    expect(second.stderr).toContain(`crigc run, process ${first.pid}`);
  }
  // The first one's socket still answers.
  expect((await first.status()).runtimeError).toBeNull();
});

describe.each([...releases])("a full disk under containerd %s", (release) => {
  test("without a byte left is collected all the same", async () => {
    await using node = await nodeFilledTo(88, release, 0);
    // Until the file system itself says that it is full.
    const dd = await tryCommand(["dd", "if=/dev/zero", `of=${node.disk.path}/all`, "bs=4k"]);
    expect(dd.stderr).toContain("No space left");
    await command("sync", "-f", node.disk.path);
    expect(readDisk(node.disk.path).availableBytes).toBeLessThan(65_536);
    const before = await imageTags(node);
    const { exitCode, report } = await gc(node, youngAge);
    expect({ exitCode, end: report.images.end }).toEqual({ exitCode: 0, end: "target-reached" });
    expect(readDisk(node.disk.path).usedPercent).toBeLessThanOrEqual(80);
    expect(await imageTags(node)).toHaveLength(before.length - removedImages(report).length);
  });
});

/** Full of images that are old enough to go. */
async function nodeFilledTo(
  percent: number,
  release: Release = "1.7",
  reservedPercent = 5,
): Promise<ContainerdNode> {
  const node = await startNode(release, { disk: { sizeBytes: 256 * mebibyte, reservedPercent } });
  for (let number = 1; readDisk(node.disk.path).usedPercent < percent; number += 1) {
    const layers = [{ seed: `unused-${number}`, sizeBytes: 8 * mebibyte }];
    await loadImages(node, [{ names: [library(`unused:${number}`)], layers }]);
  }
  await ripen(node);
  return node;
}
