import { describe, expect, test } from "bun:test";

import type { ImageEnd, ImageOutcome } from "../../../src/model/outcome.ts";
import type { ImageTarget } from "../../../src/model/plan.ts";
import { NoGainDevices } from "../../../src/policy/space/no-gain.ts";
import { aFilesystem, anImagePlan, GIB, spaceTarget } from "../../support/build/values.ts";

const ended = (end: ImageEnd): ImageOutcome => ({
  end,
  items: [],
  ghosts: [],
  error: null,
  wantedBytes: GIB,
  reportedFreedBytes: 0n,
  measuredFreedBytes: 0n,
  availableBefore: 0n,
  availableAfter: 0n,
  capacityBytes: 100n * GIB,
});

const full = [aFilesystem({ availableBytes: 5n * GIB })];
const plan = anImagePlan([], { targets: [spaceTarget(20n * GIB, 15n * GIB)] });

const inodes: ImageTarget = {
  kind: "free-inodes",
  trigger: { kind: "inodes" },
  device: "8:1",
  path: "/var/lib/containerd",
  inodesFree: 100n,
  wantedInodes: 50n,
  relievedInodes: 90n,
};
const budget: ImageTarget = {
  kind: "store-bytes",
  trigger: { kind: "budget" },
  maximumBytes: 1n,
  wantedBytes: 1n,
};

function devicesAfter(end: ImageEnd): NoGainDevices {
  const devices = new NoGainDevices();
  devices.note(plan, ended(end), full);
  return devices;
}

describe("a filesystem on which removals freed nothing", () => {
  test("is left alone for as long as it is unchanged", () => {
    const devices = devicesAfter("nothing-freed");
    expect([...devices.among(full)]).toEqual(["8:1"]);
    expect([...devices.among([aFilesystem({ availableBytes: 6n * GIB })])]).toEqual(["8:1"]);
  });

  test.each([
    ["fuller", { availableBytes: 2n * GIB }],
    ["emptier", { availableBytes: 9n * GIB }],
    ["larger", { availableBytes: 5n * GIB, capacityBytes: 200n * GIB }],
    ["poorer in inodes", { availableBytes: 5n * GIB, inodesFree: 100_000n }],
  ])("is tried again when it is %s", (_, change) => {
    const devices = devicesAfter("nothing-freed");
    expect([...devices.among([aFilesystem(change)])]).toEqual([]);
    expect([...devices.among(full)]).toEqual([]);
  });

  test("is one with a target of space or inodes that the pass measured", () => {
    const after = (target: ImageTarget): readonly string[] => {
      const devices = new NoGainDevices();
      devices.note(anImagePlan([], { targets: [target] }), ended("nothing-freed"), full);
      return [...devices.among(full)];
    };
    expect(after(inodes)).toEqual(["8:1"]);
    expect(after(budget)).toEqual([]);
    expect(after({ ...inodes, device: "8:2" })).toEqual([]);
  });

  test("is not recorded for any other end", () => {
    const ends: readonly ImageEnd[] = ["candidates-exhausted", "target-reached", "futile"];
    for (const end of ends) expect([...devicesAfter(end).among(full)]).toEqual([]);
  });
});
