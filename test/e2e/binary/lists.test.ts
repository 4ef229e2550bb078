// The lists of images, plan and history: IDs alone, sorted, filtered, uncut, wide, as YAML and as names.
import { describe, expect, test } from "bun:test";

import { minutes } from "../../../src/model/time.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { observedFor } from "../../support/ledger.ts";
import { startNode, type TestNode } from "./node.ts";

const long = `registry.example/${"very-".repeat(20)}long/application`;
const images = [
  { id: imageIdOf("b"), repoTags: ["r.example/b:1"], sizeBytes: 2_000 },
  { id: imageIdOf("a"), repoTags: ["r.example/a:1", "r.example/a:stable"], sizeBytes: 1_000 },
  { id: imageIdOf("c"), repoTags: [`${long}:1`], sizeBytes: 3_000 },
  { id: imageIdOf("d"), repoTags: [], sizeBytes: 4_000 },
];
const sizes = ["d", "c", "b", "a"].map(imageIdOf);

async function known(): Promise<TestNode> {
  const it = await startNode({ node: { images }, flags: ["--space-accounting=reported"] });
  await it.crigc("gc", "--images");
  await observedFor(it.stateDir, minutes(3));
  return it;
}
async function lines(it: TestNode, ...words: readonly string[]): Promise<readonly string[]> {
  const { stdout, stderr, exitCode } = await it.within({}, ...words);
  if (exitCode !== 0) throw new Error(`exit ${exitCode}: ${stderr}`);
  return stdout.trimEnd().split("\n");
}

describe("crigc images", () => {
  test("prints only IDs with -q, largest first or as sorted by --sort", async () => {
    await using it = await known();
    expect(await lines(it, "images", "-q")).toEqual(sizes);
    const byName = await lines(it, "images", "-q", "--sort", "name");
    expect(byName.indexOf(imageIdOf("a"))).toBeLessThan(byName.indexOf(imageIdOf("b")));
  });

  test("prints only names with -o name, and all names and full IDs with -o wide", async () => {
    await using it = await known();
    expect(
      await lines(it, "images", "-o", "name", "--sort=name", "--filter=reference=r.example/*"),
    ).toEqual(["r.example/a:1", "r.example/b:1"]);
    const wide = (await lines(it, "images", "-o", "wide")).join("\n");
    expect(wide).toContain("r.example/a:1,r.example/a:stable");
    expect(wide).toContain(imageIdOf("a"));
    expect(wide).toContain(`${long}:1`);
  });

  test("lists only what the filters select", async () => {
    await using it = await known();
    expect(await lines(it, "images", "-q", "--filter", "untagged")).toEqual([imageIdOf("d")]);
    expect(
      await lines(it, "images", "-q", "--filter", "larger-than=1.5k", "--filter", "unused-for=2m"),
    ).toEqual(sizes.slice(0, 3));
  });
});

describe("crigc plan", () => {
  test("prints only the candidates with -q, in order of removal or as sorted by --sort", async () => {
    await using it = await known();
    const order = (await it.json(["plan", "--all-unused"])).images.candidates.map(
      (candidate: { readonly id: string }) => candidate.id,
    );
    expect(await lines(it, "plan", "--all-unused", "-q")).toEqual(order);
    expect(await lines(it, "plan", "--all-unused", "-q", "--sort", "size")).toEqual(sizes);
    const table = await lines(it, "plan", "--all-unused", "--sort", "name", "-o", "wide");
    expect(table.some((line) => line.includes(imageIdOf("a")))).toBe(true);
  });
});

describe("crigc history", () => {
  test("prints passes, or filtered removals, by ID, newest first on request", async () => {
    await using it = await known();
    await it.within({}, "rm", imageIdOf("a"));
    await it.within({}, "rm", imageIdOf("b"));
    const removed = await lines(it, "history", "-q", "--filter", "kind=image");
    expect(removed).toEqual([imageIdOf("a"), imageIdOf("b")]);
    const newest = await lines(it, "history", "-q", "--kind=image", "--sort=newest");
    expect(newest).toEqual(removed.toReversed());
    expect(await lines(it, "history", "-o", "name", "--filter=image=r.example/b")).toEqual([
      "r.example/b:1",
    ]);
    const passes = await lines(it, "history", "-q");
    expect(passes.length).toBeGreaterThanOrEqual(2);
    expect(await lines(it, "history", "-q", "--sort", "newest")).toEqual(passes.toReversed());
  });
});
