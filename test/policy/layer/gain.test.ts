import { describe, expect, test } from "bun:test";

import type { Ledger } from "../../../src/model/ledger.ts";
import type { ImageItem, ImageResult } from "../../../src/model/outcome.ts";
import type { Bounds } from "../../../src/model/plan.ts";
import type { RuntimeInfo } from "../../../src/model/snapshot.ts";
import { duration, hours, watched } from "../../../src/model/time.ts";
import { gainOf, rememberGain, scaled } from "../../../src/policy/space/freed.ts";
import { aCandidate, aLedger, aSnapshot, NOW } from "../../support/build/values.ts";

const MIB = 1_048_576n;
const { runtime } = aSnapshot();
const crio: RuntimeInfo = { ...runtime, name: "cri-o", version: "1.37.0" };
const docker: RuntimeInfo = { ...runtime, name: "docker", version: "28.5.1" };

type Settled = Extract<ImageResult, { readonly kind: "removed" }>["settled"];

interface RemovalOf {
  readonly settled?: Settled;
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

const after = (ledger: Ledger, items: readonly ImageItem[], of: RuntimeInfo = runtime): Ledger =>
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
    expect(gainOf(after(aLedger(), items, of), of).most).toBe(most);
  });

  test("is forgotten after a day of observed time without a measured removal, and measured again then", () => {
    const learned = after(aLedger(), times(3, removal(20)));
    expect(gainOf(later(learned, hours(24)), runtime).most).toBe(2500n);
    const old = later(learned, hours(24) + 1n);
    expect(gainOf(old, runtime)).toEqual({ typical: 2000n, most: 5000n });
    expect(gainOf(after(old, times(2, removal(32))), runtime).most).toBe(5000n);
    expect(gainOf(after(old, times(3, removal(32))), runtime).most).toBe(4000n);
    // A removal each day keeps it.
    const daily = after(later(learned, hours(24)), [removal(16)]);
    expect(gainOf(later(daily, hours(24)), runtime).most).toBe(2500n);
  });

  test("is measured again after two hundred removals, so that one wrong measurement does not last", () => {
    const learned = after(aLedger(), [removal(45), ...times(198, removal(20))]);
    expect(gainOf(learned, runtime).most).toBe(5625n);
    const again = after(learned, [removal(20)]);
    expect(gainOf(again, runtime).most).toBe(5000n);
    expect(gainOf(after(again, times(3, removal(20))), runtime).most).toBe(2500n);
  });
});

describe("what removals typically free of their estimate", () => {
  test("is unknown before three removals, and then the ratio of the sums, for one version of the runtime", () => {
    const two = after(aLedger(), [removal(25), removal(15)]);
    expect(gainOf(two, runtime).typical).toBeNull();
    const three = after(two, [removal(20)]);
    expect(gainOf(three, runtime).typical).toBe(2000n);
    expect(gainOf(three, { ...runtime, version: "9.9" })).toEqual({ typical: null, most: 5000n });
  });

  test("follows a node whose images change: two hundred removals count for half", () => {
    const old = after(aLedger(), times(200, removal(40)));
    expect([...old.gains.values()]).toMatchObject([
      { removals: 100, estimatedBytes: 1000n * MIB, measuredBytes: 4000n * MIB },
    ]);
    const now = after(old, times(1000, removal(10)));
    expect(gainOf(now, runtime).typical).toBeLessThan(1200n);
  });

  test("is unknown where a damaged record has no bytes", () => {
    const [[key, record] = ["", null]] = [...after(aLedger(), [removal(10)]).gains];
    const gains = new Map([[key, { ...record!, removals: 5, estimatedBytes: 0n }]]);
    expect(gainOf(aLedger({ gains }), runtime).typical).toBeNull();
  });
});

describe("nothing is learned from a removal", () => {
  const failed: ImageItem = {
    ...removal(10),
    result: { kind: "failed", message: "busy", code: "failed" },
  };
  const bare: ImageItem = { ...removal(10), candidate: aCandidate("app") };
  const wide = { lowerBytes: 8n * MIB, estimateBytes: 8n * MIB, upperBytes: 10n * MIB + 1n };

  test.each([
    ["whose sharers were not all known", removal(84, { sharersKnown: false })],
    ["whose layers bound it to no better than a quarter", removal(8, { unscaled: wide })],
    ["of less than a MiB", removal(2, { unscaled: exactly(MIB - 1n) })],
    ["that freed less than a tenth: something else keeps the content", removal(0)],
    ["that failed", failed],
    ["without an estimate", bare],
    ["whose space was not seen", removal(20, { settled: "not-seen" })],
    ["whose space may be that of earlier ones", removal(20, { settled: "afterwards" })],
  ])("%s", (_, item) => {
    const ledger = aLedger();
    expect(after(ledger, times(9, item))).toBe(ledger);
  });

  test("that is at one of these limits, and on the other side of it something is", () => {
    const within = { ...wide, upperBytes: 10n * MIB };
    const items = [
      removal(8, { unscaled: within }),
      removal(1, { unscaled: exactly(MIB) }),
      removal(1),
    ];
    expect([...after(aLedger(), items).gains.values()]).toMatchObject([{ removals: 3 }]);
    const notWaited = removal(20, { settled: "not-waited" });
    expect(after(aLedger(), [notWaited]).gains.size).toBe(1);
  });
});

describe("a scaled estimate", () => {
  const known = { sharersKnown: true };

  test("promises no more than the reported size, and at most what an image may take", () => {
    const bounds = { lowerBytes: 8n, estimateBytes: 10n, upperBytes: 12n };
    expect(scaled(bounds, { typical: 3000n, most: 4000n }, known)).toEqual({
      lowerBytes: 8n,
      estimateBytes: 30n,
      upperBytes: 48n,
    });
    expect(scaled(bounds, { typical: 500n, most: 2000n }, known)).toEqual({
      lowerBytes: 4n,
      estimateBytes: 5n,
      upperBytes: 24n,
    });
    expect(scaled(bounds, { typical: null, most: 5000n }, known).estimateBytes).toBe(10n);
    expect(scaled(bounds, { typical: 1500n, most: 1000n }, known).estimateBytes).toBe(10n);
  });
});
