// A state directory whose disk hangs: nobody who collects waits for it, and what was done is on record once it answers again.
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { freezeObstacle, freezingDisk } from "./freezing-disk.ts";
import { type Json, startNode, type TestNode } from "./node.ts";

const images = Array.from({ length: 6 }, (_, index) => ({
  id: imageIdOf(index),
  repoTags: [`r.example/i${index}:1`],
  sizeBytes: 1_000_000 - index,
}));
const flags = [
  "--minimum-image-ttl-duration=0s",
  "--space-accounting=reported",
  "--eviction-hard=nodefs.available<0%",
  "--image-gc-period=150ms",
  "--image-detection-period=150ms",
  "--image-cache-period=150ms",
  "--container-gc-period=150ms",
  "--pressure-period=150ms",
];
const socket = (node: TestNode): string => join(node.runDir, "crigc.sock");

async function recorded(node: TestNode, stateDir: string): Promise<readonly string[]> {
  const history: Json = await node.json(["history", "--limit=10000", `--state-dir=${stateDir}`]);
  return history.removals.map((removal: Json) => removal.id);
}

describe.skipIf(freezeObstacle !== null)("a state directory on a disk that hangs", () => {
  test("stops no pass and no answer of the agent, and the history is complete afterwards", async () => {
    await using disk = await freezingDisk();
    const stateDir = join(disk.directory, "state");
    await using it = await startNode({
      node: { images },
      flags: [...flags, `--state-dir=${stateDir}`],
    });
    it.configure({ maxImages: 5 });
    await using agent = it.start("run");
    await until("one image went", 10_000, () => it.removedImages().length === 1);
    await disk.freeze();
    it.configure({ maxImages: 3 });
    agent.signal("SIGHUP");
    await until("two more images went", 10_000, () => it.removedImages().length === 3);
    await agent.untilSaid("does not respond", 10_000);
    it.configure({ maxImages: 2 });
    agent.signal("SIGHUP");
    await until("one more image went", 10_000, () => it.removedImages().length === 4);
    const askedMs = performance.now();
    const health = await fetch("http://agent/healthz", { unix: socket(it) });
    expect(health.status).toBe(200);
    const status: Json = await (await fetch("http://agent/status", { unix: socket(it) })).json();
    expect(performance.now() - askedMs).toBeLessThan(2_000);
    expect(status.ledgerError).toBe("hanging");
    const lists = it.runtime.callsOf("ListImages").length;
    await until("more lists", 5_000, () => it.runtime.callsOf("ListImages").length > lists + 3);
    await disk.thaw();
    await agent.untilSaid("can be written again", 10_000);
    await until("all four are on record", 10_000, async () => {
      const removed = await recorded(it, stateDir);
      return removed.length === 4 && removed.every((id) => it.removedImages().includes(id));
    });
    expect(await agent.stop()).toBe(0);
  }, 60_000);

  test("does not stop gc, which is recorded afterwards", async () => {
    await using disk = await freezingDisk();
    const stateDir = join(disk.directory, "state");
    await using it = await startNode({
      node: { images },
      flags: [...flags.slice(0, 3), `--state-dir=${stateDir}`],
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
      const removed = await recorded(it, stateDir);
      return removed.length === 6;
    });
  }, 60_000);

  test("does not keep the agent from exiting", async () => {
    await using disk = await freezingDisk();
    const stateDir = join(disk.directory, "state");
    await using it = await startNode({
      node: { images },
      flags: [...flags, `--state-dir=${stateDir}`],
    });
    await using agent = it.start("run");
    await until("it is up", 10_000, () => existsSync(socket(it)));
    await until("it looked", 10_000, () => it.runtime.callsOf("ListImages").length > 2);
    await disk.freeze();
    await agent.untilSaid("does not respond", 10_000);
    expect(await agent.stop()).toBe(0);
    await disk.thaw();
  }, 60_000);
});
