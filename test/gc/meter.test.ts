// What a pass measures on several filesystems, and what its targets become when the disk is read again.
import { expect, test } from "bun:test";

import { Meter } from "../../src/gc/image/meter.ts";
import type { ImageTarget } from "../../src/model/plan.ts";
import { aFilesystem, spaceTarget } from "../support/build/values.ts";

const target = spaceTarget(1_000n, 100n);
const count: ImageTarget = {
  kind: "image-count",
  trigger: { kind: "count" },
  maximumImages: 1,
  wantedImages: 1,
};

/** `readings`: what is free on the target's filesystem and on the store's, before `next` and after it. */
function meterOf(readings: readonly (readonly [bigint, bigint])[], capacityBytes: bigint) {
  let at = 0;
  const paths = [target.kind === "available-bytes" ? target.path : "", "/other"];
  const measure = async (path: string) => ({
    ...aFilesystem({ capacityBytes }),
    availableBytes: readings[at]?.[paths.indexOf(path)] ?? 0n,
  });
  const meter = new Meter({
    disk: { measure },
    timer: { monotonicNs: () => 0n },
    targets: [target, count],
    stores: [{ device: "8:9", path: "/other" }],
    storeBytes: null,
    imageCount: 2,
    accounting: "reported",
  });
  return { meter, next: () => void (at += 1) };
}

test.each([
  [100n, 100n],
  [-40n, 10n],
])("of gains of %d B and 10 B on two filesystems the larger counts", async (change, larger) => {
  const readings = [
    [400n, 400n],
    [400n + change, 410n],
  ] as const;
  const { meter, next } = meterOf(readings, 10_000n);
  await meter.beforeRemoval();
  next();
  expect(await meter.gainedNow()).toBe(larger);
});

test.each([
  ["more available than its capacity counts as empty", 950n, 930n, 70n],
  ["less available than its capacity counts as reported", 920n, 930n, 80n],
])("a disk that reports %s", async (_, available, capacity, wanted) => {
  const { meter } = meterOf([[available, 0n]], capacity);
  expect(await meter.targetsNow()).toMatchObject([{ wantedBytes: wanted }, count]);
  expect(meter.wantedBytes()).toBe(wanted);
});

test("what a removal frees counts on the first device that a target names, or else on all that hold images", async () => {
  const credited = async (targets: readonly ImageTarget[]): Promise<readonly bigint[]> => {
    let freed = 0n;
    const paths = ["/a", "/b", "/c"];
    const measure = async (path: string) => ({
      ...aFilesystem({ capacityBytes: 10_000n }),
      availableBytes: 1_000n + freed * BigInt(10 ** paths.indexOf(path)),
    });
    const place = (path: string) => ({ device: path, path });
    const meter = new Meter({
      disk: { measure },
      timer: { monotonicNs: () => 0n },
      targets,
      stores: [place("/b"), place("/c")],
      storeBytes: 5_000n,
      imageCount: 2,
      accounting: "measured",
    });
    await meter.start();
    await meter.beforeRemoval();
    freed = 1n;
    await meter.gainedNow();
    const gained = meter.credit(1n);
    const { measuredFreedBytes } = meter.totals();
    return [gained, measuredFreedBytes, meter.progress().storeBytes ?? 0n];
  };
  const on = (path: string): ImageTarget => ({ ...target, device: path, path }) as ImageTarget;
  expect(await credited([on("/a"), on("/b")])).toEqual([1n, 1n, 5_000n - 110n]);
  expect(await credited([])).toEqual([110n, 110n, 5_000n - 110n]);
});
