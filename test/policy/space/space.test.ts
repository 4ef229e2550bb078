import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { minutes } from "../../../src/model/time.ts";
import {
  checkedInodes,
  checkedSpace,
  shortageOf,
  usedPercent,
} from "../../../src/policy/space/space.ts";
import { collectsImages } from "../../../src/policy/space/targets.ts";
import { aFilesystem, defaultImageLimits, GIB } from "../../support/build/values.ts";

describe("the kubelet's arithmetic", () => {
  const rows: readonly [bigint, bigint, number, number, number, boolean, bigint][] = [
    [1000n, 600n, 90, 80, 40, false, -400n],
    [1000n, 50n, 90, 80, 95, true, 150n],
    [10n * GIB, (10n * GIB) / 20n, 90, 80, 95, true, 1_610_612_736n],
    [1000n, 159n, 85, 80, 85, true, 41n],
    [1000n, 160n, 85, 80, 84, false, 40n],
    [1001n, 160n, 85, 84, 85, true, 0n],
    [1000n, 0n, 100, 80, 100, true, 200n],
    [1000n, 10n, 100, 80, 99, false, 190n],
    [90_071_992_547_409_931n, 9_007_199_254_740_993n, 90, 80, 91, true, 9_007_199_254_740_993n],
  ];
  for (const [capacity, available, high, low, used, triggered, wanted] of rows) {
    test(`${available} of ${capacity} available at ${high}/${low}`, () => {
      const shortage = shortageOf({ capacity, available }, { high, low });
      expect(shortage).toMatchObject({
        usedPercent: used,
        triggered,
        wanted,
        target: available + wanted,
      });
    });
  }
});

test("the target is the smallest free amount that does not trigger", () => {
  const capacity = fc.bigInt({ min: 1n, max: 10n ** 18n });
  fc.assert(
    fc.property(capacity, fc.integer({ min: 1, max: 100 }), (size, high) => {
      const { relieved } = shortageOf({ capacity: size, available: 0n }, { high, low: 0 });
      expect(usedPercent({ capacity: size, available: relieved })).toBeLessThan(high);
      expect(usedPercent({ capacity: size, available: relieved - 1n })).toBeGreaterThanOrEqual(
        high,
      );
    }),
  );
});

test("no amount relieves a disk with a high threshold of 0", () => {
  expect(shortageOf({ capacity: 1000n, available: 1000n }, { high: 0, low: 0 })).toMatchObject({
    triggered: true,
    relieved: 1010n,
  });
});

describe("figures that contradict each other", () => {
  const figures = (capacityBytes: bigint, availableBytes: bigint) =>
    aFilesystem({ capacityBytes, availableBytes });

  test("a capacity of 0 is invalid in every mode and names the path", () => {
    for (const compat of ["none", "kubelet"] as const) {
      expect(checkedSpace(figures(0n, 5n), compat)).toEqual({
        kind: "invalid",
        message: expect.stringContaining("/var/lib/containerd"),
      });
    }
  });

  test("a negative available amount is invalid in every mode", () => {
    for (const compat of ["none", "kubelet"] as const)
      expect(checkedSpace(figures(1000n, -1n), compat)).toMatchObject({
        kind: "invalid",
        message: expect.stringContaining("less than 0 bytes available"),
      });
    expect(checkedSpace(figures(1000n, 0n), "none").kind).toBe("valid");
  });

  test("more available than the capacity is valid within rounding, or with compat kubelet", () => {
    const clamped = {
      kind: "valid",
      amounts: { capacity: 1_000_000n, available: 1_000_000n },
      clamped: true,
    } as const;
    expect(checkedSpace(figures(1_000_000n, 1_000_000n), "none")).toEqual({
      ...clamped,
      clamped: false,
    });
    expect(checkedSpace(figures(1_000_000n, 1_004_096n), "none")).toEqual(clamped);
    expect(checkedSpace(figures(1_000_000n, 1_004_097n), "none")).toMatchObject({
      kind: "invalid",
      message: expect.stringContaining("more available than its capacity"),
    });
    expect(checkedSpace(figures(1_000_000n, 9_000_000n), "kubelet")).toEqual(clamped);
    expect(checkedSpace(figures(1000n * GIB, 1001n * GIB), "none").kind).toBe("valid");
    expect(checkedSpace(figures(1000n * GIB, 1002n * GIB), "none").kind).toBe("invalid");
  });

  test("a filesystem without inodes, or with impossible figures, has no inode usage", () => {
    expect(checkedInodes(aFilesystem({ inodes: 0n, inodesFree: 0n }))).toBeNull();
    expect(checkedInodes(aFilesystem({ inodes: 5n, inodesFree: 6n }))).toBeNull();
    expect(checkedInodes(aFilesystem({ inodes: 5n, inodesFree: -1n }))).toBeNull();
    for (const available of [0n, 5n])
      expect(checkedInodes(aFilesystem({ inodes: 5n, inodesFree: available }))).toEqual({
        capacity: 5n,
        available,
      });
  });
});

test.each([
  ["nothing", { highPercent: 100 }, false],
  ["a percentage", { highPercent: 99 }, true],
  ["a maximum age", { highPercent: 100, maximumAge: minutes(1) }, true],
  ["inodes", { highPercent: 100, inodeHighPercent: 90 }, true],
  ["a budget", { highPercent: 100, storeBudgetBytes: 1n }, true],
  ["a number of images", { highPercent: 100, maximumImages: 1 }, true],
] as const)("the image GC loop knows whether it has work if %s is set", (_, limits, has) => {
  expect(collectsImages({ ...defaultImageLimits, ...limits })).toBe(has);
});
