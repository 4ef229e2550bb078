// What the executable remembers over calls, and what it does where that is lost, broken or written elsewhere.
import { describe, expect, test } from "bun:test";
import { readdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { minutes } from "../../../src/model/time.ts";
import { observedFor } from "../../support/ledger.ts";
import { diskObstacle, MiB, smallDisk } from "./disk.ts";
import { type Json, numberedImages, removable, startNode, type TestNode } from "./node.ts";

const images = numberedImages(3);
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
      flags: removable,
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
