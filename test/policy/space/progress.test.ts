import { describe, expect, test } from "bun:test";

import type { ImageTarget } from "../../../src/model/plan.ts";
import {
  lackedBytes,
  metAfterAll,
  type Progress,
  targetsMet,
} from "../../../src/policy/space/progress.ts";
import { spaceTarget } from "../../support/build/values.ts";

const progress = (available: bigint, gained: bigint): Progress => ({
  accounting: "measured",
  availableBytes: new Map([["8:1", available]]),
  inodesFree: new Map(),
  gainedBytes: new Map([["8:1", gained]]),
  gainedInodes: new Map(),
  storeBytes: null,
  imageCount: 0,
  reportedBytes: 0n,
  estimatedBytes: 0n,
  removed: 0,
});

test("a pass that freed nothing has not freed enough, even with an initial target of zero", () => {
  const target = spaceTarget(100n, 0n);
  expect(targetsMet([target], progress(90n, 0n))).toBeNull();
  expect(targetsMet([target], progress(90n, 1n))).toBe("own-gain-reached");
  expect(targetsMet([target], progress(100n, 0n))).toBe("target-reached");
});

test("with sizes as reported a removal has to be made where nothing is wanted, unless there was none to make", () => {
  const reported = { ...progress(0n, 0n), accounting: "reported" } as const;
  expect(targetsMet([spaceTarget(100n, 0n)], reported)).toBeNull();
  expect(metAfterAll([spaceTarget(100n, 0n)], reported)).toBe("target-reached");
});

describe("a target for the number of images", () => {
  const target: ImageTarget = {
    kind: "image-count",
    trigger: { kind: "count" },
    maximumImages: 10,
    wantedImages: 1,
  };

  test.each([
    [9, "target-reached"],
    [10, "target-reached"],
    [11, null],
  ] as const)("with %i of 10 images ends in %p", (imageCount, end) => {
    expect(targetsMet([target], { ...progress(0n, 0n), imageCount })).toBe(end);
  });
});

describe("a budget for the store", () => {
  const target: ImageTarget = {
    kind: "store-bytes",
    trigger: { kind: "budget" },
    maximumBytes: 100n,
    wantedBytes: 20n,
  };
  const at = (change: Partial<Progress>) =>
    targetsMet([target], { ...progress(0n, 0n), storeBytes: 101n, ...change });

  test("is met when the store is within it, and not above", () => {
    expect(at({ storeBytes: 100n })).toBe("target-reached");
    expect(at({ storeBytes: 99n })).toBe("target-reached");
    expect(at({ storeBytes: 101n })).toBeNull();
    expect(at({ storeBytes: 101n, reportedBytes: 20n })).toBeNull();
  });

  test("counts shared layers once if the runtime does not report the store's use, and adds up sizes with reported accounting", () => {
    expect(at({ storeBytes: null, reportedBytes: 50n, estimatedBytes: 19n })).toBeNull();
    expect(at({ storeBytes: null, estimatedBytes: 20n })).toBe("target-reached");
    expect(at({ accounting: "reported", storeBytes: 1n, reportedBytes: 19n })).toBeNull();
    expect(at({ accounting: "reported", reportedBytes: 21n })).toBe("target-reached");
  });

  test("and a target for space are met when both are", () => {
    const space = spaceTarget(100n, 10n);
    const both = (change: Partial<Progress>) =>
      targetsMet([space, target], { ...progress(90n, 10n), storeBytes: 101n, ...change });
    expect(both({})).toBeNull();
    expect(both({ storeBytes: 100n })).toBe("own-gain-reached");
  });
});

test("a pass ends when its own gains reach the target, not before", () => {
  expect(targetsMet([spaceTarget(100n, 10n)], progress(90n, 9n))).toBeNull();
  expect(targetsMet([spaceTarget(100n, 10n)], progress(90n, 10n))).toBe("own-gain-reached");
});

describe("a target for inodes", () => {
  const target: ImageTarget = {
    kind: "free-inodes",
    trigger: { kind: "inodes" },
    device: "8:1",
    path: "/",
    inodesFree: 500n,
    wantedInodes: 100n,
    relievedInodes: 450n,
  };
  const at = (free: bigint, gained: bigint) =>
    targetsMet([target], {
      ...progress(0n, 0n),
      inodesFree: new Map([["8:1", free]]),
      gainedInodes: new Map([["8:1", gained]]),
    });

  test("is met by free inodes, or by what the pass itself freed", () => {
    expect(at(499n, 99n)).toBeNull();
    expect(at(500n, 0n)).toBe("target-reached");
    expect(at(499n, 100n)).toBe("own-gain-reached");
  });

  test("is not met by space, nor by another disk", () => {
    expect(targetsMet([target], progress(1_000n, 1_000n))).toBeNull();
    expect(targetsMet([{ ...target, device: "8:2" }], progress(0n, 0n))).toBeNull();
  });
});

describe("what a target lacks", () => {
  const budget: ImageTarget = {
    kind: "store-bytes",
    trigger: { kind: "budget" },
    maximumBytes: 100n,
    wantedBytes: 20n,
  };
  const count: ImageTarget = {
    kind: "image-count",
    trigger: { kind: "count" },
    maximumImages: 1,
    wantedImages: 1,
  };
  const store = (storeBytes: bigint | null) => ({ ...progress(0n, 0n), storeBytes });

  test.each<[string, ImageTarget, Progress, bigint | null]>([
    ["is what the disk lacks", spaceTarget(100n, 40n), progress(90n, 0n), 10n],
    ["is what the own gain lacks, if that is less", spaceTarget(100n, 40n), progress(10n, 35n), 5n],
    [
      "is all of it on a disk that was not measured",
      spaceTarget(100n, 200n),
      { ...progress(0n, 0n), availableBytes: new Map(), gainedBytes: new Map() },
      100n,
    ],
    ["is what the store has above its budget", budget, store(130n), 30n],
    ["is unknown for a store that is not measured", budget, store(null), null],
    ["is no number of bytes for a count", count, progress(0n, 0n), null],
  ])("%s", (_, target, now, lacked) => {
    expect(lackedBytes(target, now)).toBe(lacked);
  });
});
