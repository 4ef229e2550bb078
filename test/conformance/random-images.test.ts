// Random nodes against the kubelet's rules, written down here a second time: above all targets of zero and below.
import { expect, test } from "bun:test";

import * as fc from "fast-check";

import { instantFromMs, toRfc3339 } from "../../src/model/time.ts";
import { effectOf, type ImageEffect, type ImageVector } from "./image-vector.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const text = (ms: number): string => toRfc3339(instantFromMs(ms));
const hex = (index: number): string => `sha256:${index.toString(16).padStart(64, "0")}`;

interface Node {
  readonly capacity: number;
  readonly available: number;
  readonly high: number;
  readonly low: number;
  readonly minimumAgeMs: number;
  readonly maximumAgeMs: number;
  readonly ranForMs: number;
  /** Whether the disk shows what went for its age. */
  readonly isStatFresh: boolean;
  readonly images: readonly {
    readonly sizeBytes: number;
    readonly firstSeenAgoMs: number;
    readonly lastUsedAgoMs: number | null;
    readonly pinned: boolean;
    readonly fails: boolean;
  }[];
}

const age = fc.constantFrom(0, 1_000, 60_000, 60_001, 120_000, 3_600_000);
const node: fc.Arbitrary<Node> = fc
  .record({
    // Capacities that are no multiple of a hundred round the target to zero and below.
    capacity: fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: 2 ** 50 })),
    availablePermille: fc.integer({ min: 0, max: 1_010 }),
    high: fc.oneof(fc.integer({ min: 0, max: 100 }), fc.constantFrom(0, 99, 100)),
    below: fc.constantFrom(0, 0, 1, 1, 5, 100),
    minimumAgeMs: fc.constantFrom(0, 60_000, 120_000),
    maximumAgeMs: fc.constantFrom(0, 0, 120_001, 600_000),
    ranForMs: fc.constantFrom(0, 120_001, 120_002, 86_400_000),
    isStatFresh: fc.boolean(),
    images: fc.array(
      fc.record({
        sizeBytes: fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 2 ** 46 })),
        firstSeenAgoMs: age,
        lastUsedAgoMs: fc.option(age, { nil: null }),
        pinned: fc.integer({ min: 0, max: 9 }).map((it) => it === 0),
        fails: fc.integer({ min: 0, max: 9 }).map((it) => it === 0),
      }),
      { maxLength: 6 },
    ),
  })
  .map(({ availablePermille, below, ...rest }) => ({
    ...rest,
    available: Math.floor((rest.capacity * availablePermille) / 1000),
    low: Math.max(0, rest.high - below),
  }));

function vectorOf(it: Node): ImageVector {
  return {
    name: "random",
    operation: "image-gc",
    now: text(NOW_MS),
    agentStartedAt: text(NOW_MS - it.ranForMs),
    policy: {
      highThresholdPercent: it.high,
      lowThresholdPercent: it.low,
      minimumAgeMs: it.minimumAgeMs,
      maximumAgeMs: it.maximumAgeMs,
    },
    filesystem: { capacityBytes: it.capacity, availableBytes: it.available },
    isStatFresh: it.isStatFresh,
    images: it.images.map(({ sizeBytes, pinned, fails }, index) => ({
      id: hex(index),
      repoTags: [`registry.example/i${index}:1`],
      repoDigests: [],
      sizeBytes,
      pinned,
      removeFails: fails,
    })),
    containers: [],
    records: Object.fromEntries(
      it.images.map(({ firstSeenAgoMs, lastUsedAgoMs }, index) => [
        hex(index),
        {
          firstDetected: text(NOW_MS - firstSeenAgoMs),
          lastUsed: lastUsedAgoMs === null ? null : text(NOW_MS - lastUsedAgoMs),
        },
      ]),
    ),
    expect: kubeletOn(it),
  };
}

type Candidate = Node["images"][number] & { readonly id: string };

/** Older first; ties, which the kubelet leaves open, larger first and then by ID. */
function candidatesOf(it: Node): readonly Candidate[] {
  const lastUsed = ({ lastUsedAgoMs }: Candidate): number => lastUsedAgoMs ?? Infinity;
  return it.images
    .map((image, index) => ({ ...image, id: hex(index) }))
    .filter(({ pinned }) => !pinned)
    .toSorted((a, b) => {
      if (lastUsed(a) !== lastUsed(b)) return lastUsed(b) > lastUsed(a) ? 1 : -1;
      return (
        b.firstSeenAgoMs - a.firstSeenAgoMs || b.sizeBytes - a.sizeBytes || (a.id < b.id ? -1 : 1)
      );
    });
}

function kubeletOn(it: Node): ImageEffect {
  const attempts: string[] = [];
  const effect = (
    outcome: ImageEffect["outcome"],
    events: readonly string[] = [],
  ): ImageEffect => ({
    removeAttempts: attempts,
    outcome,
    events,
  });
  let candidates = candidatesOf(it);
  let freedForAge = 0;
  if (it.maximumAgeMs > 0 && it.ranForMs > it.maximumAgeMs) {
    const due = candidates.filter(
      ({ lastUsedAgoMs }) => lastUsedAgoMs === null || lastUsedAgoMs > it.maximumAgeMs,
    );
    attempts.push(...due.map(({ id }) => id));
    const removed = due.filter(({ fails }) => !fails);
    if (removed.length < due.length) return effect({ kind: "age-removal-errors" });
    freedForAge = removed.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    candidates = candidates.filter((candidate) => !due.includes(candidate));
  }
  const capacity = BigInt(it.capacity);
  const shown = BigInt(it.available) + BigInt(it.isStatFresh ? freedForAge : 0);
  const available = shown > capacity ? capacity : shown;
  if (100n - (100n * available) / capacity < BigInt(it.high)) return effect({ kind: "ok" });
  const wanted = (capacity * BigInt(100 - it.low)) / 100n - available;
  return spacePass({ it, candidates, wanted, attempts, effect });
}

function spacePass(of: {
  readonly it: Node;
  readonly candidates: readonly Candidate[];
  readonly wanted: bigint;
  readonly attempts: string[];
  readonly effect: (outcome: ImageEffect["outcome"], events?: readonly string[]) => ImageEffect;
}): ImageEffect {
  let freed = 0n;
  let failed = false;
  for (const { id, sizeBytes, fails, lastUsedAgoMs, firstSeenAgoMs } of of.candidates) {
    if (lastUsedAgoMs === 0 || firstSeenAgoMs < of.it.minimumAgeMs) continue;
    of.attempts.push(id);
    if (fails) {
      failed = true;
      continue;
    }
    freed += BigInt(sizeBytes);
    if (freed >= of.wanted) break;
  }
  const amounts = { wantedBytes: Number(of.wanted), freedBytes: Number(freed) };
  if (failed) return of.effect({ kind: "removal-errors", ...amounts });
  if (freed < of.wanted)
    return of.effect({ kind: "shortfall", ...amounts }, ["FreeDiskSpaceFailed"]);
  return of.effect({ kind: "ok" });
}

test("on random nodes a pass under --compat kubelet removes, counts and reports what the kubelet's rules say", async () => {
  let nothingWanted = 0;
  await fc.assert(
    fc.asyncProperty(node, async (it) => {
      const vector = vectorOf(it);
      const { outcome } = vector.expect;
      if (outcome.wantedBytes !== undefined && outcome.wantedBytes <= 0) nothingWanted += 1;
      expect(await effectOf(vector)).toEqual(vector.expect);
    }),
    { numRuns: 1_500 },
  );
  // Else the class that this is about was never met with.
  expect(nothingWanted).toBeGreaterThan(0);
}, 30_000);
