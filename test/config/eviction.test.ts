// Eviction thresholds are read to the byte of the kubelet's parser; numbers are those of the kubelet's acceptance vectors.

import { expect, test } from "bun:test";

import fc from "fast-check";

import { splitStatements, statementFault } from "../../src/config/eviction.ts";
import type { Amount, Threshold } from "../../src/model/limits.ts";
import { seconds } from "../../src/model/time.ts";
import { load } from "./loading.ts";

const share = (value: number): number => Math.fround(Math.fround(value) / 100);
const percent = (value: number): Amount => ({ kind: "fraction", value: share(value) });
const quantity = (value: bigint): Amount => ({ kind: "quantity", value });

test.each<[string, Readonly<Record<string, string>>, readonly Partial<Threshold>[]]>([
  [
    "quantities, hard and soft with a grace period of 30s and a reclaim of 0",
    {
      hard: "imagefs.available<150Mi",
      soft: "imagefs.available<300Mi",
      "soft-grace-period": "imagefs.available=30s",
      "minimum-reclaim": "imagefs.available=0",
    },
    [
      { amount: quantity(150n * 2n ** 20n), grace: seconds(0), minimumReclaim: quantity(0n) },
      { amount: quantity(300n * 2n ** 20n), grace: seconds(30), minimumReclaim: quantity(0n) },
    ],
  ],
  [
    "percentages, as float32, with a reclaim of 5%",
    {
      hard: "nodefs.available<10.5%",
      soft: "nodefs.available<30%",
      "soft-grace-period": "nodefs.available=30s",
      "minimum-reclaim": "nodefs.available=5%",
    },
    [
      { amount: percent(10.5), grace: seconds(0), minimumReclaim: percent(5) },
      { amount: percent(30), grace: seconds(30), minimumReclaim: percent(5) },
    ],
  ],
  [
    "inode signals, in the order of signals, hard before soft",
    {
      hard: "imagefs.inodesFree<150Mi,nodefs.inodesFree<5%",
      soft: "nodefs.inodesFree<100k",
      "soft-grace-period": "nodefs.inodesFree=0",
    },
    [
      { signal: "nodefs.inodesFree", amount: percent(5) },
      { signal: "imagefs.inodesFree", amount: quantity(150n * 2n ** 20n) },
      { signal: "nodefs.inodesFree", amount: quantity(100_000n) },
    ],
  ],
  [
    "0% and 100%, which drop a threshold, a soft one without a grace period too",
    { hard: "nodefs.available<0%", soft: "nodefs.available<100%" },
    [],
  ],
])("vector 52: the kubelet accepts %s", (_, flags, expected) => {
  expect(
    load({
      flags: Object.entries({ hard: "", ...flags }).map(([name, text]) => [
        `eviction-${name}`,
        text,
      ]),
    }).limits.pressure.thresholds,
  ).toMatchObject(expected);
});

test("every percentage outside 0 to 100 is refused", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const accepted = statementFault("threshold", "nodefs.available", `${value}%`) === null;
      expect(accepted).toBe(share(value) >= 0 && share(value) <= 1);
    }),
  );
});

test.each(["memory.available", "pid.available", "allocatableMemory.available"])(
  "%s is accepted with a warning, and makes no threshold",
  (signal) => {
    const config = load({ flags: [["eviction-hard", `${signal}<10%`]] });
    expect(config.limits.pressure.thresholds).toEqual([]);
    expect(config.warnings).toEqual([expect.stringContaining(`${signal} is not a disk signal`)]);
  },
);

test("statements are split at commas and at the first operator; the last of two for a signal wins", () => {
  expect(splitStatements(" nodefs.available < 10% ,,a<1,a<2<3,", "<")).toEqual({
    "nodefs.available": "10%",
    a: "2<3",
  });
  expect(splitStatements("", "<")).toEqual({});
  for (const text of ["nodefs.available", "nodefs.available=10%", "nodefs.available<10%,x"])
    expect(splitStatements(text, "<")).toBeNull();
});
