import { describe, expect, test } from "bun:test";

import type { Ledger } from "../../../src/model/ledger.ts";
import type { ImageItem } from "../../../src/model/outcome.ts";
import { duration } from "../../../src/model/time.ts";
import { gainOf, rememberGain, scaled } from "../../../src/policy/layer/gain.ts";
import { aLedger, anImage, aRecord, aSnapshot, NOW } from "../../support/build/values.ts";

const MIB = 1_048_576n;
const { runtime } = aSnapshot();

/** A removal that was expected to free so much, and freed so much. */
function removal(estimateBytes: bigint | null, measuredBytes: bigint): ImageItem {
  const frees = { lowerBytes: 0n, estimateBytes: estimateBytes ?? 0n, upperBytes: 99n * MIB };
  return {
    candidate: {
      image: anImage("app"),
      record: aRecord(),
      triggers: [],
      unusedFor: duration(0n),
      expected: true,
      tried: [],
      ...(estimateBytes === null ? {} : { frees }),
    },
    trigger: { kind: "space" },
    result: { kind: "removed", reportedBytes: 10n * MIB, measuredBytes, settled: "at-once" },
    startedAt: NOW,
    took: duration(0n),
  };
}

const after = (ledger: Ledger, items: readonly ImageItem[]): Ledger =>
  rememberGain(ledger, { runtime, gain: gainOf(ledger, runtime), items });

describe("the gain of a runtime version", () => {
  test("is not known before three removals, and is measured bytes for estimated ones after them", () => {
    const two = after(aLedger(), [removal(10n * MIB, 25n * MIB), removal(10n * MIB, 15n * MIB)]);
    expect(gainOf(two, runtime)).toBeNull();
    const three = after(two, [removal(10n * MIB, 20n * MIB)]);
    expect(gainOf(three, runtime)).toBe(2000n);
    expect(gainOf(three, { ...runtime, version: "1.7.25" })).toBeNull();
  });

  test("stays the same where estimates that it scaled come true", () => {
    const learned = after(aLedger(), Array(3).fill(removal(10n * MIB, 20n * MIB)));
    const scaledEstimate = scaled(
      { lowerBytes: 8n * MIB, estimateBytes: 10n * MIB, upperBytes: 12n * MIB },
      gainOf(learned, runtime),
    );
    expect(scaledEstimate).toEqual({
      lowerBytes: 16n * MIB,
      estimateBytes: 20n * MIB,
      upperBytes: 24n * MIB,
    });
    const again = after(learned, Array(50).fill(removal(scaledEstimate.estimateBytes, 20n * MIB)));
    expect(gainOf(again, runtime)).toBe(2000n);
  });

  test("follows a node whose images change, and forgets what is long ago", () => {
    const old = after(aLedger(), Array(1000).fill(removal(10n * MIB, 40n * MIB)));
    expect(gainOf(old, runtime)).toBe(4000n);
    let ledger = old;
    for (let pass = 0; pass < 10; pass += 1) {
      const gain = gainOf(ledger, runtime) ?? 1000n;
      ledger = after(ledger, Array(100).fill(removal((10n * MIB * gain) / 1000n, 10n * MIB)));
    }
    expect(gainOf(ledger, runtime)).toBeLessThan(1200n);
  });

  test("lies between a fifth and five times, whatever other programs do to the disk", () => {
    const items = (measured: bigint) => Array(3).fill(removal(10n * MIB, measured));
    expect(gainOf(after(aLedger(), items(0n)), runtime)).toBe(200n);
    expect(gainOf(after(aLedger(), items(9_000n * MIB)), runtime)).toBe(5000n);
  });

  test("is not learned from removals without an estimate, that failed, or that free next to nothing", () => {
    const none = aLedger();
    expect(after(none, [removal(null, 5n * MIB)])).toBe(none);
    const failed: ImageItem = {
      ...removal(10n * MIB, 0n),
      result: { kind: "failed", message: "busy", code: "failed" },
    };
    expect(after(none, [failed])).toBe(none);
    expect(gainOf(after(none, Array(9).fill(removal(1000n, 9000n))), runtime)).toBeNull();
  });
});
