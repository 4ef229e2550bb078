import { describe, expect, test } from "bun:test";

import { type ChainId, chainId } from "../../../src/model/ids.ts";
import type { Ledger } from "../../../src/model/ledger.ts";
import type { ImageItem, ImageResult } from "../../../src/model/outcome.ts";
import type { Bounds } from "../../../src/model/plan.ts";
import { duration } from "../../../src/model/time.ts";
import {
  type Gain,
  gainsOf,
  nodeGain,
  rememberGain,
  scaled,
} from "../../../src/policy/layer/gain.ts";
import { LayerForest } from "../../../src/policy/layer/layers.ts";
import type { PathSizes } from "../../../src/policy/layer/path.ts";
import { aCandidate, aLedger, anImage, aSnapshot, NOW } from "../../support/build/values.ts";

const MIB = 1_048_576n;
const { runtime } = aSnapshot();

type Settled = Extract<ImageResult, { readonly kind: "removed" }>["settled"];

interface RemovalOf {
  readonly name?: string;
  readonly settled?: Settled;
  readonly isExact?: boolean;
}

/** A removal of an image of `name` that was expected to free so much, and freed so much. */
function removal(
  estimateBytes: bigint | null,
  measuredBytes: bigint,
  { name = "app", settled = "at-once", isExact = true }: RemovalOf = {},
): ImageItem {
  const unscaled = isExact
    ? exactly(estimateBytes ?? 0n)
    : { lowerBytes: 0n, estimateBytes: estimateBytes ?? 0n, upperBytes: 99n * MIB };
  return {
    candidate: aCandidate(name, estimateBytes === null ? {} : { unscaled }),
    trigger: { kind: "space" },
    result: { kind: "removed", reportedBytes: 10n * MIB, measuredBytes, settled },
    startedAt: NOW,
    took: duration(0n),
  };
}

const after = (ledger: Ledger, items: readonly ImageItem[]): Ledger =>
  rememberGain(ledger, { runtime, items });

const exactly = (bytes: bigint): Bounds => ({
  lowerBytes: bytes,
  estimateBytes: bytes,
  upperBytes: bytes,
});

describe("the gain of a runtime version", () => {
  test("is unknown before three removals, and then the ratio of measured to estimated bytes", () => {
    const two = after(aLedger(), [removal(10n * MIB, 25n * MIB), removal(10n * MIB, 15n * MIB)]);
    expect(nodeGain(two, runtime)).toBeNull();
    const three = after(two, [removal(10n * MIB, 20n * MIB)]);
    expect(nodeGain(three, runtime)).toBe(2000n);
    expect(nodeGain(three, { ...runtime, version: "1.7.25" })).toBeNull();
  });

  test("does not change if the estimates that it scaled are right", () => {
    const learned = after(aLedger(), Array(3).fill(removal(10n * MIB, 20n * MIB)));
    const again = after(learned, Array(50).fill(removal(10n * MIB, 20n * MIB)));
    expect(nodeGain(again, runtime)).toBe(2000n);
  });

  test("follows a node whose images change, and drops old values", () => {
    const old = after(aLedger(), Array(1000).fill(removal(10n * MIB, 40n * MIB)));
    expect(nodeGain(old, runtime)).toBe(4000n);
    for (const { removals } of old.gains.values()) expect(removals).toBeWithin(100, 200);
    let ledger = old;
    for (let pass = 0; pass < 10; pass += 1) {
      ledger = after(ledger, Array(100).fill(removal(10n * MIB, 10n * MIB)));
    }
    expect(nodeGain(ledger, runtime)).toBeLessThan(1200n);
  });

  test("counts two hundred removals for half", () => {
    const countOf = (removals: number) =>
      [...after(aLedger(), Array(removals).fill(removal(10n * MIB, 10n * MIB))).gains.values()].map(
        (record) => record.removals,
      );
    expect(countOf(199)).toEqual([199, 199]);
    expect(countOf(200)).toEqual([100, 100]);
  });

  test("is learned from a MiB in all, and where layers tell what is freed to a quarter", () => {
    const least = after(aLedger(), Array(4).fill(removal(MIB / 4n, MIB / 4n)));
    expect(nodeGain(least, runtime)).toBe(1000n);
    const within = (upperBytes: bigint) => {
      const item = removal(8n * MIB, 8n * MIB);
      const unscaled = { lowerBytes: 8n * MIB, estimateBytes: 8n * MIB, upperBytes };
      const one = { ...item, candidate: { ...item.candidate, unscaled } };
      return nodeGain(after(aLedger(), [one, one, one]), runtime);
    };
    expect([within(10n * MIB), within(10n * MIB + 1n)]).toEqual([1000n, null]);
  });

  test("is between a fifth and five, whatever other programs do to the disk", () => {
    const items = (measured: bigint) => Array(3).fill(removal(10n * MIB, measured));
    expect(nodeGain(after(aLedger(), items(0n)), runtime)).toBe(200n);
    expect(nodeGain(after(aLedger(), items(9_000n * MIB)), runtime)).toBe(5000n);
  });

  test("is not learned from removals without an estimate, that failed, or that free next to nothing", () => {
    const none = aLedger();
    expect(after(none, [removal(null, 5n * MIB)])).toBe(none);
    const failed: ImageItem = {
      ...removal(10n * MIB, 0n),
      result: { kind: "failed", message: "busy", code: "failed" },
    };
    expect(after(none, [failed])).toBe(none);
    expect(nodeGain(after(none, Array(9).fill(removal(1000n, 9000n))), runtime)).toBeNull();
  });

  test("is not learned from space that may appear later or was not seen", () => {
    const none = aLedger();
    const delayed = { name: "containerd", version: "2.0.1" };
    const learned = (settled: Settled, of: typeof delayed): Ledger =>
      rememberGain(none, {
        runtime: { ...runtime, ...of },
        items: [removal(10n * MIB, 0n, { settled })],
      });
    expect(learned("not-waited", delayed)).toBe(none);
    expect(learned("not-seen", delayed)).toBe(none);
    expect(learned("not-seen", { name: "cri-o", version: "1.37.0" })).toBe(none);
    expect(learned("not-waited", { name: "cri-o", version: "1.37.0" })).not.toBe(none);
    expect(learned("afterwards", delayed)).not.toBe(none);
  });
});

describe("the gain of a repository", () => {
  const mixed = after(aLedger(), [
    ...Array(3).fill(removal(10n * MIB, 20n * MIB, { name: "binaries" })),
    ...Array(3).fill(removal(10n * MIB, 40n * MIB, { name: "texts" })),
  ]);
  const gainOf = gainsOf(mixed, runtime);

  test("is separate after three removals, while the node's is the mean of both", () => {
    expect(gainOf(anImage("binaries"))).toEqual({ perMille: 2000n, isOwn: true });
    expect(gainOf(anImage("texts"))).toEqual({ perMille: 4000n, isOwn: true });
    expect(nodeGain(mixed, runtime)).toBe(3000n);
  });

  test("is the node's if nothing was learned about the repository, or the image has no name", () => {
    expect(gainOf(anImage("other"))).toEqual({ perMille: 3000n, isOwn: false });
    expect(gainOf({ repoTags: [], repoDigests: [] })).toEqual({
      perMille: 3000n,
      isOwn: false,
    });
    expect(gainsOf(aLedger(), runtime)(anImage("other"))).toBeNull();
  });

  test("is the same for all tags and digests of the repository, and for no other version of the runtime", () => {
    const other = { repoTags: [], repoDigests: ["registry.example/texts@sha256:abc"] };
    expect(gainOf(other)).toEqual({ perMille: 3000n, isOwn: false });
    const digest = `registry.example/texts@sha256:${"d".repeat(64)}`;
    expect(gainOf({ repoTags: [], repoDigests: [digest] })?.perMille).toBe(4000n);
    expect(gainsOf(mixed, { ...runtime, version: "9.9" })(anImage("texts"))).toBeNull();
  });

  test("is not learned from an image without a name, which counts only for the node's", () => {
    const item = removal(10n * MIB, 20n * MIB);
    const image = { ...item.candidate.image, repoTags: [] };
    const unnamed = { ...item, candidate: { ...item.candidate, image } };
    const learned = after(aLedger(), [unnamed, unnamed, unnamed]);
    expect(learned.gains.size).toBe(1);
    expect(gainsOf(learned, runtime)(anImage("app"))).toEqual({ perMille: 2000n, isOwn: false });
  });

  test("is dropped after those of five hundred others were learned", () => {
    const many = after(
      mixed,
      Array.from({ length: 500 }, (_, index) => removal(MIB, MIB, { name: `app-${index}` })),
    );
    expect(many.gains.size).toBe(501);
    expect(gainsOf(many, runtime)(anImage("texts"))?.isOwn).toBe(false);
    expect(nodeGain(many, runtime)).not.toBeNull();
  });

  test("is not dropped if it was learned again meanwhile", () => {
    const others = (from: number, to: number): readonly ImageItem[] =>
      Array.from({ length: to - from }, (_, at) => removal(MIB, MIB, { name: `app-${from + at}` }));
    const again = after(mixed, [
      ...others(0, 498),
      removal(10n * MIB, 40n * MIB, { name: "texts" }),
      ...others(498, 500),
    ]);
    expect(gainsOf(again, runtime)(anImage("texts"))).toEqual({ perMille: 4000n, isOwn: true });
    expect(gainsOf(again, runtime)(anImage("binaries"))?.isOwn).toBe(false);
  });
});

describe("a scaled estimate", () => {
  const own = (perMille: bigint): Gain => ({ perMille, isOwn: true });
  const ofNode = (perMille: bigint): Gain => ({ perMille, isOwn: false });

  test("uses the learned gain, with bounds of a quarter if learned from the repository itself", () => {
    expect(scaled(exactly(8n * MIB), own(2000n))).toEqual({
      lowerBytes: 12n * MIB,
      estimateBytes: 16n * MIB,
      upperBytes: 20n * MIB,
    });
  });

  test("learned from other images promises no more than the reported size, and at most five times as much", () => {
    const bounds = (gain: Gain | null) => scaled(exactly(10n * MIB), gain);
    expect(bounds(ofNode(3000n))).toEqual({
      lowerBytes: 10n * MIB,
      estimateBytes: 30n * MIB,
      upperBytes: 50n * MIB,
    });
    expect(bounds(ofNode(500n)).lowerBytes).toBe(5n * MIB);
    expect(bounds(null)).toEqual({
      lowerBytes: 10n * MIB,
      estimateBytes: 10n * MIB,
      upperBytes: 50n * MIB,
    });
  });

  test("has bounds that contain the truth on a node with images of one to five times their reported size", () => {
    for (const truth of [1000n, 2000n, 3500n, 5000n])
      for (const learned of [1000n, 2000n, 3500n, 5000n]) {
        const { lowerBytes, estimateBytes, upperBytes } = scaled(exactly(MIB), ofNode(learned));
        const freed = (MIB * truth) / 1000n;
        expect(freed).toBeGreaterThanOrEqual(lowerBytes);
        expect(freed).toBeLessThanOrEqual(upperBytes);
        expect(Number(estimateBytes)).toBeWithin(Number(lowerBytes), Number(upperBytes) + 1);
      }
  });
});

describe("the base size learned for a repository", () => {
  const shared = chainId("base");
  const inexact = (measuredBytes: bigint, sizeBytes = 100n * MIB): ImageItem => {
    const item = removal(40n * MIB, measuredBytes, { isExact: false });
    const { candidate } = item;
    return {
      ...item,
      candidate: { ...candidate, leaves: shared, image: { ...candidate.image, sizeBytes } },
    };
  };
  const leftOf = (ledger: Ledger) => [...ledger.gains.values()].flatMap(({ left }) => left ?? []);

  test("is learned from a removal with unknown base: the reported size less the freed bytes", () => {
    expect(leftOf(after(aLedger(), [inexact(4n * MIB)]))).toEqual([
      { chain: shared, bytes: 96n * MIB },
    ]);
  });

  test("is not learned from a removal that freed everything", () => {
    const known = after(aLedger(), [inexact(4n * MIB)]);
    const item = inexact(50n * MIB);
    const alone = { ...item, candidate: { ...item.candidate, leaves: null } };
    expect(leftOf(after(known, [alone]))).toEqual([{ chain: shared, bytes: 96n * MIB }]);
    expect(leftOf(after(aLedger(), [alone]))).toEqual([]);
  });

  test("is corrected by the node's gain", () => {
    const known = after(aLedger(), Array(3).fill(removal(10n * MIB, 20n * MIB, { name: "other" })));
    expect(leftOf(after(known, [inexact(4n * MIB)]))).toEqual([
      { chain: shared, bytes: 98n * MIB },
    ]);
    expect(nodeGain(after(known, [inexact(4n * MIB)]), runtime)).toBe(2000n);
  });

  test("is the mean with the earlier value, and never negative", () => {
    const twice = after(aLedger(), [inexact(4n * MIB), inexact(8n * MIB)]);
    expect(leftOf(twice)).toEqual([{ chain: shared, bytes: 94n * MIB }]);
    expect(leftOf(after(aLedger(), [inexact(400n * MIB)]))).toEqual([{ chain: shared, bytes: 0n }]);
  });

  test("makes the next removal's estimate equal to the last gain, if the family's base is not an image", () => {
    const images = ["one", "two", "three"].map((name) => anImage(name, { sizeBytes: 55n * MIB }));
    const chains = images.map(({ id, sizeBytes }) => ({
      id,
      sizeBytes,
      chain: chainId(`own ${id}`),
    }));
    const parents = new Map<ChainId, ChainId | null>([
      [shared, null],
      ...chains.map(({ chain }): [ChainId, ChainId] => [chain, shared]),
    ]);
    const estimateWith = (learned?: PathSizes) =>
      new LayerForest(chains, parents, { ...(learned && { learned }) })
        .removals()
        .remove(images[0]!.id)?.estimateBytes;
    // By the number of layers alone, half of the image would be its own.
    expect(estimateWith()).toBe((55n * MIB) / 2n);
    expect(estimateWith(new Map([[shared, 50n * MIB]]))).toBe(5n * MIB);
  });
});
