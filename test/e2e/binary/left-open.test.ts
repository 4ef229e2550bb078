// A ledger that misses changes: the minimum age of all images restarts, and an image that came back is not removed.
import { expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { hours } from "../../../src/model/time.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { observedFor } from "../../support/ledger.ts";
import { diskObstacle, MiB, smallDisk } from "./disk.ts";
import { startNode, type TestNode } from "./node.ts";

const X = { id: imageIdOf(0), repoTags: ["r.example/i0:1"], sizeBytes: 1_000_000 };
const images = [X, { ...X, id: imageIdOf(1), repoTags: ["r.example/i1:1"] }];
const flags = [
  "--eviction-hard=nodefs.available<0%",
  "--boot-grace=0s",
  // Whatever the disk of the machine is used for.
  "--image-gc-high-threshold=100",
  "--image-detection-period=10m",
];

/** A node whose images are an hour old. */
async function oldNode(...more: readonly string[]): Promise<TestNode> {
  const node = await startNode({ node: { images }, flags: [...flags, ...more] });
  expect((await node.crigc("gc")).exitCode).toBe(0);
  const [, stateDir = node.stateDir] = more[0]?.split("=") ?? [];
  await observedFor(stateDir, hours(1));
  return node;
}

async function expectTooYoung(node: TestNode): Promise<void> {
  const before = node.removedImages().length;
  node.runtime.node.addImage({ ...X });
  const shown = await node.json(["plan", "--all-unused"]);
  expect(shown.images.candidates).toEqual([]);
  const report = await node.json(["gc", "--all-unused"], 4);
  expect(report.plan.images.kept).toMatchObject([{ reason: { code: "too-young" } }]);
  expect(node.removedImages()).toHaveLength(before);
}

test.skipIf(diskObstacle !== null)(
  "gc on a full state disk says which records are lost, exits 1, and the image that comes back is young",
  async () => {
    await using disk = await smallDisk(MiB);
    await using node = await oldNode(`--state-dir=${join(disk.directory, "state")}`);
    // Its last page has room for some records.
    rmSync(join(disk.directory, "state", "history.jsonl"));
    const ballast = join(disk.directory, "ballast");
    expect(() => writeFileSync(ballast, Buffer.alloc(2 * MiB))).toThrow("ENOSPC");
    const report = await node.json(["gc", "--all-unused"], 1);
    expect(node.removedImages()).toHaveLength(2);
    expect(report.error).toContain("the records of 2 removals could not be written");
    expect(report.events).toMatchObject([{ reason: "RecordsLost" }]);
    await expectTooYoung(node);
    rmSync(ballast);
    const again = await node.json(["gc", "--all-unused"], 4);
    expect(again.plan.images.kept).toMatchObject([{ reason: { code: "too-young" } }]);
  },
);

test("after an agent was killed, the images are young", async () => {
  await using node = await oldNode();
  await using agent = node.start("run", "--image-detection-period=200ms");
  await node.looksAgain();
  agent.signal("SIGKILL");
  await agent.exited;
  for (const at of [0, 1]) node.runtime.node.removeImage(imageIdOf(at));
  await expectTooYoung(node);
});
