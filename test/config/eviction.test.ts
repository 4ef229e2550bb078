// Eviction thresholds are read to the byte of the kubelet's parser; numbers are those of the kubelet's acceptance vectors.

import { expect, test } from "bun:test";

import fc from "fast-check";

import { splitStatements, statementFault } from "../../src/config/eviction.ts";
import { effectiveThresholds } from "../../src/policy/pressure/thresholds.ts";
import { load } from "./loading.ts";

const share = (value: number): number => Math.fround(Math.fround(value) / 100);

// A soft one without a grace period is dropped, too, if it is 0% or 100%.
test.each<[string, Readonly<Record<string, string>>]>([
  [
    "quantities, hard and soft with a grace period of 30s and a reclaim of 0",
    {
      hard: "imagefs.available<150Mi",
      soft: "imagefs.available<300Mi",
      "soft-grace-period": "imagefs.available=30s",
      "minimum-reclaim": "imagefs.available=0",
    },
  ],
  [
    "percentages, as float32, with a reclaim of 5%",
    {
      hard: "nodefs.available<10.5%",
      soft: "nodefs.available<30%",
      "soft-grace-period": "nodefs.available=30s",
      "minimum-reclaim": "nodefs.available=5%",
    },
  ],
  [
    "inode signals, in the order of signals, hard before soft",
    {
      hard: "imagefs.inodesFree<150Mi,nodefs.inodesFree<5%",
      soft: "nodefs.inodesFree<100k",
      "soft-grace-period": "nodefs.inodesFree=0",
    },
  ],
  [
    "0% and 100%, which drop a threshold",
    { hard: "nodefs.available<0%", soft: "nodefs.available<100%" },
  ],
])("vector 52: the kubelet accepts %s", (_, flags) => {
  const { limits } = load({
    flags: Object.entries({ hard: "", ...flags }).map(([name, text]) => [`eviction-${name}`, text]),
  });
  expect(limits.pressure.thresholds).toMatchSnapshot();
});

test("every percentage outside 0 to 100 is refused", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const accepted = statementFault("threshold", "nodefs.available", `${value}%`) === null;
      expect(accepted).toBe(share(value) >= 0 && share(value) <= 1);
    }),
  );
});

test.each([
  ["memory.available", "is not a disk signal"],
  ["pid.available", "is not a disk signal"],
  ["allocatableMemory.available", "is not a disk signal"],
  ["containerfs.available", "has no threshold of its own"],
  ["containerfs.inodesFree", "has no threshold of its own"],
])("%s is accepted with a warning, and makes no threshold", (signal, why) => {
  const config = load({ flags: [["eviction-hard", `${signal}<10%`]] });
  expect(effectiveThresholds(config.limits.pressure.thresholds, "split")).toEqual([]);
  expect(config.warnings).toEqual([expect.stringContaining(`${signal} ${why}`)]);
});

test("statements are split at commas and at the first operator; the last of two for a signal wins", () => {
  expect(splitStatements(" nodefs.available < 10% ,,a<1,a<2<3,", "<")).toEqual({
    "nodefs.available": "10%",
    a: "2<3",
  });
  expect(splitStatements("", "<")).toEqual({});
  for (const text of ["nodefs.available", "nodefs.available=10%", "nodefs.available<10%,x"])
    expect(splitStatements(text, "<")).toBeNull();
});
