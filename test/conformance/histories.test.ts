// Recorded histories of the kubelet, step by step through the code of the agent: first seen, last used, restarts, failed
// lists and removals; grace periods, minimum reclaim, the transition period.
import { expect, test } from "bun:test";

import { imageEffects, type ImageHistory } from "./image-history.ts";
import { pressureEffects, type PressureHistory } from "./pressure-history.ts";
import { readHistories } from "./read-vectors.ts";

const imageHistories = readHistories<ImageHistory>("image-histories");
const pressureHistories = readHistories<PressureHistory>("pressure-histories");

test("every history has steps", () => {
  const all = [...imageHistories, ...pressureHistories];
  expect(all.every(({ steps }) => steps.length > 0)).toBe(true);
});

test.each(imageHistories.map((history) => [history.name, history] as const))(
  "images, %s: each step does what the kubelet did",
  async (_, history) => {
    expect(await firstDifference(history, imageEffects)).toBeNull();
  },
);

test.each(pressureHistories.map((history) => [history.name, history] as const))(
  "disk pressure, %s: each step finds what the kubelet found",
  async (_, history) => {
    expect(await firstDifference(history, pressureEffects)).toBeNull();
  },
);

interface History<Step> {
  readonly name: string;
  readonly steps: readonly Step[];
}

/** Names the history, the step and both answers; `null` if all steps agree. */
async function firstDifference<
  Step extends { readonly expect: unknown },
  One extends History<Step>,
>(
  history: One & History<Step>,
  effects: (history: One) => Promise<readonly unknown[]>,
): Promise<string | null> {
  const ours = await effects(history);
  for (const [at, step] of history.steps.entries()) {
    if (Bun.deepEquals(ours[at], step.expect)) continue;
    const [wanted, got] = [JSON.stringify(step.expect), JSON.stringify(ours[at])];
    return `${history.name}, step ${at}: the kubelet ${wanted}, crigc ${got}`;
  }
  return null;
}
