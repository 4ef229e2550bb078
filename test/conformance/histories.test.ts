// Recorded histories of the kubelet, step by step through the code of the agent: first seen, last used, restarts, failed
// lists and removals; grace periods, minimum reclaim, the transition period.
import { expect, test } from "bun:test";

import { imageEffects, type ImageHistory } from "./image-history.ts";
import { pressureEffects, type PressureHistory } from "./pressure-history.ts";
import { readVectors } from "./read-vectors.ts";

const imageHistories = readVectors<ImageHistory>("image-histories");
const pressureHistories = readVectors<PressureHistory>("pressure-histories");

test("every history has steps", () => {
  const all = [...imageHistories, ...pressureHistories];
  expect(all.every(({ steps }) => steps.length > 0)).toBe(true);
});

test.each(imageHistories.map((history) => [history.name, history] as const))(
  "images, %s: each step does what the kubelet did",
  async (_, history) => {
    expect(await imageEffects(history)).toEqual(history.steps.map((step) => step.expect));
  },
);

test.each(pressureHistories.map((history) => [history.name, history] as const))(
  "disk pressure, %s: each step finds what the kubelet found",
  async (_, history) => {
    expect(await pressureEffects(history)).toEqual(history.steps.map((step) => step.expect));
  },
);
