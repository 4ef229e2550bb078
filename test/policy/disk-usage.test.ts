import { describe, expect, test } from "bun:test";

import type { KeptImage } from "../../src/model/plan.ts";
import type { ImageKeepReason } from "../../src/model/reason.ts";
import type { Image } from "../../src/model/snapshot.ts";
import { hours, type Instant, instant } from "../../src/model/time.ts";
import { imageUsage, type ImageUsageFacts } from "../../src/policy/disk.ts";
import { Layers } from "../../src/policy/layers.ts";
import { layersOf } from "../support/build/layers.ts";
import { aCandidate, anImage, aRecord, MIB, NOW } from "../support/build/values.ts";

const NO_LAYERS = new Layers([], new Map());

const kept = (
  image: Image,
  reason: ImageKeepReason = { kind: "pinned" },
  lastUsedAt: Instant | null = null,
): KeptImage => ({ image, record: aRecord({ lastUsedAt }), reason, tried: [] });

/** Of kept images, unless said otherwise, whose bytes are no more than the disk has in use. */
const usageOf = (images: readonly KeptImage[], change: Partial<ImageUsageFacts> = {}) =>
  imageUsage({
    plan: { candidates: [], kept: images },
    layers: NO_LAYERS,
    inUseBytes: 1n << 60n,
    ...change,
  });

describe("disk usage of images", () => {
  test("is grouped by decision: images kept only by a missing trigger, a block or a change meanwhile count as removable", () => {
    const all = [
      kept(anImage("idle"), { kind: "no-trigger" }),
      kept(anImage("held"), { kind: "blocked", block: "on-hold" }),
      kept(anImage("moved"), { kind: "changed", what: "its tags changed" }),
      kept(anImage("stays")),
    ];
    const usage = usageOf([], { plan: { candidates: [aCandidate("goes")], kept: all } });
    expect(usage.byState.map(({ name, images }) => [name, images])).toEqual([
      ["removable", 4],
      ["pinned", 1],
    ]);
    expect([usage.total, ...usage.byState].map(({ removable }) => removable)).toEqual([4, 4, 0]);
  });

  test("is split into unique and shared bytes", () => {
    const base = anImage("base", { sizeBytes: 20n * MIB });
    const app = anImage("app", { sizeBytes: 30n * MIB });
    const usage = usageOf([kept(base), kept(app)], { layers: layersOf([base, "b"], [app, "b/a"]) });
    const sharedBytes = 20n * MIB;
    expect(usage.byRepository).toMatchObject([
      { name: "registry.example/app", uniqueBytes: 10n * MIB, sharedBytes },
      { name: "registry.example/base", uniqueBytes: 0n, sharedBytes },
    ]);
    // All together share nothing with others.
    expect(usage.total.sharedBytes).toBe(0n);
  });

  test("has the last use of its most recently used image, or none", () => {
    const [early, late] = [instant(NOW - hours(9)), instant(NOW - hours(2))];
    const lastUse = (...uses: readonly (Instant | null)[]) =>
      usageOf(uses.map((at, index) => kept(anImage(`${index}`), undefined, at))).total.lastUsedAt;
    expect(lastUse(early, late, null)).toBe(late);
    expect(lastUse(null, late, early)).toBe(late);
    expect(lastUse(null, null)).toBeNull();
  });
});
