// What removals free of their estimate, when they free nothing, and what of both the ledger keeps.

import { describe, expect, test } from "bun:test";

import type { Ledger } from "../../../src/model/ledger.ts";
import type { ImageItem, ImageResult } from "../../../src/model/pass.ts";
import type { Bounds } from "../../../src/model/plan.ts";
import type { RuntimeInfo } from "../../../src/model/snapshot.ts";
import { duration, hours, minutes, watched } from "../../../src/model/time.ts";
import { roomToRecord } from "../../../src/policy/space/disk.ts";
import {
  afterRemoval,
  afterRise,
  type FreedHere,
  gainOf,
  givesNothing,
  noStreak,
  rememberGain,
  rememberNothingFreed,
  scaled,
  stillNothingFreed,
  type Streak,
} from "../../../src/policy/space/freed.ts";
import {
  aCandidate,
  aFilesystem,
  aLedger,
  aSnapshot,
  GIB,
  MIB,
  NOW,
} from "../../support/build/values.ts";

describe("removals in a row", () => {
  interface One {
    readonly estimated?: bigint;
    /** Sharers are known; a number is what it frees at least, less than the estimate. */
    readonly known?: boolean | bigint;
    readonly gained?: bigint;
  }
  const streakOf = (removals: readonly One[]): Streak =>
    removals.reduce((streak: Streak, { estimated = 100n * MIB, known: least, gained = 0n }) => {
      const leastBytes = least === true ? estimated : least === false ? null : (least ?? null);
      return afterRemoval(streak, { estimatedBytes: estimated, leastBytes }, gained);
    }, noStreak);
  const of = (count: number, one: One = {}): readonly One[] => Array(count).fill(one);
  const known = { known: true };

  test("add up what they were to free and what they freed, never less than nothing", () => {
    expect(streakOf([{ gained: 5n * MIB }, { gained: -MIB }, { gained: MIB }])).toMatchObject({
      estimatedBytes: 300n * MIB,
      gainedBytes: 6n * MIB,
    });
  });

  test.each<[string, readonly One[], boolean]>([
    ["if three had known sharers", of(3, known), true],
    ["not if two of them had", of(2, known), false],
    ["if the sharers of ten were not known", of(10), true],
    ["not if there were nine of them", of(9), false],
    ["not if each freed the layers of its own", of(20, { known: 0n, gained: 65_536n }), false],
    ["if 0 bytes were possible for ten", of(10, { known: 0n, gained: 65_535n }), true],
    ["not if 0 bytes were possible for nine", of(9, { known: 0n }), false],
    ["not if each freed a tenth", of(20, { known: MIB, gained: MIB / 10n + 1n }), false],
    ["if others were between three known ones", [...of(2, known), ...of(2), ...of(1, known)], true],
    [
      "not if one gained a tenth of its estimate",
      [...of(2, known), { ...known, gained: 10n * MIB }, ...of(2, known)],
      false,
    ],
    ["if each gained less than a tenth", of(3, { ...known, gained: 10n * MIB - 1n }), true],
    ["if each lost space in spite of all", of(3, { ...known, gained: -100n * MIB }), true],
    ["not if less than a MiB was expected", of(20, { ...known, estimated: MIB - 1n }), false],
    ["if a MiB was expected of each", of(3, { ...known, estimated: MIB }), true],
    [
      "if nothing was expected of one between them",
      [...of(2, known), { ...known, estimated: 0n, gained: 5n * GIB }, known],
      true,
    ],
  ])("give nothing %s", (_, removals, expected) => {
    expect(givesNothing(streakOf(removals))).toBe(expected);
  });

  test("give something if a tenth of what was expected of all of them appears later", () => {
    const streak = streakOf(of(3, known));
    expect(givesNothing(afterRise(streak, 30n * MIB - 1n))).toBeTrue();
    expect(afterRise(afterRise(streak, 29n * MIB), MIB)).toBe(noStreak);
    expect(givesNothing(afterRise(streak, -GIB))).toBeTrue();
    // Where nothing was removed, space that appears says nothing about earlier passes.
    const before = { ...noStreak, knownSharers: 3, removals: 3 };
    expect(givesNothing(afterRise(before, GIB))).toBeTrue();
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
  const after = (ledger: Ledger, ...changes: readonly Partial<FreedHere>[]): Ledger =>
    rememberNothingFreed(ledger, changes.map(here), minutes(5));

  describe("in the ledger", () => {
    const fresh = aLedger({ watched: watched(hours(24)) });
    const paused = after(fresh, {});
    const gaveBack = { streak: noStreak, gaveBack: true, ended: false };
    const record = ({ nothingFreed }: Ledger) => nothingFreed.get(path);

    test("go on with the count where a pass did not end for them", () => {
      const two = after(fresh, { streak: streakOf(of(2, known)), ended: false });
      expect(record(two)).toMatchObject({ knownSharers: 2, removals: 2, pauses: 0 });
    });

    test("pause for a period after a pass that ended for them, twice as long after each further one, a day at most", () => {
      let ledger = paused;
      const pauses: bigint[] = [];
      for (let pass = 1; pass <= 12; pass += 1) {
        pauses.push((record(ledger)?.retryWatched ?? 0n) - ledger.watched);
        ledger = after(ledger, {});
      }
      expect(pauses.slice(0, 3)).toEqual([minutes(5), minutes(10), minutes(20)]);
      expect(pauses.at(-1)).toBe(hours(24));
    });

    test("are dropped after a removal that gave something back, and count anew after it", () => {
      expect(record(after(paused, gaveBack))).toBeUndefined();
      const one = { ...gaveBack, streak: streakOf([known]) };
      expect(record(after(paused, one))).toMatchObject({ removals: 1, pauses: 0 });
      expect(after(fresh, gaveBack)).toBe(fresh);
    });

    test.each([
      ["stay below 2 % of the capacity more", { availableBytes: 7n * GIB - 1n }, 1],
      ["end once 2 % of the capacity has become available", { availableBytes: 7n * GIB }, 0],
      ["stay on a disk that fills up further", { availableBytes: 0n }, 1],
      ["end with another capacity", { availableBytes: 5n * GIB, capacityBytes: 101n * GIB }, 0],
      ["end with their filesystem", { path: "/other" }, 0],
    ])("%s", (_, change, left) => {
      const { nothingFreed } = paused;
      const still = stillNothingFreed(nothingFreed, [aFilesystem({ ...reading, ...change })]);
      expect([...still]).toEqual(left === 1 ? [...nothingFreed] : []);
    });

    test("are kept for each filesystem that freed nothing, beside others", () => {
      const { nothingFreed } = after(fresh, {}, { path: "/other" });
      const both = [path, "/other"].map((at) => aFilesystem({ ...reading, path: at }));
      expect(stillNothingFreed(nothingFreed, both)).toEqual(nothingFreed);
      const one = after(fresh, { path: "/a", streak: noStreak }, { path: "/b" });
      expect([...one.nothingFreed.keys()]).toEqual(["/b"]);
    });
  });
});

const { runtime } = aSnapshot();
const crio: RuntimeInfo = { ...runtime, name: "cri-o", version: "1.37.0" };
const docker: RuntimeInfo = { ...runtime, name: "docker", version: "28.5.1" };

test("only CRI-O needs room for its lists of images, layers and mounts, 16 KiB a record", () => {
  const rooms = [crio, { ...crio, name: "CRI-O" }, runtime, docker];
  const room = 19n * 16_384n;
  expect(rooms.map((one) => roomToRecord({ runtime: one }, 3))).toEqual([room, room, 0n, 0n]);
});

interface RemovalOf {
  readonly settled?: Extract<ImageResult, { readonly kind: "removed" }>["settled"];
  readonly unscaled?: Bounds;
  readonly sharersKnown?: boolean;
}

const exactly = (bytes: bigint): Bounds => ({
  lowerBytes: bytes,
  estimateBytes: bytes,
  upperBytes: bytes,
});

/** A removal that was expected to free 10 MiB and freed so many. */
const removal = (
  mebibytes: number,
  { settled = "at-once", unscaled = exactly(10n * MIB), sharersKnown = true }: RemovalOf = {},
): ImageItem => ({
  candidate: aCandidate("app", { unscaled, sharersKnown }),
  trigger: { kind: "space" },
  result: {
    kind: "removed",
    reportedBytes: 10n * MIB,
    measuredBytes: BigInt(mebibytes) * MIB,
    settled,
  },
  startedAt: NOW,
  took: duration(0n),
});

const learned = (ledger: Ledger, items: readonly ImageItem[], of = runtime): Ledger =>
  rememberGain(ledger, { runtime: of, items });
const later = (ledger: Ledger, by: bigint): Ledger => ({
  ...ledger,
  watched: watched(ledger.watched + by),
});
const times = (count: number, item: ImageItem): readonly ImageItem[] => Array(count).fill(item);

describe("the most that a thousand reported bytes take", () => {
  test.each([
    ["five thousand before three removals", runtime, [40, 40], 5000n],
    ["the largest measured and a quarter", runtime, [20, 32, 24], 4000n],
    ["at least two thousand where sizes may be compressed", runtime, [10, 11, 12], 2000n],
    ["at least a thousand with Docker, which compresses none", docker, [5, 6, 4], 1000n],
    ["the largest and a quarter with Docker too", docker, [16, 12, 12], 2000n],
    ["a thousand on CRI-O, which reports unpacked sizes", crio, [], 1000n],
    ["a thousand on CRI-O whatever was measured", crio, [30, 30, 30], 1000n],
    ["six and a quarter where others deleted much meanwhile", runtime, [900, 900, 900], 6250n],
  ])("is %s", (_, of, measured, most) => {
    const items = measured.map((mebibytes) => removal(mebibytes));
    expect(gainOf(learned(aLedger(), items, of), of).most).toBe(most);
  });

  test("is forgotten after a day of observed time without a measured removal, and measured again then", () => {
    const first = learned(aLedger(), times(3, removal(20)));
    expect(gainOf(later(first, hours(24)), runtime).most).toBe(2500n);
    const old = later(first, hours(24) + 1n);
    expect(gainOf(old, runtime)).toEqual({ typical: 2000n, most: 5000n });
    expect(gainOf(learned(old, times(2, removal(32))), runtime).most).toBe(5000n);
    expect(gainOf(learned(old, times(3, removal(32))), runtime).most).toBe(4000n);
    // A removal each day keeps it.
    const daily = learned(later(first, hours(24)), [removal(16)]);
    expect(gainOf(later(daily, hours(24)), runtime).most).toBe(2500n);
  });

  test("is measured again after two hundred removals, so that one wrong measurement does not last", () => {
    const wrong = learned(aLedger(), [removal(45), ...times(198, removal(20))]);
    expect(gainOf(wrong, runtime).most).toBe(5625n);
    const again = learned(wrong, [removal(20)]);
    expect(gainOf(again, runtime).most).toBe(5000n);
    expect(gainOf(learned(again, times(3, removal(20))), runtime).most).toBe(2500n);
  });
});

describe("what removals typically free of their estimate", () => {
  test("is unknown before three removals, and then the ratio of the sums, for one version of the runtime", () => {
    const two = learned(aLedger(), [removal(25), removal(15)]);
    expect(gainOf(two, runtime).typical).toBeNull();
    const three = learned(two, [removal(20)]);
    expect(gainOf(three, runtime).typical).toBe(2000n);
    expect(gainOf(three, { ...runtime, version: "9.9" })).toEqual({ typical: null, most: 5000n });
  });

  test("follows a node whose images change: two hundred removals count for half", () => {
    const old = learned(aLedger(), times(200, removal(40)));
    expect([...old.gains.values()]).toMatchObject([
      { removals: 100, estimatedBytes: 1000n * MIB, measuredBytes: 4000n * MIB },
    ]);
    expect(gainOf(learned(old, times(1000, removal(10))), runtime).typical).toBeLessThan(1200n);
  });

  test("is unknown where a damaged record has no bytes", () => {
    const [[key, record] = ["", null]] = [...learned(aLedger(), [removal(10)]).gains];
    const gains = new Map([[key, { ...record!, removals: 5, estimatedBytes: 0n }]]);
    expect(gainOf(aLedger({ gains }), runtime).typical).toBeNull();
  });
});

describe("a removal", () => {
  const failed = { kind: "failed", message: "busy", code: "failed" } as const;
  const wide = (upperBytes: bigint) => ({
    unscaled: { lowerBytes: 8n * MIB, estimateBytes: 8n * MIB, upperBytes },
  });

  test.each([
    ["whose sharers were not all known", false, removal(84, { sharersKnown: false })],
    ["whose layers bound it to no better than a quarter", false, removal(8, wide(10n * MIB + 1n))],
    ["whose layers bound it to a quarter", true, removal(8, wide(10n * MIB))],
    ["of less than a MiB", false, removal(2, { unscaled: exactly(MIB - 1n) })],
    ["of a MiB", true, removal(1, { unscaled: exactly(MIB) })],
    ["that freed less than a tenth: something else keeps the content", false, removal(0)],
    ["that freed a tenth", true, removal(1)],
    ["that failed", false, { ...removal(10), result: failed }],
    [
      "that does not say whether they were",
      false,
      { ...removal(84), candidate: aCandidate("app", { unscaled: exactly(10n * MIB) }) },
    ],
    ["without an estimate", false, { ...removal(10), candidate: aCandidate("app") }],
    ["whose space was not seen", false, removal(20, { settled: "not-seen" })],
    ["whose space may be that of earlier ones", false, removal(20, { settled: "afterwards" })],
    ["that a pass did not wait for", true, removal(20, { settled: "not-waited" })],
  ])("%s is learned from: %p", (_, isLearned, item) => {
    const ledger = aLedger();
    const after = learned(ledger, times(9, item));
    if (isLearned) expect([...after.gains.values()]).toMatchObject([{ removals: 9 }]);
    else expect(after).toBe(ledger);
  });
});

test.each([
  [3000n, 4000n, { lowerBytes: 8n, estimateBytes: 30n, upperBytes: 48n }],
  [500n, 2000n, { lowerBytes: 4n, estimateBytes: 5n, upperBytes: 24n }],
  [null, 5000n, { lowerBytes: 8n, estimateBytes: 10n, upperBytes: 60n }],
  [1500n, 1000n, { lowerBytes: 8n, estimateBytes: 10n, upperBytes: 12n }],
])(
  "an estimate scaled by %p, at most %p, promises no more than the reported size",
  (typical, most, expected) => {
    const bounds = { lowerBytes: 8n, estimateBytes: 10n, upperBytes: 12n };
    expect(scaled(bounds, { typical, most }, { sharersKnown: true })).toEqual(expected);
  },
);
