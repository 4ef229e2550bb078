// What a forecast reads: samples of the disks with what the pass freed, in memory and in the order in which they were recorded.

import { expect, test } from "bun:test";

import { durationFromMs, type Instant, minutes, plus } from "../../src/model/time.ts";
import { SAMPLES_KEPT } from "../../src/store/history.ts";
import { spaceTarget } from "../support/build/values.ts";
import { scratch } from "../support/scratch.ts";
import { now, read, write } from "./fixture.ts";
import { containers as freed, filesystem, images, pass, planOf } from "./history-fixture.ts";

const later = (count: number): Instant => plus(now, minutes(count));
const imagePass = (count: number) =>
  pass(`p${count}`, { startedAt: later(count), plan: planOf(), images: images([]) });

test("a sample has what its pass freed there: containers on their filesystem, images on the one that the pass relieves", async () => {
  const { store } = await write(scratch());
  const nodefs = { ...filesystem, device: "254:9", path: "/node", roles: ["nodefs"] as const };
  const target = { ...spaceTarget(1n, 1n), device: "254:9", path: "/node" } as const;
  const both = { ...imagePass(0), kind: "gc", containers: freed(50n) } as const;
  for (const targets of [[], [target]]) {
    store.passEnded({ ...both, plan: planOf({ targets }) }, [filesystem, nodefs]);
  }
  expect(store.samples().map((it) => [it.device, it.freedBytes])).toEqual([
    ["254:0", 750n],
    ["254:9", 0n],
    ["254:0", 50n],
    ["254:9", 700n],
  ]);
  await store.close();
});

test("a pass over containers leaves a sample if it freed something, with the thresholds that are in force", async () => {
  const { store } = await write(scratch());
  store.passEnded(imagePass(0), [filesystem]);
  for (const [count, bytes] of [null, 0n, 30n].entries())
    store.passEnded(
      pass(`c${count}`, {
        kind: "container-gc",
        startedAt: later(count + 1),
        containers: freed(bytes),
      }),
      [filesystem],
    );
  expect(store.samples()).toMatchObject([
    { at: later(0), freedBytes: 700n, highPercent: 85, lowPercent: 80 },
    { at: later(3), freedBytes: 30n, highPercent: 85, lowPercent: 80 },
  ]);
  await store.close();
});

test("samples keep the order of recording over a restart, even under a wrong clock", async () => {
  const directory = scratch();
  const first = await write(directory);
  const moments = [later(0), later(5), later(-600), later(-595)];
  for (const [count, startedAt] of moments.entries())
    first.store.passEnded({ ...imagePass(count), startedAt }, [filesystem]);
  await first.store.close();
  const second = await write(directory);
  second.store.passEnded(imagePass(-590), [filesystem]);
  expect(second.store.samples().map(({ at }) => at)).toEqual([...moments, later(-590)]);
  await second.store.close();
  const { reader } = read(directory);
  expect(reader.newestSamples()).toEqual(second.store.samples());
  reader[Symbol.dispose]();
});

test("samples of another process are added to known ones", async () => {
  const directory = scratch();
  const agent = await write(directory);
  agent.store.passEnded(imagePass(0), [filesystem]);
  await agent.store.flush();
  const gc = await write(directory);
  gc.store.passEnded(imagePass(1), [filesystem]);
  gc.store.saveLedger({ ...gc.store.ledger(), bootId: "another" });
  await gc.store.close();
  agent.store.passEnded(imagePass(2), [filesystem]);
  await agent.store.refresh();
  expect(agent.store.samples().map(({ at }) => at)).toEqual([0, 1, 2].map(later));
  await agent.store.close();
});

test("a bounded number of samples is kept in memory", async () => {
  const { store } = await write(scratch());
  for (let count = 0; count < SAMPLES_KEPT + 5; count += 1)
    store.passEnded(imagePass(count), [filesystem]);
  expect(store.samples()).toHaveLength(SAMPLES_KEPT);
  expect(store.samples().at(-1)?.at).toBe(later(SAMPLES_KEPT + 4));
  await store.close();
});

test("passes under pressure leave a sample every ten seconds at most, and what they freed is in the next one", async () => {
  const { store } = await write(scratch());
  for (const ms of [0, 500, 9_900, 10_000]) {
    const startedAt = plus(now, durationFromMs(ms));
    store.passEnded({ ...imagePass(ms), kind: "pressure", startedAt }, [filesystem]);
  }
  expect(store.samples().map(({ at, freedBytes }) => [at - now, freedBytes])).toEqual([
    [0n, 700n],
    [10_000_000_000n, 2_100n],
  ]);
  await store.close();
});
