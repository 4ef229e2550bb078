import { describe, expect, test } from "bun:test";

import type { ImageTarget } from "../../../src/model/plan.ts";
import { estimate } from "../../../src/policy/image/images.ts";
import { aCandidate, anImage, MIB, spaceTarget } from "../../support/build/values.ts";

const five = ["a", "b", "c", "d", "e"].map((name) =>
  aCandidate(name, { image: anImage(name, { sizeBytes: 100n * MIB }) }),
);
const everything: ImageTarget = { kind: "everything", trigger: { kind: "all-unused" } };
const unlimited = { compat: "none", maximumRemovals: null } as const;

const reached = (...input: Parameters<typeof estimate>): number =>
  estimate(...input).filter(({ expected }) => expected).length;

describe("the estimated stop", () => {
  test("is where the reported sizes add up to the target", () => {
    expect(reached(five, [spaceTarget(1_000n * MIB, 250n * MIB)], unlimited)).toBe(3);
    expect(reached(five, [everything], unlimited)).toBe(5);
  });

  test("counts no inodes, so that all are expected where some are wanted", () => {
    for (const [wantedInodes, images] of [
      [1n, 5],
      [0n, 0],
    ] as const) {
      const target: ImageTarget = {
        kind: "free-inodes",
        trigger: { kind: "space" },
        device: "8:1",
        path: "/",
        inodesFree: 1n,
        wantedInodes,
        relievedInodes: 1n,
      };
      expect(reached(five, [target], unlimited)).toBe(images);
    }
  });

  test("is behind all that go for their age, which the kubelet counts towards nothing", () => {
    const triggers = [{ kind: "age" }, { kind: "space" }] as const;
    const aged = five.map((one, at) => (at < 2 ? { ...one, triggers } : one));
    for (const [wanted, ours, kubelets] of [
      [0n, 2, 3],
      [250n, 3, 5],
    ] as const) {
      const targets = [spaceTarget(1_000n * MIB, wanted * MIB)];
      expect(reached(aged, targets, unlimited)).toBe(ours);
      expect(reached(aged, targets, { ...unlimited, compat: "kubelet" })).toBe(kubelets);
    }
  });

  test("is at the limit of removals in one pass", () => {
    expect(reached(five, [everything], { ...unlimited, maximumRemovals: 2 })).toBe(2);
  });

  test("is earlier by what the pass removes before images, down to none", () => {
    const limits = { ...unlimited, maximumRemovals: 3 };
    expect(reached(five, [everything], { ...limits, removedBefore: 2 })).toBe(1);
    expect(reached(five, [everything], { ...limits, removedBefore: 4 })).toBe(0);
  });
});
