// A day of an operator with the executable: hold, keep, look, ask who removed what; beside an agent where that matters.
import { expect, test } from "bun:test";

import { image, quickPasses, removable, startNode, usedAndUnused } from "./node.ts";

const unused = image("unused");
const other = image("other");
const [, used] = usedAndUnused.images;
const node = { ...usedAndUnused, images: [...usedAndUnused.images, other] };
const flags = removable;

test("hold stops gc with exit 7 and a running agent until release, and shows its end and reason", async () => {
  await using it = await startNode({ node, flags: [...quickPasses, "--max-images=2"] });
  const held = await it.crigc("hold", "1h", "--reason", "upgrade");
  expect(held).toMatchObject({ exitCode: 0, stderr: "" });
  expect(held.stdout).toMatch(/^Garbage collection is on hold for 1h, until .*Z \(upgrade\); /);
  await using agent = it.start("run");
  expect((await it.firstPass()).hold).toMatchObject({ reason: "upgrade" });
  await it.looksAgain();
  const stopped = await it.crigc("gc", "--all-unused");
  expect(stopped.exitCode).toBe(7);
  expect(stopped.stdout).toContain("upgrade");
  expect(it.changes()).toEqual([]);
  expect((await it.crigc("release")).stdout).toContain("Hold released: it would have lasted");
  await it.untilRemoved(1);
  expect((await it.status()).hold).toBeNull();
  expect(await agent.stop()).toBe(0);
});

test("keep baseline keeps today's images and no later one", async () => {
  await using it = await startNode({ node, flags });
  expect(await it.crigc("keep", "baseline")).toMatchObject({ exitCode: 0, stderr: "" });
  expect(await it.crigc("keep", "check")).toMatchObject({ exitCode: 0 });
  const later = image("later");
  it.runtime.node.addImage(later);
  expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
  expect(it.removedImages()).toEqual([later.id]);
  expect((await it.crigc("explain", unused.id)).stdout).toContain("baseline.list:");
});

test("an agent raises one event for a missing baseline image, and status shows it until it is back", async () => {
  const pinned = { ...unused, pinned: true };
  const traits = { statusInfo: {} };
  await using it = await startNode({ node: { ...node, images: [pinned, used] }, flags, traits });
  await it.crigc("keep", "baseline");
  it.runtime.node.removeImage(used.id);
  // As k3s drops the label of an imported image when it restarts.
  it.runtime.node.removeImage(unused.id);
  it.runtime.node.addImage({ ...unused, pinned: false });
  await using agent = it.start("run", "--image-detection-period=1s");
  const seen = await it.status("the agent compares", ({ baseline }) => baseline !== null);
  expect(seen.baseline).toMatchObject({ images: 2, present: 1, missing: 1 });
  const { stdout } = await it.crigc("status");
  expect(stdout).toContain("1 missing (r.example/used:1), 1 no longer pinned (r.example/unused:1)");
  it.runtime.node.addImage(used);
  await it.status("it is back", ({ baseline }) => baseline.missing === 0);
  expect(await agent.stop()).toBe(0);
  const events = (await it.json(["history"])).events as { reason: string }[];
  expect(events.filter(({ reason }) => reason === "BaselineImageMissing")).toHaveLength(1);
});
