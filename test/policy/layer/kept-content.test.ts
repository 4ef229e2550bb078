import { describe, expect, test } from "bun:test";

import type { PastRemoval } from "../../../src/model/audit.ts";
import { minutes, plus } from "../../../src/model/time.ts";
import { keptContent } from "../../../src/policy/layer/kept-content.ts";
import { MIB, NOW } from "../../support/build/values.ts";

const removal = (change: Partial<PastRemoval> = {}): PastRemoval => ({
  names: ["registry.example/app:1"],
  measuredBytes: 1n * MIB,
  freesAtLeastBytes: 10n * MIB,
  settled: "at-once",
  at: NOW,
  ...change,
});

describe("content that something else keeps", () => {
  test("is found if a removal gained less than three quarters of its lower bound, and added up by repository", () => {
    const later = plus(NOW, minutes(5));
    const removals = [
      removal({ names: ["registry.example/app:2"], measuredBytes: 7n * MIB, at: later }),
      removal({ measuredBytes: 7n * MIB }),
      removal({
        names: ["registry.example/other:1"],
        measuredBytes: 0n,
        freesAtLeastBytes: 15n * MIB,
      }),
      removal({ names: ["registry.example/good:1"], measuredBytes: 8n * MIB }),
    ];
    expect(keptContent(removals.toReversed())[1]).toMatchObject({ lastAt: later });
    expect(keptContent(removals)).toEqual([
      {
        kind: "content-kept",
        repository: "registry.example/other",
        removals: 1,
        expectedAtLeastBytes: 15n * MIB,
        measuredBytes: 0n,
        lastAt: NOW,
      },
      {
        kind: "content-kept",
        repository: "registry.example/app",
        removals: 2,
        expectedAtLeastBytes: 20n * MIB,
        measuredBytes: 14n * MIB,
        lastAt: later,
      },
    ]);
  });

  test("is not found where three quarters came, less than a MiB is missing, or the row is older than estimates", () => {
    const most = { freesAtLeastBytes: 8n * MIB, measuredBytes: 6n * MIB };
    expect(keptContent([removal(most)])).toEqual([]);
    expect(keptContent([removal({ freesAtLeastBytes: MIB, measuredBytes: 0n })])).toHaveLength(1);
    const small = removal({ measuredBytes: 0n, freesAtLeastBytes: MIB - 1n });
    expect(keptContent([small, removal({ freesAtLeastBytes: null })])).toEqual([]);
    const some = removal({ measuredBytes: 1n, freesAtLeastBytes: MIB });
    expect(keptContent([some])).toEqual([]);
    expect(keptContent([removal({ measuredBytes: null })])).toEqual([]);
  });

  test("is not found if the space may have come later, or was not seen", () => {
    const notWaited = [removal({ settled: "not-waited" })];
    expect(keptContent(notWaited)).toHaveLength(1);
    expect(keptContent([removal({ settled: "afterwards" })])).toEqual([]);
    expect(keptContent([removal({ settled: "not-seen" })])).toEqual([]);
  });
});
