// Leases with the executable: they keep an image for their time or until its first use, and no longer.

import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";
import { image, type Json, removable, startNode, usedAndUnused } from "./node.ts";

const unused = image("unused");
const other = image("other");
const node = { ...usedAndUnused, images: [...usedAndUnused.images, other] };
const flags = removable;

test("a lease of keep add --until keeps an image for its time, and keep list shows both ends", async () => {
  await using it = await startNode({ node, flags });
  const added = await it.crigc("keep", "add", "r.example/unused", "--until", "1s");
  expect(added).toMatchObject({ exitCode: 0, stderr: "" });
  expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
  expect(it.removedImages()).toEqual([other.id]);
  const leaseOf = async () => (await it.json(["keep", "list"])).rules[0].lease;
  expect(await leaseOf()).toMatchObject({
    untilUsed: false,
    lastsMs: 1000,
    startedAt: expect.stringMatching(/^20/),
  });
  await until("the lease is over", 10_000, async () => {
    await it.crigc("gc", "--images");
    return (await leaseOf()).remainingMs === 0;
  });
  expect(await it.crigc("keep", "check")).toMatchObject({ exitCode: 0 });
  expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
  expect(it.removedImages()).toContain(unused.id);
});

test("a lease until the first use ends with a new container, not with one that was there", async () => {
  await using it = await startNode({ node, flags });
  const lines = ["unused", "used"].map((name) => `r.example/${name}:1 # crigc: until used\n`);
  writeFileSync(join(it.keepDir, "image.list"), lines.join(""));
  await it.crigc("gc", "--all-unused");
  expect((await it.crigc("explain", unused.id)).stdout).toMatch(
    /lease ends in \S+ or with its first use, since 20/,
  );
  const user = { id: "new", sandboxId: "pod", image: "r.example/unused:1" };
  it.runtime.node.addContainer({ ...user, createdAt: new Date().toISOString() });
  await it.crigc("gc", "--all-unused");
  const { rules } = await it.json(["keep", "list"]);
  expect(rules.map((rule: Json) => rule.lease.usedAt === null)).toEqual([false, true]);
  it.runtime.node.removeContainer("new");
  await it.crigc("gc", "--all-unused");
  expect(it.removedImages()).toContain(unused.id);
});
