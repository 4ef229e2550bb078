// The replay of a trace against the agent on the same node.

import { expect, test } from "bun:test";

import type { ImageId } from "../../src/model/ids.ts";
import { replay } from "../../src/simulate/replay.ts";
import { aScenario, aTrace, HOUR, MINUTE, traced, usedAt } from "../simulate/build.ts";
import { MIB } from "../support/build/values.ts";
import { Random } from "../support/random.ts";
import { aDisk, aRelease, imageOf } from "./node.ts";
import { simLimits, Simulation } from "./simulation.ts";

/** Uses of images on a grid of 15 minutes, two changes never at one time. */
function scenario(seed: number, uses: number) {
  const random = new Random(seed);
  const images = Array.from({ length: 30 }, (_, at) => ({
    name: `image${at}`,
    mib: 600_000 + Math.floor(random.next() * 800_000),
  }));
  return {
    images,
    uses: Array.from({ length: uses }, (_, at) => ({
      // A few images are used much more often than the others.
      image: images[Math.floor(random.next() ** 2 * images.length)] ?? { name: "image0", mib: 1 },
      fromMs: HOUR + at * 30 * MINUTE,
      untilMs: HOUR + (at + 2 * Math.floor(random.next() * 4)) * 30 * MINUTE + 15 * MINUTE,
    })),
  };
}

/** So large that the agent does not look every half second whether a threshold was crossed. */
const CAPACITY = 10_000_000n * MIB;

/** What the agent removes of it, in order. */
async function lived({ uses }: ReturnType<typeof scenario>): Promise<readonly ImageId[]> {
  const sim = new Simulation({
    disks: [aDisk({ capacity: CAPACITY, inodes: 100_000_000n })],
    periods: { "image-cache": HOUR, "container-gc": 5 * MINUTE, pressure: 2 * MINUTE },
  });
  sim.start();
  const steps = uses.flatMap((use, index) => [
    { atMs: use.fromMs, index, use, begins: true },
    { atMs: use.untilMs, index, use, begins: false },
  ]);
  const sandboxes = new Map<number, ReturnType<typeof sim.node.addSandbox>>();
  let nowMs = 0;
  for (const { atMs, index, use, begins } of steps.toSorted((a, b) => a.atMs - b.atMs)) {
    await sim.run(atMs - nowMs);
    nowMs = atMs;
    if (begins) {
      const release = aRelease(use.image.name, use.image.mib);
      expect(sim.node.pull(release)).toBeTrue();
      const sandbox = sim.node.addSandbox(`pod${index}`, imageOf(release));
      sim.node.addContainer(sandbox, imageOf(release));
      sandboxes.set(index, sandbox);
      continue;
    }
    const sandbox = sandboxes.get(index);
    if (sandbox === undefined) throw new Error("a use ends after its begin");
    sim.node.endPod(sandbox);
    sim.node.pods.delete(sandbox.podUid);
  }
  await sim.run(HOUR);
  expect(sim.record.violations).toEqual([]);
  return sim.record.removals.map(({ id }) => id);
}

test.each([1, 2])(
  "the agent and the replay of the same uses remove the same images in the same order (seed %d)",
  async (seed) => {
    const given = scenario(seed, 36);
    const trace = aTrace({
      untilMs: (given.uses.at(-1)?.untilMs ?? 0) + 2 * HOUR,
      images: given.images.map(({ name, mib }) => traced(name, mib)),
      uses: given.uses.map(({ image, fromMs, untilMs }) => usedAt(image.name, fromMs, untilMs)),
    });
    const capacityBytes = CAPACITY;
    const { removed } = replay(aScenario(trace, { capacityBytes, limits: simLimits }));
    expect(removed.length).toBeGreaterThan(8);
    expect(await lived(given)).toEqual([...removed]);
  },
  60_000,
);
