// Eviction thresholds are read to the byte of the kubelet's parser; numbers are those of the kubelet's acceptance vectors.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import {
  splitStatements,
  statementFault,
  type StatementKind,
  type Statements,
  thresholdsOf,
} from "../../src/config/value/eviction.ts";
import { parsePercentage } from "../../src/config/value/percentage.ts";
import type { Amount, Threshold } from "../../src/model/limits.ts";
import { seconds } from "../../src/model/time.ts";
import { faultsOf, FILE, ours } from "./loading.ts";

const none: Statements = {};
const share = (value: number): number => Math.fround(Math.fround(value) / 100);
const percent = (value: number): Amount => ({ kind: "fraction", value: share(value) });
const quantity = (value: bigint): Amount => ({ kind: "quantity", value });
const hard = (threshold: Partial<Threshold>): Threshold => ({
  signal: "imagefs.available",
  amount: quantity(1n),
  grace: seconds(0),
  minimumReclaim: null,
  ...threshold,
});

describe("vector 52: what is accepted", () => {
  test("hard and soft with a grace period of 30s and a reclaim of 0", () => {
    const read = thresholdsOf({
      hard: { "imagefs.available": "150Mi" },
      soft: { "imagefs.available": "300Mi" },
      grace: { "imagefs.available": "30s" },
      reclaim: { "imagefs.available": "0" },
    });
    expect(read.thresholds).toEqual([
      hard({ amount: quantity(150n * 2n ** 20n), minimumReclaim: quantity(0n) }),
      hard({
        amount: quantity(300n * 2n ** 20n),
        grace: seconds(30),
        minimumReclaim: quantity(0n),
      }),
    ]);
    expect(read.withoutGrace).toEqual([]);
  });

  test("percentages with a reclaim of 5%", () => {
    const read = thresholdsOf({
      hard: { "nodefs.available": "10%" },
      soft: { "nodefs.available": "30%" },
      grace: { "nodefs.available": "30s" },
      reclaim: { "nodefs.available": "5%" },
    });
    expect(read.thresholds).toEqual([
      hard({ signal: "nodefs.available", amount: percent(10), minimumReclaim: percent(5) }),
      hard({
        signal: "nodefs.available",
        amount: percent(30),
        grace: seconds(30),
        minimumReclaim: percent(5),
      }),
    ]);
  });

  test("10.5% is a float32", () => {
    const [threshold] = thresholdsOf({
      hard: { "imagefs.available": "10.5%" },
      soft: none,
      grace: none,
      reclaim: none,
    }).thresholds;
    expect(threshold?.amount).toEqual(percent(10.5));
    expect(share(10.5)).not.toBe(0.105);
  });

  test("inode signals with quantities", () => {
    const read = thresholdsOf({
      hard: { "imagefs.inodesFree": "150Mi" },
      soft: { "nodefs.inodesFree": "100k" },
      grace: { "nodefs.inodesFree": "0" },
      reclaim: none,
    });
    expect(read.thresholds).toEqual([
      hard({ signal: "imagefs.inodesFree", amount: quantity(150n * 2n ** 20n) }),
      hard({ signal: "nodefs.inodesFree", amount: quantity(100_000n) }),
    ]);
  });

  test.each(["0%", "100%"])(
    "%s drops the threshold, a soft one without a grace period too",
    (text) => {
      const statements = { "nodefs.available": text };
      expect(statementFault("threshold", "nodefs.available", text)).toBeNull();
      expect(
        thresholdsOf({ hard: statements, soft: statements, grace: none, reclaim: none }),
      ).toEqual({ thresholds: [], withoutGrace: [], notOurs: [] });
    },
  );
});

describe("vector 52: what is refused", () => {
  test.each<[StatementKind, string, string]>([
    ["threshold", "disk.available", "10%"],
    ["grace", "disk.available", "30s"],
    ["reclaim", "disk.available", "10%"],
    ["threshold", "imagefs.available", "-150Mi"],
    ["threshold", "imagefs.available", "-10%"],
    ["threshold", "imagefs.available", "150%"],
    ["threshold", "imagefs.available", "10..5%"],
    ["threshold", "imagefs.available", ""],
    ["threshold", "imagefs.available", "0"],
    ["threshold", "imagefs.available", "0Mi"],
    ["threshold", "imagefs.available", "%"],
    ["threshold", "imagefs.available", "NaN%"],
    ["threshold", "imagefs.available", "15 %"],
    ["threshold", "imagefs.available", "15GB"],
    ["grace", "imagefs.available", "-30s"],
    ["grace", "imagefs.available", "30mins"],
    ["grace", "imagefs.available", ""],
    ["reclaim", "imagefs.available", "-300Mi"],
    ["reclaim", "imagefs.available", "-15%"],
    ["reclaim", "imagefs.available", "0%"],
    ["reclaim", "imagefs.available", ""],
    ["reclaim", "imagefs.available", "abc"],
    ["reclaim", "imagefs.available", "inf%"],
  ])("a %s of %s<%s", (kind, signal, text) => {
    const fault = statementFault(kind, signal, text);
    expect(fault).toContain(JSON.stringify(signal === "imagefs.available" ? text : signal));
    expect(fault).toContain(": use ");
  });

  test("a soft threshold without a grace period is named, one on memory too", () => {
    const read = thresholdsOf({
      hard: none,
      soft: { "imagefs.available": "10%", "memory.available": "1Gi" },
      grace: none,
      reclaim: none,
    });
    expect(read.withoutGrace).toEqual(["imagefs.available", "memory.available"]);
  });
});

describe("signals of others", () => {
  test.each(["memory.available", "pid.available", "allocatableMemory.available"])(
    "%s is accepted, named, and makes no threshold",
    (signal) => {
      expect(statementFault("threshold", signal, "10%")).toBeNull();
      const read = thresholdsOf({
        hard: { [signal]: "10%" },
        soft: none,
        grace: none,
        reclaim: none,
      });
      expect(read).toEqual({ thresholds: [], withoutGrace: [], notOurs: [signal] });
    },
  );

  test("the value of a foreign signal is still validated", () => {
    expect(statementFault("threshold", "memory.available", "lots")).toContain('"lots"');
  });

  test("names of object properties are unknown signals", () => {
    expect(statementFault("threshold", "toString", "10%")).toContain("unknown signal");
  });
});

describe("percentages", () => {
  test.each([
    ["5.%", 5],
    [".5%", 0.5],
    ["+5%", 5],
    ["1e1%", 10],
    ["5%%", 5],
    ["0x1p3%", 8],
    ["1_0%", 10],
  ])("%s is parsed as Go parses it", (text, value) => {
    expect(parsePercentage(text)).toBe(share(value));
  });

  test.each<string>(["%", "_1%", "1_%", "1__0%", "0x10%", "1,5%", "--1%", "1 %", "nan%"])(
    "%s is not a number",
    (text) => {
      expect(parsePercentage(text)).toBeNull();
    },
  );

  test("every accepted percentage is a share from 0 to 1", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true }), (value) => {
        const accepted = statementFault("threshold", "nodefs.available", `${value}%`) === null;
        expect(accepted).toBe(share(value) >= 0 && share(value) <= 1);
      }),
    );
  });
});

describe("the flag's syntax", () => {
  test("items are split at commas and at the first operator; spaces and empty items are skipped", () => {
    expect(splitStatements(" nodefs.available < 10% ,,imagefs.available<5Gi,", "<")).toEqual({
      "nodefs.available": "10%",
      "imagefs.available": "5Gi",
    });
  });

  test("the last of two items for a signal wins", () => {
    expect(splitStatements("a=1,a=2", "=")).toEqual({ a: "2" });
  });

  test("an empty text is an empty map", () => {
    expect(splitStatements("", "<")).toEqual({});
  });

  test.each(["nodefs.available", "nodefs.available=10%", "nodefs.available<10%,x"])(
    "%s without its operator is refused",
    (text) => {
      expect(splitStatements(text, "<")).toBeNull();
    },
  );
});

describe("a threshold in bytes without a unit", () => {
  test.each(["imagefs.available<15", "nodefs.available<1000", "imagefs.available<2.5"])(
    "is refused on a flag, with a suggestion: %s",
    (text) => {
      const amount = text.split("<")[1] ?? "";
      expect(faultsOf({ flags: [["eviction-hard", text]] })).toEqual([
        expect.stringContaining(`missing unit in "${amount}"`),
      ]);
      expect(faultsOf({ flags: [["eviction-hard", text]] })[0]).toContain(
        `${amount}% or ${amount}Gi?`,
      );
    },
  );

  test("is refused in a file and as a minimum reclaim too", () => {
    const body = 'evictionMinimumReclaim: {imagefs.available: "15"}\n';
    expect(faultsOf({ files: { [FILE]: ours(body) } })[0]).toContain("15% or 15Gi?");
  });

  test.each([
    "imagefs.available<1073741824",
    "imagefs.inodesFree<1000",
    "imagefs.available<15Gi",
    "imagefs.available<0%",
  ])("is accepted in %s", (text) => {
    expect(faultsOf({ flags: [["eviction-hard", text]] })).toEqual([]);
  });
});
