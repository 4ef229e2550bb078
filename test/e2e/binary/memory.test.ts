// What the executable remembers over calls, and what it does where that is lost, broken or written elsewhere.
import { describe, expect, test } from "bun:test";
import { readdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { minutes } from "../../../src/model/time.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { diskObstacle, MiB, smallDisk } from "./disk.ts";
import { type Json, startNode, type TestNode } from "./node.ts";
import { observedFor } from "./watched.ts";

const images = [0, 1, 2].map((index) => ({
  id: imageIdOf(index),
  repoTags: [`r.example/i${index}:1`],
  sizeBytes: 1_000_000 - index,
}));
const flags = ["--space-accounting=reported"];

/** A node whose images were seen so long ago that they may go. */
async function remembered(): Promise<TestNode> {
  const it = await startNode({ node: { images }, flags });
  expect(await it.crigc("gc", "--images")).toMatchObject({ exitCode: 0 });
  await observedFor(it.stateDir, minutes(3));
  return it;
}
const database = (it: TestNode): string => {
  const name = readdirSync(it.stateDir).find((one) => one.endsWith(".db"));
  if (name === undefined) throw new Error(`no database in ${readdirSync(it.stateDir).join(", ")}`);
  return join(it.stateDir, name);
};

test("the first gc finds every image too young and says so; after the minimum age gc removes images", async () => {
  await using it = await startNode({ node: { images }, flags: ["--space-accounting=reported"] });
  const first = await it.json(["gc", "--all-unused"], 4);
  expect(it.removedImages()).toEqual([]);
  expect(first.plan.images.kept.map((kept: Json) => kept.reason.code)).toEqual([
    "too-young",
    "too-young",
    "too-young",
  ]);
  await using old = await remembered();
  await old.crigc("gc", "--all-unused");
  expect(old.removedImages()).toHaveLength(3);
});

describe("a ledger", () => {
  test.each([
    ["of garbage", (path: string) => writeFileSync(path, Buffer.alloc(8_192, 0x5a))],
    ["that was cut off", (path: string) => truncateSync(path, 1_000)],
    ["of text", (path: string) => writeFileSync(path, "no database at all\n".repeat(500))],
  ])("%s is moved aside with a warning, and every image counts as new", async (_, spoil) => {
    await using it = await remembered();
    const path = database(it);
    for (const suffix of ["-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
    spoil(path);
    for (const words of [["plan", "--all-unused"], ["doctor"]]) {
      const { stdout, stderr } = await it.crigc(words[0] ?? "", ...words.slice(1));
      expect(stderr).toContain(path);
      // Neither of them changes anything, so neither may say that the file was moved.
      expect(`${stdout}${stderr}`).toContain("crigc run moves the file aside");
      expect(`${stdout}${stderr}`).not.toContain("is put aside");
    }
    expect(readdirSync(it.stateDir).some((name) => name.includes(".broken-"))).toBe(false);
    const gc = await it.crigc("gc", "--all-unused");
    expect(gc.stderr).toContain(".broken-");
    expect(it.removedImages()).toEqual([]);
    expect(readdirSync(it.stateDir).some((name) => name.includes(".broken-"))).toBe(true);
    await observedFor(it.stateDir, minutes(3));
    await it.crigc("gc", "--all-unused");
    expect(it.removedImages()).toHaveLength(3);
  });
});

const BRIEFLY = "--runtime-request-timeout=3s";

describe.skipIf(diskObstacle !== null)("a state directory on a full disk", () => {
  test("does not stop collection", async () => {
    await using disk = await smallDisk(4 * MiB);
    await using it = await startNode({
      node: { images },
      flags: ["--minimum-image-ttl-duration=0s", "--space-accounting=reported"],
    });
    const stateDir = join(disk.directory, "state");
    await it.crigc("gc", "--images", `--state-dir=${stateDir}`);
    const { bavail, bsize } = statfsSync(disk.directory);
    writeFileSync(join(disk.directory, "full"), Buffer.alloc(bavail * bsize));
    const { exitCode } = await it.crigc("gc", "--all-unused", `--state-dir=${stateDir}`, BRIEFLY);
    expect(it.removedImages()).toHaveLength(3);
    // The records of the removals are lost.
    expect(exitCode).toBe(1);
    rmSync(join(disk.directory, "full"));
    expect(await it.crigc("history", `--state-dir=${stateDir}`)).toMatchObject({ exitCode: 0 });
  });
});

describe("a node where", () => {
  test("all containers vanished at once is left alone during the boot grace", async () => {
    const node = {
      images,
      sandboxes: [{ id: "pod" }],
      containers: [{ id: "web", sandboxId: "pod", image: "r.example/i0:1" }],
    };
    const own = ["--minimum-image-ttl-duration=0s", "--space-accounting=reported"];
    await using it = await startNode({ node, flags: own });
    await it.crigc("gc");
    it.runtime.node.containers.clear();
    it.runtime.node.sandboxes.clear();
    // What was asked for could not be had.
    const report = await it.json(["gc", "--all-unused"], 4);
    expect(it.changes()).toEqual([]);
    expect(report.plan.images.blocks.map((block: Json) => block.code)).toEqual(["boot-grace"]);
    const { exitCode, stdout, stderr } = await it.crigc("gc", "--containers", "--all-unused");
    expect(exitCode).toBe(4);
    for (const text of [stdout, stderr])
      expect(text).toMatch(/grace period \(--boot-grace\) for another .*, because all containers/);
  });

  test("a pod is just starting keeps its images until the containers exist", async () => {
    const node = {
      images,
      sandboxes: [{ id: "pod", createdAt: new Date().toISOString() }],
    };
    const own = ["--minimum-image-ttl-duration=0s", "--space-accounting=reported"];
    await using it = await startNode({ node, flags: own });
    const plan = await it.json(["plan", "--all-unused"]);
    expect(plan.images.blocks.map((block: Json) => block.code)).toEqual(["pod-starting"]);
    const gc = it.start("gc", "--all-unused");
    const lists = it.runtime.callsOf("ListContainers").length;
    while (it.runtime.callsOf("ListContainers").length < lists + 3) await Bun.sleep(20);
    expect(it.removedImages()).toEqual([]);
    it.runtime.node.addContainer({ id: "web", sandboxId: "pod", image: "r.example/i1:1" });
    expect(await gc.exited).toBe(0);
    expect(it.runtime.node.images.map(({ id }) => id)).toEqual([imageIdOf(1)]);
  });
});
