// A state directory whose disk hangs: nobody who collects waits for it, and what was done is on record once it answers again.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";
import { freezeObstacle, freezingDisk } from "./disk.ts";
import {
  type Json,
  numberedImages,
  quickPasses,
  removable,
  startNode,
  type TestNode,
} from "./node.ts";

const images = numberedImages(6);

const recorded = async (node: TestNode): Promise<readonly string[]> =>
  (await node.json(["history"])).removals.map((removal: Json) => removal.id);

describe.skipIf(freezeObstacle !== null)("a state directory on a disk that hangs", () => {
  test("stops no pass, no answer and no exit of the agent, and the history is complete afterwards", async () => {
    await using disk = await freezingDisk();
    const stateDir = join(disk.directory, "state");
    await using it = await startNode({
      node: { images },
      flags: [...quickPasses, `--state-dir=${stateDir}`],
    });
    it.configure({ maxImages: 5 });
    await using agent = it.start("run");
    await it.untilRemoved(1);
    await disk.freeze();
    it.configure({ maxImages: 3 });
    agent.signal("SIGHUP");
    await it.untilRemoved(3);
    await agent.untilSaid("does not respond", 10_000);
    it.configure({ maxImages: 2 });
    agent.signal("SIGHUP");
    await it.untilRemoved(4);
    const askedMs = performance.now();
    const health = await it.ask("/healthz");
    expect(health.status).toBe(200);
    const status: Json = await (await it.ask("/status")).json();
    expect(performance.now() - askedMs).toBeLessThan(2_000);
    expect(status.ledgerError).toBe("hanging");
    await it.looksAgain();
    await disk.thaw();
    await agent.untilSaid("can be written again", 10_000);
    await until("all four are on record", 10_000, async () => {
      const removed = await recorded(it);
      return removed.length === 4 && removed.every((id) => it.removedImages().includes(id));
    });
    await disk.freeze();
    it.configure({ maxImages: 1 });
    agent.signal("SIGHUP");
    await it.untilRemoved(5);
    expect(await agent.stop()).toBe(0);
    await disk.thaw();
  }, 60_000);

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
