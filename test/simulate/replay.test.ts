// Replays of small traces whose answer is known on paper.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import type { Limits } from "../../src/model/limits.ts";
import { hours } from "../../src/model/time.ts";
import { replay } from "../../src/simulate/replay.ts";
import { replayable } from "../../src/simulate/replayed-trace.ts";
import { aThreshold, simLimits } from "../sim/simulation.ts";
import { idOf, MIB } from "../support/build/values.ts";
import { aScenario, aTrace, HOUR, MINUTE, presentAt, traced, usedAt } from "./build.ts";

/** Four images of 25 MiB, one an hour, and the first two again: every pull from the fourth on fills the disk. */
const ROUND = aTrace({
  images: ["a", "b", "c", "d"].map((name) => traced(name, 25)),
  uses: ["a", "b", "c", "d", "a", "b"].map((name, hour) => usedAt(name, hour * HOUR)),
});

const imageLimits = (change: Partial<Limits["images"]>): Limits => ({
  ...simLimits,
  images: { ...simLimits.images, ...change },
  pressure: { ...simLimits.pressure, thresholds: [] },
});

const named = (...names: readonly string[]) => names.map(idOf);

describe("four images in turn on a disk for three", () => {
  test("the least recently used one goes each time, and is pulled again", () => {
    const { figures, removed } = replay(aScenario(ROUND));
    expect(removed).toEqual(named("a", "b", "c"));
    expect(figures).toEqual({
      uses: 6,
      coldStarts: 6,
      pulls: 6,
      pulledBytes: 150n * MIB,
      pullsAgain: 2,
      pulledAgainBytes: 50n * MIB,
      unfittedPulls: 0,
      removals: 3,
      removedBytes: 75n * MIB,
      passes: 3,
      capacityBytes: 100n * MIB,
      peakBytes: 100n * MIB,
      // An hour each of 25, 50 and 75 MiB, then three of 75, five minutes of each at 100.
      meanBytes: (38_125n * MIB) / 600n,
      spanMs: 6 * HOUR,
      over: [{ threshold: "85%", forMs: 15 * MINUTE }],
    });
  });

  test("with the future known, none is pulled again", () => {
    const { figures, removed } = replay(aScenario(ROUND, { order: "offline" }));
    expect(removed).toEqual(named("c"));
    expect(figures).toMatchObject({ pulls: 4, pullsAgain: 0, pulledAgainBytes: 0n });
  });

  test("a kubelet under pressure removes everything unused, crigc only as much as is needed", () => {
    const thresholds = [aThreshold("imagefs.available", 15)];
    const pressure = { ...simLimits.pressure, thresholds };
    const own = replay(aScenario(ROUND, { limits: { ...simLimits, pressure } }));
    expect(own.removed).toEqual(named("a", "b", "c"));
    const compat = { compat: "kubelet", accounting: "reported", whenFutile: "collect" } as const;
    const limits: Limits = { ...imageLimits(compat), pressure };
    const kubelet = replay(aScenario(ROUND, { limits }));
    // The fourth is in use; then there is room for all.
    expect(kubelet.removed).toEqual(named("a", "b", "c"));
    expect(kubelet.figures).toMatchObject({ passes: 1, pullsAgain: 2 });
  });
});

test("in the order frequent, a favourite stays until the aging term has outgrown it", () => {
  // Four uses of a favourite, then one of each other image: one an hour on a disk for three.
  const others = ["b", "c", "d", "e", "f", "g", "h", "i", "j"];
  const uses = ["a", "a", "a", "a", ...others].map((name, hour) => usedAt(name, hour * HOUR));
  const images = ["a", ...others].map((name) => traced(name, 25));
  const trace = aTrace({ images, uses, untilMs: 14 * HOUR });
  const removed = (order: "recent" | "frequent") =>
    replay(aScenario(trace, { limits: imageLimits({ order }) })).removed;
  // Its key is 1 + 4. That of b, c and d is 1 + 1; of e, f and g, with their term, 2 + 2; of those after them 2 + 4.
  expect(removed("frequent")).toEqual(named("b", "c", "d", "e", "f", "g", "a"));
  expect(removed("recent")).toEqual(named("a", "b", "c", "d", "e", "f", "g"));
});

describe("what counts", () => {
  test("what is on the node when the trace begins is not pulled, nor what came for a container twice", () => {
    const trace = aTrace({
      images: [traced("there", 10), traced("staged", 10), traced("used", 10)],
      present: [presentAt("there", 0), presentAt("staged", HOUR), presentAt("used", 2 * HOUR)],
      uses: [usedAt("there", HOUR), usedAt("used", 2 * HOUR + 5 * MINUTE)],
    });
    const { figures } = replay(aScenario(trace));
    expect(figures).toMatchObject({ uses: 2, coldStarts: 1, pulls: 2, pulledBytes: 20n * MIB });
  });

  test("an image that was there before and after a gap of the record did not come then", () => {
    const interval = (name: string, fromHour: number, untilHour: number | null) => ({
      ...presentAt(name, fromHour * HOUR),
      untilMs: untilHour === null ? null : untilHour * HOUR,
    });
    const images = [traced("a", 10), traced("b", 10), traced("c", 10)];
    const present = [
      interval("a", 0, 1),
      interval("b", 0, 1),
      interval("a", 2, 5),
      interval("b", 2, 3),
      interval("c", 2, null),
      interval("b", 4, 5),
    ];
    const { figures } = replay(
      aScenario(aTrace({ images, present }), { flushEveryMs: 1.5 * HOUR }),
    );
    // The first flush takes both; c comes during the gap, b once more at four.
    expect(figures).toMatchObject({ pulls: 2, pullsAgain: 1 });
  });

  test("what is in use stays, and goes once it is not", () => {
    const trace = aTrace({
      images: [traced("service", 50), traced("job", 45)],
      uses: [usedAt("service", 0, 3 * HOUR), usedAt("job", HOUR, 4 * HOUR)],
    });
    const { removed, figures } = replay(aScenario(trace));
    expect(removed).toEqual(named("service"));
    // From the pull until the pass after the use ended.
    expect(figures.over).toEqual([{ threshold: "85%", forMs: 2 * HOUR + 5 * MINUTE }]);
  });

  test("a pull that does not fit waits for the pass that makes room, or for the disk to get it", () => {
    const trace = aTrace({
      images: [traced("a", 80), traced("b", 60), traced("huge", 200)],
      uses: [usedAt("a", 0), usedAt("huge", HOUR, 2 * HOUR), usedAt("b", 3 * HOUR)],
    });
    const { figures, removed } = replay(aScenario(trace));
    expect(removed).toEqual(named("a"));
    expect(figures).toMatchObject({ unfittedPulls: 1, coldStarts: 3, pulls: 2 });
  });
});

describe("time", () => {
  test("images over the maximum age are removed at any disk usage", () => {
    const trace = aTrace({ images: [traced("a", 10)], uses: [usedAt("a", 0, HOUR)] });
    const { removed, figures } = replay(
      aScenario(trace, { limits: imageLimits({ maximumAge: hours(2) }) }),
    );
    expect(removed).toEqual(named("a"));
    // It was last seen in use five minutes after its end at the latest.
    expect(Number(figures.meanBytes) / Number(10n * MIB)).toBeWithin(0.5, 0.54);
  });

  test("an agent that forgets at its restarts removes nothing for its minimum age", () => {
    const kubelet = imageLimits({
      compat: "kubelet",
      accounting: "reported",
      whenFutile: "collect",
      minimumAge: hours(2),
    });
    const scenario = aScenario(ROUND, { limits: kubelet });
    expect(replay(scenario).removed.length).toBeGreaterThan(0);
    expect(replay({ ...scenario, restartEveryMs: HOUR }).removed).toEqual([]);
  });
});

test("the same trace gives the same figures in any order of its lines", () => {
  const use = fc.record({
    image: fc.integer({ min: 0, max: 9 }),
    at: fc.integer({ min: 0, max: 360 }),
    lasts: fc.integer({ min: 0, max: 90 }),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(use, { selector: ({ at }) => at, minLength: 1, maxLength: 40 }),
      (all) => {
        const images = Array.from({ length: 10 }, (_, at) => traced(`i${at}`, 10 + at));
        const uses = all.map(({ image, at, lasts }) =>
          usedAt(`i${image}`, at * MINUTE, (at + lasts) * MINUTE),
        );
        const untilMs = 8 * HOUR;
        const scene = aScenario(aTrace({ untilMs, images, uses }));
        const trace = replayable(
          aTrace({ untilMs, images: images.toReversed(), uses: uses.toReversed() }),
        );
        const first = replay(scene);
        expect(replay(scene)).toEqual(first);
        expect(replay({ ...scene, trace })).toEqual(first);
        expect(first.figures.pulledBytes - first.figures.removedBytes).toBeGreaterThanOrEqual(0n);
      },
    ),
    { numRuns: 50 },
  );
});

test("a layer is pulled and stored once, even if images list it several times with different sizes", () => {
  const shared = (mib: number) => ({ id: "shared", sizeBytes: BigInt(mib) * MIB });
  const trace = aTrace({
    images: [
      traced("a", 20, [shared(10), shared(10)]),
      traced("b", 40, [shared(40)]),
      traced("c", 90),
    ],
    uses: [usedAt("a", 0), usedAt("b", HOUR), usedAt("c", 2 * HOUR)],
  });
  expect(replayable(trace).allBytes).toBe(130n * MIB);
  const { figures } = replay(aScenario(trace, { flushEveryMs: 5 * HOUR }));
  const [pulledBytes, removedBytes] = [130n * MIB, 130n * MIB];
  expect(figures).toMatchObject({ pulledBytes, removedBytes, removals: 3 });
});

test("what lies outside the time of the trace is not replayed", () => {
  const trace = aTrace({
    fromMs: HOUR,
    images: ["a", "b"].map((name) => traced(name, 10)),
    present: [{ ...presentAt("a", 0), untilMs: MINUTE }, presentAt("b", 9 * HOUR)],
    uses: [usedAt("a", 0, MINUTE), usedAt("b", 8 * HOUR)],
  });
  const { figures } = replay(aScenario(trace));
  expect(figures).toMatchObject({ uses: 0, pulls: 0, peakBytes: 0n, spanMs: 5 * HOUR });
});

test("many uses of an image that never fits replay in no more than their number", () => {
  const uses = Array.from({ length: 20_000 }, (_, at) => ({
    ...usedAt("huge", at * 1000),
    untilMs: null,
  }));
  const { figures } = replay(aScenario(aTrace({ images: [traced("huge", 200)], uses })));
  expect(figures).toMatchObject({ coldStarts: 20_000, unfittedPulls: 1, pulls: 0 });
}, 3000);
