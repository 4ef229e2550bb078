// A runtime that answers wrongly, late, partly, twice or never, at random: nothing protected is removed, every removal is
// recorded, failures are said, and the agent makes progress as soon as the runtime does.

import { expect, test } from "bun:test";

import { defaultImageLimits } from "../support/build/values.ts";
import { Random, SEED } from "../support/random.ts";
import { aDisk, available } from "./node.ts";
import { HOUR, MINUTE, SECOND, simLimits, Simulation } from "./simulation.ts";
import { Walk } from "./walk.ts";

const SEEDS = Number(process.env["CRIGC_SIM_SEEDS"] ?? 40);
const TIME_MS = Number(process.env["CRIGC_SIM_MS"] ?? 30_000);
const SEEDS_LEAST = 8;

/** Half an hour of an honest runtime, an hour and a half of spells, and the time in which it has to get well again. */
async function live(seed: number): Promise<Simulation> {
  const dice = new Random(seed);
  const sim = new Simulation({
    seed,
    hostile: true,
    disks: [aDisk()],
    weather: {
      latencyMs: dice.pick([0, 20]),
      keep: {
        rules: [{ pattern: "registry.example/image1", source: "--keep" }],
        problems: [],
      },
      // With a budget of 0, every image that is not protected goes.
      limits: {
        ...simLimits,
        images: { ...defaultImageLimits, storeBudgetBytes: dice.pick([null, 0n, 0n]) },
      },
    },
  });
  const walk = new Walk(sim, {
    podMinutes: dice.pick([0.5, 2]),
    shared: dice.pick([0, 0.5]),
    writesMib: 20_000,
    breaks: false,
  });
  walk.begin();
  sim.start();
  await sim.run(30 * MINUTE);
  for (let passed = 0; passed < 1.5 * HOUR;) {
    sim.hostility?.begin();
    const lasts = dice.between(1, 15) * MINUTE;
    await sim.run(lasts);
    sim.hostility?.end();
    const calm = dice.pick([0, 10 * SECOND, 5 * MINUTE]);
    await sim.run(calm);
    passed += lasts + calm;
  }
  walk.end();
  const faults = await faultsOfRecovery(sim);
  if (!(await sim.stop())) faults.push("it did not end");
  faults.push(...faultsOfRecord(sim));
  if (faults.length > 0)
    throw new Error(`CRIGC_SIM_SEED=${seed}: ${faults.slice(0, 5).join("; ")}`);
  return sim;
}

/** Nothing that is protected was asked to be removed; each removal that was asked for is in the record of a pass, and each failure was said. */
function faultsOfRecord({ record }: Simulation): string[] {
  const recorded = record.passes.flatMap(({ images }) =>
    (images?.items ?? []).filter(({ result }) => result.kind !== "skipped"),
  );
  const faults = [...record.violations];
  if (recorded.length !== record.removals.length)
    faults.push(
      `${record.removals.length} removals were asked for, and ${recorded.length} recorded`,
    );
  for (const kind of ["image-gc", "container-gc"] as const) {
    // A pass that gave way to one under pressure did not fail.
    const failed = record.passes
      .filter((pass) => pass.kind === kind && pass.error?.includes("was given up") !== true)
      .map(({ error }) => error !== null);
    const twice = failed.some((one, at) => one && failed[at + 1] === true);
    const reason = kind === "image-gc" ? "ImageGCFailed" : "ContainerGCFailed";
    if (twice && !record.events.some((event) => event.reason === reason))
      faults.push(`two ${kind} passes failed in a row, and there is no ${reason}`);
  }
  return faults;
}

/** The runtime answers again: the passes end well, and a full disk is relieved, or what fills it is named. */
async function faultsOfRecovery(sim: Simulation): Promise<string[]> {
  const { node, record } = sim;
  const disk = node.imageDisk();
  // What hung is answered, and what waits for another try gets one.
  await sim.run(10 * MINUTE);
  const others = available(node, disk) - (disk.capacity * 12n) / 100n;
  if (others > 0n) disk.others += others;
  const passesBefore = record.passes.length;
  await sim.run(20 * MINUTE);
  const since = record.passes.slice(passesBefore);
  const faults: string[] = [];
  for (const kind of ["image-gc", "container-gc"] as const)
    if (!since.some((pass) => pass.kind === kind && pass.error === null))
      faults.push(`no ${kind} pass has ended well since the runtime answers`);
  const isFull = available(node, disk) * 1000n < disk.capacity * 149n;
  // Said once, until the disk changes.
  const isSaid = record.events.some(
    ({ reason, message }) =>
      ["ImageGCFutile", "FreeDiskSpaceFailed", "NothingFreed"].includes(reason) &&
      message.includes(" has images "),
  );
  if (isFull && !isSaid) faults.push("the disk is full since, and nobody was told why");
  return faults;
}

test(`nodes survive ${SEEDS} hostile runtimes from seed ${SEED}`, async () => {
  const startMs = performance.now();
  let removals = 0;
  let seeds = 0;
  const done = new Map<string, number>();
  for (; seeds < SEEDS && performance.now() - startMs < TIME_MS; seeds += 1) {
    const { record, hostility } = await live(SEED + seeds);
    removals += record.removals.length;
    for (const [fate, count] of hostility?.done ?? [])
      done.set(fate, (done.get(fate) ?? 0) + count);
  }
  console.log(
    `${seeds} hostile runtimes from seed ${SEED}: ${removals} removals; ${JSON.stringify(Object.fromEntries(done))}`,
  );
  expect(seeds).toBeGreaterThanOrEqual(Math.min(SEEDS, SEEDS_LEAST));
  // Else nothing was tested.
  expect(removals).toBeGreaterThan(seeds);
  expect(done.size).toBe(11);
}, 110_000);
