// When removals that give no space back end a pass, and when the next image is tried.
import { describe, expect, test } from "bun:test";

import type { Ledger } from "../../../src/model/ledger.ts";
import { hours, minutes, watched } from "../../../src/model/time.ts";
import {
  afterRemoval,
  afterRise,
  type FreedHere,
  givesNothing,
  noStreak,
  rememberNothingFreed,
  stillNothingFreed,
  type Streak,
} from "../../../src/policy/space/freed.ts";
import { aFilesystem, aLedger, GIB, MIB } from "../../support/build/values.ts";

interface One {
  readonly estimated?: bigint;
  /** Sharers are known; a number is what it frees at least, less than the estimate. */
  readonly known?: boolean | bigint;
  readonly gained?: bigint;
}

const streakOf = (removals: readonly One[]): Streak =>
  removals.reduce(
    (streak: Streak, { estimated = 100n * MIB, known = false, gained = 0n }) =>
      afterRemoval(
        streak,
        {
          estimatedBytes: estimated,
          leastBytes: known === false ? null : known === true ? estimated : known,
        },
        gained,
      ),
    noStreak,
  );
const of = (count: number, one: One = {}): readonly One[] =>
  Array.from({ length: count }, () => one);
const known = { known: true };

test("a streak adds up what its removals were to free and what they freed, never less than nothing", () => {
  expect(streakOf([{ gained: 5n * MIB }, { gained: -MIB }, { gained: MIB }])).toMatchObject({
    estimatedBytes: 300n * MIB,
    gainedBytes: 6n * MIB,
  });
});

describe("removals in a row give nothing back", () => {
  test.each<[string, readonly One[], boolean]>([
    ["after three whose sharers were known", of(3, known), true],
    ["not after two of them", of(2, known), false],
    ["after ten whose sharers were not", of(10), true],
    ["not after nine of them", of(9), false],
    [
      "not if each freed the layers of its own alone",
      of(20, { known: 0n, gained: 65_536n }),
      false,
    ],
    ["after ten for which 0 bytes were possible", of(10, { known: 0n, gained: 65_535n }), true],
    ["not after nine for which 0 bytes were possible", of(9, { known: 0n }), false],
    [
      "not if each freed a tenth of the least",
      of(20, { known: MIB, gained: MIB / 10n + 1n }),
      false,
    ],
    ["after three known ones with others between", [...of(2, known), ...of(2), known], true],
    [
      "not if one of them gained a tenth of its estimate",
      [...of(2, known), { ...known, gained: 10n * MIB }, ...of(2, known)],
      false,
    ],
    [
      "if each gained a little less than a tenth",
      of(3, { ...known, gained: 10n * MIB - 1n }),
      true,
    ],
    [
      "if each lost space in spite of the correction",
      of(3, { ...known, gained: -100n * MIB }),
      true,
    ],
    [
      "not if less than a MiB was expected of each",
      of(20, { ...known, estimated: MIB - 1n }),
      false,
    ],
    ["if a MiB was expected of each", of(3, { ...known, estimated: MIB }), true],
    [
      "whatever was removed between them of which nothing was expected",
      [...of(2, known), { ...known, estimated: 0n, gained: 5n * GIB }, known],
      true,
    ],
  ])("%s", (_, removals, expected) => {
    expect(givesNothing(streakOf(removals))).toBe(expected);
  });

  test("unless a tenth of what was expected of all of them appears later", () => {
    const streak = streakOf(of(3, known));
    expect(givesNothing(afterRise(streak, 30n * MIB - 1n))).toBeTrue();
    expect(afterRise(afterRise(streak, 29n * MIB), MIB)).toBe(noStreak);
    expect(givesNothing(afterRise(streak, -GIB))).toBeTrue();
  });

  test("unless something was removed here, space that appears says nothing about earlier passes", () => {
    const before = { ...noStreak, knownSharers: 3, removals: 3 };
    expect(givesNothing(afterRise(before, GIB))).toBeTrue();
  });
});

const path = "/var/lib/containerd";
const reading = { availableBytes: 5n * GIB, capacityBytes: 100n * GIB };
const here = (change: Partial<FreedHere> = {}): FreedHere => ({
  path,
  streak: streakOf(of(3, known)),
  gaveBack: false,
  ended: true,
  reading,
  ...change,
});
const after = (ledger: Ledger, change: Partial<FreedHere> = {}): Ledger =>
  rememberNothingFreed(ledger, [here(change)], minutes(5));
const record = ({ nothingFreed }: Ledger) => nothingFreed.get(path);

describe("the ledger", () => {
  const fresh = aLedger({ watched: watched(hours(24)) });
  const pauseOf = (ledger: Ledger): bigint => (record(ledger)?.retryWatched ?? 0n) - ledger.watched;

  test("goes on with the count where a pass did not end for it", () => {
    const two = after(fresh, { streak: streakOf(of(2, known)), ended: false });
    expect(record(two)).toMatchObject({ knownSharers: 2, removals: 2, pauses: 0 });
  });

  test("pauses for a period after a pass that ended for it, twice as long after each further one, a day at most", () => {
    let ledger = after(fresh);
    const pauses: bigint[] = [];
    for (let pass = 1; pass <= 12; pass += 1) {
      pauses.push(pauseOf(ledger));
      ledger = after(ledger);
    }
    expect(pauses.slice(0, 3)).toEqual([minutes(5), minutes(10), minutes(20)]);
    expect(pauses.at(-1)).toBe(hours(24));
  });

  test("drops the record after a removal that gave something back, and counts anew after it", () => {
    const ledger = after(fresh);
    expect(
      record(after(ledger, { streak: noStreak, gaveBack: true, ended: false })),
    ).toBeUndefined();
    const one = { streak: streakOf([known]), gaveBack: true, ended: false };
    expect(record(after(ledger, one))).toMatchObject({ removals: 1, pauses: 0 });
  });

  test("stays the same after a pass that frees what it removes", () => {
    expect(after(fresh, { streak: noStreak, gaveBack: true, ended: false })).toBe(fresh);
  });

  test.each([
    [
      "stays while less than 2 % of the capacity has become available",
      { availableBytes: 7n * GIB - 1n },
      1,
    ],
    ["ends once 2 % of the capacity has become available", { availableBytes: 7n * GIB }, 0],
    ["stays on a disk that fills up further", { availableBytes: 0n }, 1],
    ["ends with another capacity", { availableBytes: 5n * GIB, capacityBytes: 101n * GIB }, 0],
    ["ends with its filesystem", { path: "/other" }, 0],
  ])("%s", (_, change, left) => {
    const { nothingFreed } = after(fresh);
    const still = stillNothingFreed(nothingFreed, [aFilesystem({ ...reading, ...change })]);
    expect([...still]).toEqual(left === 1 ? [...nothingFreed] : []);
  });

  test("keeps the record of each filesystem beside others", () => {
    const { nothingFreed } = rememberNothingFreed(
      fresh,
      [here(), here({ path: "/other" })],
      minutes(5),
    );
    const both = [path, "/other"].map((at) => aFilesystem({ ...reading, path: at }));
    expect(stillNothingFreed(nothingFreed, both)).toEqual(nothingFreed);
  });
});

test("one of two filesystems is remembered, where the other one freed space", () => {
  const ended = { gaveBack: false, ended: true, reading: aFilesystem() };
  const freed = [
    { ...ended, path: "/a", streak: noStreak },
    { ...ended, path: "/b", streak: streakOf(of(3, known)) },
  ];
  const { nothingFreed } = rememberNothingFreed(aLedger(), freed, minutes(5));
  expect([...nothingFreed.keys()]).toEqual(["/b"]);
});
