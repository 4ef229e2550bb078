// crigc rm, and gc with --filter, --images and --containers: what a person chooses goes with every check of a pass, and what a rule keeps stays.
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { minutes } from "../../../src/model/time.ts";
import { imageIdOf, type NodeDescription } from "../../support/fake-runtime/describe.ts";
import { observedFor } from "../../support/ledger.ts";
import { image, onAnyDisk, removable, startNode, type TestNode, usedAndUnused } from "./node.ts";

const node: NodeDescription = {
  images: [
    image("used", 1_000_000),
    image("kept", 2_000_000),
    image("pinned", 3_000_000, { pinned: true }),
    image("small", 4_000_000, { repoTags: ["r.example/small:1", "r.example/small:latest"] }),
    image("large", 5_000_000_000),
    image("nameless", 6_000_000, { repoTags: [] }),
    image("batch", 7_000_000),
  ],
  sandboxes: [
    { id: "web", namespace: "shop", uid: "uid-web" },
    { id: "job", namespace: "batch", uid: "uid-job", state: "not-ready" },
  ],
  containers: [
    { id: "front", sandboxId: "web", image: "r.example/used:1", name: "front", attempt: 1 },
    { id: "old", sandboxId: "web", image: "r.example/used:1", name: "front", state: "exited" },
    { id: "done", sandboxId: "job", image: "r.example/batch:1", name: "job", state: "exited" },
    {
      id: "again",
      sandboxId: "job",
      image: "r.example/used:1",
      name: "job",
      attempt: 1,
      state: "exited",
    },
  ],
};

async function seenFor(span: Parameters<typeof observedFor>[1]): Promise<TestNode> {
  const it = await startNode({ node });
  writeFileSync(join(it.keepDir, "site.list"), "r.example/kept\n");
  await it.crigc("gc", "--images");
  await observedFor(it.stateDir, span);
  return it;
}
const names = (it: TestNode): readonly string[] =>
  it.removedImages().map((id) => {
    const found = node.images?.find((one) => one.id === id);
    return found?.repoTags?.[0] ?? "nameless";
  });

describe("crigc rm", () => {
  test.each([
    ["a tag", "r.example/small:1"],
    ["the beginning of an ID", imageIdOf("small").slice(7, 19)],
  ])(
    "removes the image that %s names, and no other, although no threshold is exceeded",
    async (_, reference) => {
      await using it = await seenFor(minutes(3));
      const { exitCode, stdout } = await it.crigc("rm", reference);
      expect(exitCode).toBe(0);
      expect(it.removedImages()).toEqual([imageIdOf("small")]);
      expect(stdout).toContain("1 removed");
      expect((await it.crigc("history")).stdout).toContain("r.example/small");
    },
  );

  test("keeps an image below the minimum age, which only gc --force-young overrides, and no other rule", async () => {
    const flags = [...onAnyDisk];
    await using it = await startNode({ node, flags });
    writeFileSync(join(it.keepDir, "site.list"), "r.example/kept\n");
    const young = await it.crigc("rm", "r.example/small:1");
    expect(young.exitCode).toBe(4);
    expect(young.stdout).toContain("the minimum age is 2m");
    const force = (name: string) =>
      it.crigc("gc", "--force-young", "--images", "--filter", `reference=r.example/${name}`);
    for (const name of ["used", "kept", "pinned"]) expect((await force(name)).exitCode).toBe(0);
    expect(it.changes()).toEqual([]);
    expect((await force("small")).exitCode).toBe(0);
    expect(names(it)).toEqual(["r.example/small:1"]);
    expect((await it.crigc("gc", "--force-young", "--images", "--all-unused")).exitCode).toBe(0);
    expect(names(it)).toEqual(["r.example/small:1", "r.example/large:1", "nameless"]);
  });

  test("removes nothing if one of the names is unknown, with --dry-run, or during a hold", async () => {
    await using it = await seenFor(minutes(3));
    const { exitCode, stderr } = await it.crigc("rm", "r.example/small:1", "r.example/nope:1");
    expect(exitCode).toBe(8);
    expect(stderr).toContain("unknown image r.example/nope:1");
    const dry = await it.crigc("rm", "r.example/small:1", "--dry-run");
    expect(dry).toMatchObject({ exitCode: 0 });
    await it.crigc("hold", "1h");
    expect((await it.crigc("rm", "r.example/small:1")).exitCode).toBe(7);
    expect(it.changes()).toEqual([]);
  });
});

describe("crigc gc --filter", () => {
  test.each([
    ["untagged", ["nameless"]],
    ["larger-than=1Gi", ["r.example/large:1"]],
    ["unused-for=2h", []],
  ])("%s removes the images that it selects and no rule keeps", async (filter, expected) => {
    await using it = await seenFor(minutes(3));
    const { exitCode } = await it.crigc("gc", "--filter", filter);
    expect(exitCode).toBe(0);
    expect(names(it).toSorted()).toEqual(expected);
    expect(it.changes().every((method) => method === "RemoveImage")).toBe(true);
  });

  test("exits 4 while a selected image is too young, which stays, and not for one that was not selected", async () => {
    await using it = await seenFor(minutes(3));
    it.runtime.node.addImage(image("young", 2_000_000_000));
    const large = await it.crigc("gc", "--filter", "larger-than=1Gi");
    expect({ exitCode: large.exitCode, removed: names(it) }).toEqual({
      exitCode: 4,
      removed: ["r.example/large:1"],
    });
    expect(large.stdout).toContain("becomes removable in");
    expect(await it.crigc("gc", "--filter", "untagged")).toMatchObject({ exitCode: 0 });
  });

  test("with a namespace removes its dead containers and their images, and nothing of another", async () => {
    await using it = await seenFor(minutes(3));
    await it.crigc("gc", "--filter", "namespace=batch");
    expect([...it.runtime.node.containers.keys()].toSorted()).toEqual(["again", "front", "old"]);
    expect(names(it)).toEqual(["r.example/batch:1"]);
  });
});

test("gc --images leaves containers alone, and --containers images", async () => {
  const none = "--maximum-dead-containers-per-container=0";
  await using it = await startNode({ node: usedAndUnused, flags: [...removable, none] });
  await it.crigc("gc", "--images", "--all-unused");
  expect(it.changes()).toEqual(["RemoveImage"]);
  it.runtime.node.addImage(image("unused"));
  await it.crigc("gc", "--containers", "--all-unused");
  expect(it.changes()).toEqual(["RemoveImage", "RemoveContainer"]);
});
