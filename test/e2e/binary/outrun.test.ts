// Pressure while another program writes: an agent on a small disk keeps it above the lower of two thresholds.

import { expect, test } from "bun:test";
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { diskObstacle, layer, MiB, type SmallDisk, smallDisk } from "./disk.ts";
import { type Json, startNode } from "./node.ts";

const CAPACITY = 1_000 * MiB;
const WRITES_A_SECOND = 20 * MiB;
const WRITES_FOR_MS = 14_000;
const THRESHOLD = 0.3 * CAPACITY;
/** That of a kubelet on the same node. */
const LOWER = 0.25 * CAPACITY;

/** Writes steadily; answers with the longest time in milliseconds for which less than `limit` was available. */
async function writeAndWatch(disk: SmallDisk, limit: number): Promise<number> {
  const file = openSync(join(disk.directory, "written"), "w");
  const chunk = Buffer.alloc(MiB);
  const startMs = performance.now();
  let longest = 0;
  let since: number | null = null;
  for (let written = 0, ms = 0; ms < WRITES_FOR_MS; ms = performance.now() - startMs) {
    for (; written < (ms / 1_000) * WRITES_A_SECOND; written += MiB) writeSync(file, chunk);
    since = CAPACITY - disk.usedBytes() < limit ? (since ?? ms) : null;
    longest = Math.max(longest, ms - (since ?? ms));
    await Bun.sleep(20);
  }
  closeSync(file);
  return longest;
}

test.skipIf(diskObstacle !== null)(
  "with 20 MB/s written, an agent keeps a disk above the lower threshold, and a gc gets the lock between two of its passes",
  async () => {
    await using disk = await smallDisk(CAPACITY);
    const images = Array.from({ length: 60 }, (_, at) => ({
      id: imageIdOf(`image${at}`),
      repoTags: [`r.example/image${at}:1`],
      layers: [layer(`layer${at}`, 8)],
    }));
    await using it = await startNode({
      node: { images },
      store: { directory: join(disk.directory, "store") },
      flags: [
        "--minimum-image-ttl-duration=0s",
        "--boot-grace=0s",
        "--image-gc-high-threshold=100",
      ],
    });
    // As slow as that, others write while a pass removes, and its own gain may end it.
    it.runtime.fail("RemoveImage", { kind: "delay", ms: 150 });
    const file = openSync(join(disk.directory, "filler"), "w");
    const filler = CAPACITY - disk.usedBytes() - THRESHOLD - 20 * MiB;
    writeSync(file, Buffer.alloc(filler));
    closeSync(file);
    await using agent = it.start("run", "--eviction-hard=imagefs.available<30%");
    await until("the agent has observed", 10_000, async () => {
      const { exitCode, stdout } = await it.crigc("status", "-o", "json");
      return exitCode === 0 && JSON.parse(stdout).filesystems.length > 0;
    });
    const watching = writeAndWatch(disk, LOWER);
    await until("passes follow each other", 10_000, () => it.removedImages().length > 3);
    const gc = await it.json(["gc", "--containers"]);
    expect(agent.exitCode()).toBeNull();
    expect(gc.steps.find(({ name }: Json) => name === "lock").tookMs).toBeLessThan(3_000);
    expect(await watching).toBeLessThan(1_000);
  },
  40_000,
);
