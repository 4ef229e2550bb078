// What gc takes and leaves by its flags and rules, what explain says of it, and what the history knows afterwards.
import { expect, test } from "bun:test";
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

test("gc --images leaves containers alone, and --containers images", async () => {
  const none = "--maximum-dead-containers-per-container=0";
  await using it = await startNode({ node: usedAndUnused, flags: [...flags, none] });
  await it.crigc("gc", "--images", "--all-unused");
  expect(it.changes()).toEqual(["RemoveImage"]);
  it.runtime.node.addImage(image("unused"));
  await it.crigc("gc", "--containers", "--all-unused");
  expect(it.changes()).toEqual(["RemoveImage", "RemoveContainer"]);
});

test("gc removes dead containers first, so that the same pass can remove their images", async () => {
  const job = { id: "one", sandboxId: "pod", image: "r.example/unused:1", name: "job" } as const;
  await using it = await startNode({
    node: {
      ...usedAndUnused,
      sandboxes: [{ id: "pod", state: "not-ready" }],
      containers: [{ ...job, state: "exited" }],
    },
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

test("with --compat kubelet, plan, explain, a dry run and gc decide as a kubelet that has just started", async () => {
  await using it = await startNode({ node: { images: five } });
  await it.crigc("gc");
  await observedFor(it.stateDir, hours(3));
  const [{ firstSeenAt }] = (await it.json(["images"])).images;
  it.configure({ compat: "kubelet" });
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

test("keep rules from the flag, the directory and the file add up", async () => {
  await using it = await startNode({ node: { images: five }, flags });
  writeFileSync(join(it.keepDir, "site.list"), "\ufeff# ours\r\nr.example/b\r\n");
  it.configure({ keep: ["r.example/c:*"] });
  const invalid = ["--keep=r.example/{d,x}", "--keep=r.example/d"];
  expect(await it.crigc("gc", "--all-unused", ...invalid)).toMatchObject({ exitCode: 2 });
  expect(it.removedImages()).toEqual([]);
  const valid = "--keep=r.example/d";
  expect(await it.crigc("gc", "--all-unused", valid)).toMatchObject({ exitCode: 0 });
  expect(idsOf(it)).toEqual(["b", "c", "d"].map(imageIdOf));
});

test("the history shows when and why an image was removed, and what that freed", async () => {
  await using it = await startNode({ node: { images: five }, flags });
  const since = new Date().toISOString();
  for (const count of [4, 3]) await it.crigc("gc", `--max-images=${count}`);
  expect(it.removedImages()).toEqual(["a", "b"].map(imageIdOf));
  const { passes, removals } = await it.json(["history", "--image", "r.example/a"]);
  expect(removals).toMatchObject([
    {
      kind: "image",
      id: imageIdOf("a"),
      names: expect.arrayContaining(["r.example/a:1"]),
      trigger: "count",
      result: "removed",
      reportedBytes: 9_000_000,
    },
  ]);
  expect(removals[0].at >= since).toBe(true);
  expect(passes).toMatchObject([{ passId: removals[0].passId, passKind: "gc", removed: 1 }]);
  const { stdout } = await it.crigc("history", "--image", "r.example/a");
  expect(stdout).toContain("r.example/a:1");
  expect(stdout).not.toContain("r.example/b:1");
});

test("--image-order frequent removes what was used least often first, counted across processes, and only removals for a target age the rest", async () => {
  const order = ["--image-order=frequent", "--max-images=4"];
  // By size downwards, the popular one would go first.
  const images = ["popular", "seldom", "once"].map((name, at) => image(name, 9_000_000 - at));
  const always = { id: "always", sandboxId: "pod", image: "r.example/used:1" };
  await using it = await startNode({
    node: { images: [...images, image("used")], sandboxes: [{ id: "pod" }], containers: [always] },
    flags,
  });
  const uses = { one: "popular", two: "popular", three: "popular", four: "seldom" };
  for (const [id, name] of Object.entries(uses)) {
    const used = { id, name: id, sandboxId: "pod", image: `r.example/${name}:1` };
    it.runtime.node.addContainer({ ...used, createdAt: new Date().toISOString() });
    for (const _ of [1, 2]) await it.crigc("gc", "--images");
    it.runtime.node.containers.delete(id);
  }
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
  for (const time of [1, 2, 3]) {
    it.runtime.node.addImage(image(`new-${time}`, 1_000_000));
    await it.crigc("gc", "--images", ...order);
  }
  expect(it.removedImages()).toEqual(["once", "staged", "seldom", "new-1"].map(imageIdOf));
  expect((await it.json(["snapshot"])).ledger.agingTerm).toBe(2);
  await it.crigc("rm", "r.example/popular:1");
  expect((await it.json(["snapshot"])).ledger.agingTerm).toBe(2);
}, 60_000);
