// What a pass measures on several filesystems, and what its targets become when the disk is read again.
import { expect, test } from "bun:test";

import { Meter } from "../../src/gc/meter.ts";
import type { ImageTarget } from "../../src/model/plan.ts";
import type { Filesystem } from "../../src/model/snapshot.ts";
import {
  aFilesystem,
  aLedger,
  aSnapshot,
  budgetTarget,
  defaultImageLimits,
  factsOf,
  spaceTarget,
} from "../support/build/values.ts";

const target = spaceTarget(1_000n, 100n);
const budget = budgetTarget(100n, 1n);
const timer = { monotonicNs: () => 0n, sleep: async () => undefined };

const factsOn = (filesystems: readonly Filesystem[], accounting: "measured" | "reported") =>
  factsOf(aSnapshot({ filesystems }), aLedger(), { ...defaultImageLimits, accounting });

function meterOf(availableBytes: bigint, capacityBytes: bigint) {
  return new Meter({
    disk: { measure: async () => ({ ...aFilesystem({ capacityBytes }), availableBytes }) },
    timer,
    plan: { targets: [target, budget] },
    facts: factsOn([aFilesystem({ device: "8:9", path: "/other" })], "reported"),
  });
}

test.each([
  ["more available than its capacity counts as empty", 950n, 930n, 70n],
  ["less available than its capacity counts as reported", 920n, 930n, 80n],
])("a disk that reports %s", async (_, available, capacity, wanted) => {
  const meter = meterOf(available, capacity);
  expect(await meter.targetsNow()).toMatchObject([{ wantedBytes: wanted }, budget]);
  expect(meter.totals().wantedBytes).toBe(wanted);
});

test("what a removal frees counts on the first device that a target names, or else on all that hold images", async () => {
  const credited = async (targets: readonly ImageTarget[]): Promise<readonly bigint[]> => {
    let freed = 0n;
    const paths = ["/a", "/b", "/c"];
    const measure = async (path: string) => ({
      ...aFilesystem({ capacityBytes: 10_000n }),
      availableBytes: 1_000n + freed * BigInt(10 ** paths.indexOf(path)),
    });
    const store = (path: string) => aFilesystem({ device: path, path, imageUsedBytes: 2_500n });
    const meter = new Meter({
      disk: { measure },
      timer,
      plan: { targets },
      facts: factsOn([store("/b"), store("/c")], "measured"),
    });
    await meter.start();
    await meter.beforeRemoval();
    freed = 1n;
    await meter.read();
    const gained = meter.credit(1n);
    const { measuredFreedBytes } = meter.totals();
    return [gained, measuredFreedBytes, meter.progress().storeBytes ?? 0n];
  };
  const on = (path: string): ImageTarget => ({ ...target, device: path, path });
  expect(await credited([on("/a"), on("/b")])).toEqual([1n, 1n, 5_000n - 110n]);
  expect(await credited([])).toEqual([110n, 110n, 5_000n - 110n]);
});

test("a new target in reported sizes counts what the removals so far reported, not what they freed", async () => {
  const meter = meterOf(900n, 2_000n);
  await meter.start();
  await meter.beforeRemoval();
  meter.credit(40n);
  const wanted = spaceTarget(1_000n, 10n);
  expect(await meter.retarget([wanted, budget])).toMatchObject([{ wantedBytes: 50n }, budget]);
});

test("a new target on a disk that the plan left out waits for the next pass", async () => {
  const meter = meterOf(900n, 2_000n);
  await meter.start();
  const other = { ...spaceTarget(1_000n, 10n), device: "8:9", path: "/other" };
  expect(await meter.retarget([other])).toEqual([]);
});
