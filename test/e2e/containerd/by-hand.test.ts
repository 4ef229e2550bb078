// On real runtimes: removal by hand goes by every rule, and an image that comes back after a pass removed it is a regret.

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { writeFileSync } from "node:fs";

import { type RunningAgent, shortPeriods, startAgent } from "../../support/containerd/agent.ts";
import { library } from "../../support/containerd/archive.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { ctr, loadImages } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { execInContainer, runPod, startContainer } from "../../support/containerd/pods.ts";
import { runProgram } from "../../support/containerd/program.ts";
import { gc, removedImages, ripen, youngAge } from "../../support/containerd/reports.ts";
import { until } from "../../support/containerd/until.ts";

setDefaultTimeout(120_000);

const image = (name: string, mebibytes: number) => ({
  names: [library(name)],
  layers: [{ seed: name, sizeBytes: mebibytes * mebibyte }],
});

describe("removal by hand under containerd 2.1", () => {
  let node: ContainerdNode;
  let web: string;

  beforeAll(async () => {
    node = await startNode("2.1", { disk: { sizeBytes: 256 * mebibyte } });
    const names = ["web:1", "kept:1", "young:1", "tool:1", "tool:2", "other:1"];
    await loadImages(node, [...names.map((name) => image(name, 4)), image("large:1", 16)]);
    writeFileSync(`${node.keepDirectory}/ours.list`, "kept\n");
    const pod = await runPod(node, { name: "web" });
    web = (await startContainer(node, pod, { name: "web", image: library("web:1") })).id;
  });

  afterAll(async () => {
    await node?.stop();
  });

  test("keeps images of containers, sandboxes and keep lists, and each refusal names its rule", async () => {
    const { exitCode, stdout } = await runProgram(
      node,
      "rm",
      "--force-young",
      "web:1",
      "kept:1",
      node.sandboxImage,
    );
    expect(exitCode).toBe(5);
    for (const words of ["running container web/web", "ours.list:1", "in use by sandbox"])
      expect(stdout).toContain(words);
    const tags = await imageTags(node);
    for (const name of [library("web:1"), library("kept:1"), node.sandboxImage])
      expect(tags).toContain(name);
    expect(await execInContainer(node, web, ["echo", "alive"])).toBe("alive\n");
  });

  test("keeps a young image until --force-young is given, and then measures its freed space", async () => {
    const young = await runProgram(node, "rm", "young:1");
    expect(young.exitCode).toBe(4);
    expect(await imageTags(node)).toContain(library("young:1"));
    const before = readDisk(node.disk.path).availableBytes;
    const { exitCode, stdout } = await runProgram(
      node,
      ...(["rm", "--force-young", "young:1", "-o", "json"] as const),
    );
    expect(exitCode).toBe(0);
    const { images } = JSON.parse(stdout) as { images: { measuredFreedBytes: number } };
    expect(images.measuredFreedBytes).toBeGreaterThan(7 * mebibyte);
    expect(readDisk(node.disk.path).availableBytes - before).toBeGreaterThan(7 * mebibyte);
    expect(await ctr(node, "images", "list", "--quiet")).not.toContain("young:1");
  });

  test("with gc --filter removes the images that all filters select, although no threshold is exceeded", async () => {
    await ripen(node);
    const one = await gc(
      node,
      youngAge,
      "--filter=reference=*/library/tool",
      "--filter=larger-than=1Mi",
    );
    expect(one.exitCode).toBe(0);
    expect(removedImages(one.report).toSorted()).toEqual([library("tool:1"), library("tool:2")]);
    const large = await gc(node, youngAge, "--filter=larger-than=10Mi");
    expect(removedImages(large.report)).toEqual([library("large:1")]);
    const tags = await imageTags(node);
    expect(tags.filter((tag) => /tool|large/.test(tag))).toEqual([]);
    for (const name of ["web:1", "kept:1", "other:1"]) expect(tags).toContain(library(name));
  });
});

describe("an image that comes back under containerd 2.1", () => {
  let node: ContainerdNode;
  let agent: RunningAgent | undefined;

  afterEach(async () => {
    await agent?.stop();
    agent = undefined;
    await node?.stop();
  });

  test("after the agent removed it is a regret, with its trigger and the time in between", async () => {
    node = await startNode("2.1", { disk: { sizeBytes: 256 * mebibyte } });
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
});

const nameOf = (archived: { readonly names: readonly string[] } | undefined): string =>
  archived?.names[0]?.replace(/^.*\/|:.*$/g, "") ?? "";
