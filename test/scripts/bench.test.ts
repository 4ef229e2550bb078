// A figure is missed only by more than chance can explain.

import { describe, expect, test } from "bun:test";

import { type Figure, judge } from "../../scripts/bench-parts/figures.ts";
import type { Idle } from "../../scripts/bench-parts/idle.ts";
import { measureRuns, median, type Runs, spread } from "../../scripts/bench-parts/runs.ts";

const steady = (wallMs: number): Runs => runs(Array.from({ length: 21 }, () => wallMs));
const runs = (wallMs: readonly number[]): Runs => ({ wallMs, processorMs: wallMs });

const idle: Idle = {
  seconds: 60,
  residentBytes: 70e6,
  proportionalBytes: 65e6,
  anonymousBytes: 26e6,
  processorMsPerMinute: 100,
};

const missed = (of: { plan?: Runs; idle?: Partial<Idle> }): readonly Figure["name"][] =>
  judge({
    floor: steady(50),
    plan: of.plan ?? steady(80),
    firstFloor: steady(50),
    firstPlan: steady(80),
    idle: { ...idle, ...of.idle },
  })
    .filter((figure) => figure.missed)
    .map(({ name }) => name);

describe("the figures to reach", () => {
  test("are met if each is met exactly", () => {
    expect(missed({})).toEqual([]);
  });

  test("are missed by a plan that is steadily slower", () => {
    expect(missed({ plan: steady(80.1) })).toEqual([
      "crigc plan with a ledger, processor time beside its calls alone",
    ]);
  });

  test("are not missed by a median within the noise", () => {
    const shaken = Array.from({ length: 21 }, (_, index) => 66 + index * 1.6);
    expect(median(shaken)).toBe(82);
    expect(missed({ plan: runs(shaken) })).toEqual([]);
    expect(missed({ plan: runs(shaken.map((ms) => ms + 20)) })).toHaveLength(1);
  });

  test("are missed by an agent that uses one byte more", () => {
    expect(missed({ idle: { residentBytes: 70e6 + 1 } })).toEqual(["idle agent, resident"]);
    expect(missed({ idle: { anonymousBytes: 26e6 + 1 } })).toEqual(["idle agent, anonymous"]);
  });
});

describe("a series of measurements", () => {
  test.each([
    [[3, 1, 2], 2],
    [[4, 1, 3, 2], 2.5],
    [[7], 7],
  ])("%j has the median %d", (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  test("has the distance between its quarters as spread", () => {
    expect(spread([5, 1, 4, 2, 3])).toBe(2);
    expect(spread([1, 1, 1])).toBe(0);
  });

  test("is refused if a command fails", async () => {
    const failing = measureRuns({ only: ["sh", "-c", "echo broken >&2; exit 3"] }, 1);
    const thrown: unknown = await failing.catch((error: unknown) => error);
    expect(String(thrown)).toContain("ended with 3: broken");
  });
});
