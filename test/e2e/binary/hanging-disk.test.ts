// A state directory whose disk hangs: nobody who collects waits for it, and what was done is on record once it answers again.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";
import { freezeObstacle, freezingDisk } from "./disk.ts";
import { type Json, numberedImages, removable, startNode, type TestNode } from "./node.ts";

const images = numberedImages(6);

const recorded = async (node: TestNode): Promise<readonly string[]> =>
  (await node.json(["history"])).removals.map((removal: Json) => removal.id);

describe.skipIf(freezeObstacle !== null)("a state directory on a disk that hangs", () => {
  test("does not stop gc, which is recorded afterwards", async () => {
    await using disk = await freezingDisk();
    const stateDir = join(disk.directory, "state");
    await using it = await startNode({
      node: { images },
      flags: [...removable, `--state-dir=${stateDir}`],
    });
    expect(await it.crigc("gc")).toMatchObject({ exitCode: 0 });
    await disk.freeze();
    const gc = await it.crigc("gc", "--all-unused");
    expect(gc.exitCode).toBe(0);
    expect(gc.tookMs).toBeLessThan(20_000);
    expect(gc.stderr).toContain("does not respond");
    expect(it.removedImages()).toHaveLength(6);
    await disk.thaw();
    await until("all six are on record", 10_000, async () => {
      return (await recorded(it)).length === 6;
    });
  }, 60_000);
});
