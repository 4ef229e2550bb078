// What gc takes and leaves by its flags and rules, what explain says of it, and what the history knows afterwards.
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { hours } from "../../../src/model/time.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { observedFor, passesApart } from "../../support/ledger.ts";
import { image, type Json, removable, startNode, type TestNode, usedAndUnused } from "./node.ts";

const flags = removable;
const idsOf = (node: TestNode): readonly string[] => node.runtime.node.images.map(({ id }) => id);
/** By size downwards: the order in which images of the same age go. */
const five = ["a", "b", "c", "d", "e"].map((name, index) =>
  image(name, 9_000_000 - index * 1_000_000),
);

describe("gc", () => {
  test("--images leaves containers alone, and --containers images", async () => {
    const none = "--maximum-dead-containers-per-container=0";
    await using it = await startNode({ node: usedAndUnused, flags: [...flags, none] });
    await it.crigc("gc", "--images", "--all-unused");
    expect(it.changes()).toEqual(["RemoveImage"]);
    await using other = await startNode({ node: usedAndUnused, flags: [...flags, none] });
    await other.crigc("gc", "--containers", "--all-unused");
    expect(other.changes()).toEqual(["RemoveContainer"]);
    expect(idsOf(other)).toHaveLength(2);
  });

  test("removes dead containers first, so that the same pass can remove their images", async () => {
    const containers = [
      {
        id: "one",
        sandboxId: "pod",
        image: "r.example/unused:1",
        name: "job",
        state: "exited" as const,
      },
    ];
    const sandboxes = [{ id: "pod", state: "not-ready" as const }];
    const node = { ...usedAndUnused, sandboxes, containers };
    await using it = await startNode({
      node,
      flags: [...flags, "--collect-foreign", "--dead-pod-ttl=0s"],
    });
    await it.crigc("gc", "--all-unused");
    await passesApart(it.stateDir);
    await it.crigc("gc", "--all-unused");
    const calls = it.changes();
    expect(calls).toContain("RemoveContainer");
    expect(calls.indexOf("RemoveContainer")).toBeLessThan(calls.lastIndexOf("RemoveImage"));
    expect(idsOf(it)).toEqual([]);
  });

  test("--max-images removes down to the number, the largest of equal age first", async () => {
    await using it = await startNode({ node: { images: five }, flags });
    expect(await it.crigc("gc", "--max-images=3")).toMatchObject({ exitCode: 0 });
    expect(it.removedImages()).toEqual([imageIdOf("a"), imageIdOf("b")]);
  });

  test("with --compat kubelet, plan, explain, a dry run and gc decide as a kubelet that has just started", async () => {
    await using it = await startNode({ node: { images: five } });
    await it.crigc("gc");
    await observedFor(it.stateDir, hours(3));
    const [{ firstSeenAt }] = (await it.json(["images"])).images;
    it.configure({ compat: "kubelet" });
    expect((await it.json(["images"])).images).toMatchObject(five.map(() => ({ firstSeenAt })));
    const recorded = await it.json(["snapshot"]);
    expect(recorded.ledger.images).toMatchObject(five.map(() => ({ firstSeenAt })));
    const asked = ["--images", "--all-unused"];
    const planned = (await it.json(["plan", ...asked])).images;
    const dry = (await it.json(["gc", "--dry-run", ...asked])).plan.images;
    const report = await it.json(["gc", ...asked], 4);
    for (const plan of [planned, dry, report.plan.images]) {
      expect(plan.candidates).toEqual([]);
      expect(plan.kept.map((one: Json) => one.reason.code)).toEqual(five.map(() => "too-young"));
    }
    expect(it.removedImages()).toEqual([]);
    expect((await it.json(["explain", imageIdOf("a")])).things).toMatchObject([
      { firstSeenAt, reason: { code: "too-young" } },
    ]);
  }, 30_000);
});

describe("keep rules", () => {
  test("from the flag, the directory and the file add up", async () => {
    await using it = await startNode({ node: { images: five }, flags });
    writeFileSync(join(it.keepDir, "site.list"), "\ufeff# ours\r\nr.example/b\r\n");
    it.configure({ keep: ["r.example/c:*"] });
    expect(
      await it.crigc("gc", "--all-unused", "--keep=r.example/{d,x}", "--keep=r.example/d"),
    ).toMatchObject({
      exitCode: 2,
    });
    expect(it.removedImages()).toEqual([]);
    expect(await it.crigc("gc", "--all-unused", "--keep=r.example/d")).toMatchObject({
      exitCode: 0,
    });
    expect(idsOf(it)).toEqual(["b", "c", "d"].map(imageIdOf));
  });
});

describe("history", () => {
  test("shows when and why an image was removed, and what that freed", async () => {
    await using it = await startNode({ node: { images: five }, flags });
    const since = new Date().toISOString();
    await it.crigc("gc", "--max-images=4");
    await it.crigc("gc", "--max-images=3");
    const { passes, removals } = await it.json(["history", "--image", "r.example/a"]);
    expect(removals).toHaveLength(1);
    expect(removals[0]).toMatchObject({
      kind: "image",
      id: imageIdOf("a"),
      names: expect.arrayContaining(["r.example/a:1"]),
      trigger: "count",
      result: "removed",
      reportedBytes: 9_000_000,
    });
    expect(removals[0].at >= since).toBe(true);
    expect(passes).toHaveLength(1);
    expect(passes[0]).toMatchObject({ passId: removals[0].passId, passKind: "gc", removed: 1 });
    const { stdout } = await it.crigc("history", "--image", "r.example/a");
    expect(stdout).toContain("r.example/a:1");
    expect(stdout).not.toContain("r.example/b:1");
  });
});

test("--image-order frequent removes what was used least often first, counted across processes, and only removals for a target age the rest", async () => {
  const order = ["--image-order=frequent", "--max-images=4"];
  const names = ["popular", "seldom", "once"];
  // By size downwards, the popular one would go first.
  const images = names.map((name, at) => image(name, 9_000_000 - at));
  const always = { id: "always", sandboxId: "pod", image: "r.example/used:1" };
  const node = {
    images: [...images, image("used")],
    sandboxes: [{ id: "pod" }],
    containers: [always],
  };
  await using it = await startNode({ node, flags });
  const use = async (name: string, id: string): Promise<void> => {
    it.runtime.node.addContainer({
      id,
      sandboxId: "pod",
      image: `r.example/${name}:1`,
      name: id,
      createdAt: new Date().toISOString(),
    });
    await it.crigc("gc", "--images");
    await it.crigc("gc", "--images");
    it.runtime.node.containers.delete(id);
  };
  for (const id of ["one", "two", "three"]) await use("popular", id);
  await use("seldom", "four");
  it.runtime.node.addImage(image("staged", 1_000_000));
  const plan = await it.json(["plan", "--images", ...order]);
  const keys = plan.images.candidates.map((one: Json) => [one.repoTags[0], one.uses, one.orderKey]);
  expect(keys).toEqual([
    ["r.example/once:1", 1, 1],
    ["r.example/staged:1", 1, 1],
    ["r.example/seldom:1", 2, 2],
    ["r.example/popular:1", 4, 4],
  ]);
  expect((await it.crigc("plan", "--images", ...order)).stdout).toMatch(/ USES +KEY /);
  expect((await it.crigc("explain", "r.example/popular:1", ...order)).stdout).toContain(
    "uses since it came: 4; key in the order of removal: 4",
  );
  await it.crigc("gc", "--images", ...order);
  for (let time = 1; time <= 3; time += 1) {
    it.runtime.node.addImage(image(`new-${time}`, 1_000_000));
    await it.crigc("gc", "--images", ...order);
  }
  expect(it.removedImages()).toEqual(["once", "staged", "seldom", "new-1"].map(imageIdOf));
  expect((await it.json(["snapshot"])).ledger.agingTerm).toBe(2);
  // By hand.
  await it.crigc("rm", "r.example/popular:1");
  expect((await it.json(["snapshot"])).ledger.agingTerm).toBe(2);
}, 60_000);
