// On real runtimes: removal by hand goes by every rule, and an image that comes back after a pass removed it is a regret.

import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";

import { type RunningAgent, shortPeriods, startAgent } from "../../support/containerd/agent.ts";
import { library } from "../../support/containerd/archive.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { ctr, loadImages } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { runProgram } from "../../support/containerd/program.ts";
import { youngAge } from "../../support/containerd/reports.ts";
import { until } from "../../support/containerd/until.ts";

setDefaultTimeout(120_000);

const image = (name: string, mebibytes: number) => ({
  names: [library(name)],
  layers: [{ seed: name, sizeBytes: mebibytes * mebibyte }],
});

let node: ContainerdNode;
let agent: RunningAgent | undefined;

beforeEach(async () => {
  node = await startNode("2.1", { disk: { sizeBytes: 256 * mebibyte } });
});

afterEach(async () => {
  await agent?.stop();
  agent = undefined;
  await node?.stop();
});

test("rm keeps a young image until --force-young is given, and then measures its freed space", async () => {
  await loadImages(node, [image("young:1", 4)]);
  expect((await runProgram(node, "rm", "young:1")).exitCode).toBe(4);
  expect(await imageTags(node)).toContain(library("young:1"));
  const before = readDisk(node.disk.path).availableBytes;
  const forced = await runProgram(node, "rm", "--force-young", "young:1", "-o", "json");
  expect(forced.exitCode).toBe(0);
  const { images } = JSON.parse(forced.stdout) as { images: { measuredFreedBytes: number } };
  expect(images.measuredFreedBytes).toBeGreaterThan(7 * mebibyte);
  expect(readDisk(node.disk.path).availableBytes - before).toBeGreaterThan(7 * mebibyte);
  expect(await ctr(node, "images", "list", "--quiet")).not.toContain("young:1");
});

test("an image that comes back after the agent removed it is a regret, with its trigger and the time in between", async () => {
  const images = ["one:1", "two:1"].map((name) => image(name, 4));
  const archived = await loadImages(node, images);
  const flags = [...shortPeriods, youngAge, "--boot-grace=0s"];
  // The sandbox image counts as well.
  agent = await startAgent(node, ...flags, "--max-images=2");
  await until("one of the two went", 30_000, async () => (await imageTags(node)).length === 2);
  await agent.stop();
  const left = await imageTags(node);
  const gone = archived.find(({ names: [name = ""] }) => !left.includes(name));
  expect(gone).toBeDefined();

  agent = await startAgent(node, ...flags);
  await loadImages(
    node,
    images.filter(({ names }) => names[0] === gone?.names[0]),
  );
  const regrets = await until("the regret is on record", 30_000, async () => {
    const { stdout } = await runProgram(node, "history", "--regrets", "-o", "json");
    const found = (JSON.parse(stdout) as { regrets: readonly Record<string, unknown>[] }).regrets;
    return found.length > 0 && found;
  });
  expect(regrets).toMatchObject([{ id: gone?.id, returnedAs: gone?.id, reason: "count" }]);
  const listed = await runProgram(node, "history", "--regrets");
  expect(listed.stdout).toContain(`library/${nameOf(gone)}:1`);
  const status = await runProgram(node, "status", "-o", "json");
  expect(JSON.parse(status.stdout)).toMatchObject({
    regrets: { removedImages: 1, returned: [{ trigger: "count", count: 1 }] },
  });
  expect((await runProgram(node, "status")).stdout).toContain("came back");
});

const nameOf = (archived: { readonly names: readonly string[] } | undefined): string =>
  archived?.names[0]?.replace(/^.*\/|:.*$/g, "") ?? "";
