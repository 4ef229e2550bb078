// The agent under SIGKILL at any instant, and over many passes: nothing that was removed is forgotten, and memory does not grow.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";

import { until } from "../../support/containerd/until.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { Random, SEED } from "../../support/random.ts";
import { type Json, removable, startNode } from "./node.ts";

const flags = [...removable, "--eviction-hard=nodefs.available<0%", "--boot-grace=0s"];
const imagesOf = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({
    id: imageIdOf(`${prefix} ${index}`),
    repoTags: [`r.example/${prefix}:${index}`],
    sizeBytes: 100_000 + index,
  }));

const KILLS = 10;

test(`the history of an agent killed ${KILLS} times during passes lacks at most the last removal of each run`, async () => {
  console.log(`seed ${SEED} (CRIGC_SIM_SEED)`);
  const random = new Random(SEED);
  await using it = await startNode({
    flags: [...flags, "--image-gc-period=100ms", "--image-store-budget=1900k"],
  });
  it.runtime.fail("RemoveImage", { kind: "delay", ms: 3 });
  const unknown: string[] = [];
  for (let life = 0; life < KILLS; life += 1) {
    for (const image of imagesOf(`life${life}`, 60)) it.runtime.node.addImage(image);
    const before = it.removedImages().length;
    const agent = it.start("run");
    await until("the pass removes", 10_000, () => it.removedImages().length > before);
    await Bun.sleep(random.next() * 250);
    agent.signal("SIGKILL");
    await agent.exited;
    // Done is what the runtime has answered: the last call may have been cut off.
    const seen = it.removedImages().slice(before);
    expect(seen.length).toBeGreaterThan(0);
    // The process that writes them ends a little later, with what it was sent.
    let missing: readonly string[] = seen;
    const deadlineMs = performance.now() + 5_000;
    while (missing.length > 1 && performance.now() < deadlineMs) {
      const { removals } = await it.json(["history", "-n", "100000"]);
      const known = new Set(removals.map((one: Json) => one.id));
      missing = seen.filter((id) => !known.has(id));
    }
    unknown.push(...missing);
    expect(missing).toEqual(missing.length === 0 ? [] : [seen.at(-1) ?? ""]);
    for (const { id } of it.runtime.node.images.slice(10)) it.runtime.node.removeImage(id);
  }
  console.log(
    `of ${it.removedImages().length} removals ${unknown.length} were the last ones of a life, and unknown`,
  );
  // And the agent begins again as if nothing had been.
  for (const image of imagesOf("last", 60)) it.runtime.node.addImage(image);
  await using agent = it.start("run");
  await until("the budget is kept", 20_000, () => it.runtime.node.images.length < 20);
  await agent.stop();
  const { passes } = await it.json(["history", "-n", "100000"]);
  expect(passes.filter((pass: Json) => pass.endedAt === null).length).toBeLessThanOrEqual(KILLS);
  expect(passes.at(-1).endedAt).not.toBeNull();
});

const residentMiB = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

const LOOKS = 150;

test("memory stays flat over hundreds of passes", async () => {
  const node = {
    images: imagesOf("app", 100),
    sandboxes: Array.from({ length: 100 }, (_, index) => ({ id: `pod${index}` })),
    containers: Array.from({ length: 100 }, (_, index) => ({
      id: `container${index}`,
      sandboxId: `pod${index}`,
      image: `r.example/app:${index}`,
    })),
  };
  const periods = ["image-gc", "image-detection", "image-cache", "container-gc", "pressure"];
  const fast = periods.map((name) => `--${name}-period=50ms`);
  await using it = await startNode({ node, flags: [...flags, ...fast, "-v=0"] });
  await using agent = it.start("run");
  const passes = (): number => it.runtime.callsOf("ImageFsInfo").length;
  // Much work has code compiled, which takes memory once.
  await until("it is warm", 60_000, () => passes() > 150);
  const early: number[] = [];
  const late: number[] = [];
  const startedAt = performance.now();
  const first = passes();
  // By looks, not by time: a fast machine makes more of them.
  const looks = (): number => passes() - first;
  while (looks() < LOOKS && performance.now() - startedAt < 25_000) {
    (looks() < LOOKS / 3 ? early : late).push(residentMiB(agent.pid));
    await Bun.sleep(50);
  }
  const growth = Math.max(...late.slice(-30)) - Math.max(...early);
  console.log(
    `${looks()} looks: resident ${Math.max(...early).toFixed(1)} MiB at first, ${Math.max(...late.slice(-30)).toFixed(1)} MiB at last`,
  );
  expect(looks()).toBeGreaterThan(100);
  expect(growth).toBeLessThan(12);
  expect(agent.exitCode()).toBeNull();
  expect(existsSync(it.stateDir)).toBe(true);
});
