// Random lives of a node under simulated time: whatever happens, what should stay stays, and a full disk is relieved or explained.

import { expect, test } from "bun:test";

import type { Agent } from "../../src/agent/loops.ts";
import type { Event } from "../../src/model/pass.ts";
import { duration } from "../../src/model/time.ts";
import { defaultImageLimits, MIB } from "../support/build/values.ts";
import { Random, SEED } from "../support/random.ts";
import { aDisk, available, type SimDisk } from "./node.ts";
import { HOUR, MINUTE, SECOND, simLimits, Simulation } from "./simulation.ts";
import { Walk } from "./walk.ts";

const SEEDS = Number(process.env["CRIGC_SIM_SEEDS"] ?? 50);
/** Simulations stop here, however many were run by then; the least that must have been is below. */
const TIME_MS = Number(process.env["CRIGC_SIM_MS"] ?? 30_000);
const SEEDS_LEAST = Number(process.env["CRIGC_SIM_LEAST"] ?? 15);

const TOPOLOGIES: readonly (() => readonly SimDisk[])[] = [
  () => [aDisk()],
  () => [
    aDisk({ roles: ["imagefs", "containerfs"], device: "8:2" }),
    aDisk({ roles: ["nodefs"], path: "/var/lib/kubelet" }),
  ],
  () => [
    aDisk({ roles: ["imagefs"], device: "8:2" }),
    aDisk({ roles: ["nodefs", "containerfs"], path: "/var/lib/kubelet" }),
  ],
];

interface Spell {
  readonly beganNs: bigint;
  undisturbedNs: bigint;
}

/** What is watched from outside while a node lives. */
class Watcher {
  readonly #sim: Simulation;
  readonly faults: string[] = [];
  #condition: { readonly on: boolean; readonly sinceNs: bigint } | null = null;
  #agent: Agent | null = null;
  #spell: Spell | null = null;

  constructor(sim: Simulation) {
    this.#sim = sim;
  }

  /** Looks at the node, `stepMs` after the last time. */
  look(stepMs: number): void {
    this.#lookAtCondition();
    this.#lookAtPressure(stepMs);
  }

  /** Once an agent has reported it, the condition lasts for the transition period at least; the next one begins anew. */
  #lookAtCondition(): void {
    const { agent, clock } = this.#sim;
    if (agent !== this.#agent) this.#condition = null;
    this.#agent = agent;
    const on = agent.state().pressure?.condition ?? null;
    const nowNs = clock.monotonicNs();
    if (on === null) this.#condition = null;
    if (on === null || on === this.#condition?.on) return;
    const lasted = this.#condition === null ? null : nowNs - this.#condition.sinceNs;
    if (!on && lasted !== null && lasted < simLimits.pressure.transitionPeriod)
      this.faults.push(`disk pressure was reported for ${Number(lasted) / 1e9} s only`);
    this.#condition = { on, sinceNs: nowNs };
  }

  /** Pressure on the images' disk ends, or there is a report that names what fills the disk. */
  #lookAtPressure(stepMs: number): void {
    const sim = this.#sim;
    const { weather, clock, node } = sim;
    const nowNs = clock.monotonicNs();
    const disk = node.imageDisk();
    // A little more than the threshold: at the edge nothing has to happen.
    const full = available(node, disk) * 1000n < disk.capacity * 149n;
    if (!full) {
      this.#spell = null;
      return;
    }
    this.#spell ??= { beganNs: nowNs, undisturbedNs: 0n };
    const disturbed =
      !sim.isAlive() ||
      weather.runtimeIsAway ||
      weather.hold.kind === "held" ||
      weather.keep.problems.length > 0 ||
      node.uptimeNs() < 15n * 60_000_000_000n;
    if (!disturbed) this.#spell.undisturbedNs += BigInt(stepMs) * 1_000_000n;
    // A removal that is not answered in time takes two minutes: failures and headway by turns are slow to be told from each other.
    const patience = weather.tooLatePercent > 0 ? 40n : 20n;
    if (this.#spell.undisturbedNs < patience * 60_000_000_000n) return;
    const said = sim.record.events.filter((event) => isExplanation(event, weather));
    if (said.length === 0)
      this.faults.push(`the disk has been full for ${patience} min, and nobody was told`);
    this.#spell = { beganNs: nowNs, undisturbedNs: 0n };
  }
}

/** It names what fills the disk, or says that removals fail or free nothing. */
function isExplanation({ reason, message }: Event, weather: Simulation["weather"]): boolean {
  if (weather.tooLatePercent > 0 && reason === "ImageGCFailed") return true;
  const names = reason === "ImageGCFutile" || reason === "FreeDiskSpaceFailed";
  return names && / has images |frees no space/.test(message);
}

async function live(seed: number): Promise<Simulation> {
  const dice = new Random(seed);
  const sim = new Simulation({
    seed,
    disks: dice.pick(TOPOLOGIES)(),
    lateMs: dice.pick([0, 0, 500, 2_000]),
    weather: {
      latencyMs: dice.pick([0, 20, 600]),
      told: dice.pick(["exact", "none"]),
      refusedPercent: dice.pick([0, 0, 20]),
      tooLatePercent: dice.pick([0, 0, 0, 60]),
      keep: {
        rules: [{ pattern: "registry.example/image1", source: "--keep" }],
        problems: [],
      },
      limits: {
        ...simLimits,
        images: {
          ...defaultImageLimits,
          storeBudgetBytes: dice.pick([null, null, 30_000n * MIB]),
          maximumAge: dice.pick([duration(0n), duration(3_600_000_000_000n)]),
        },
      },
    },
  });
  const walk = new Walk(sim, {
    podMinutes: dice.pick([0.5, 2, 15]),
    shared: dice.pick([0, 0.5, 0.9]),
    writesMib: dice.pick([2_000, 20_000]),
    breaks: dice.chance(0.6),
  });
  const watcher = new Watcher(sim);
  walk.begin();
  sim.start();
  for (let passed = 0; passed < 2 * HOUR; passed += 10 * SECOND) {
    await sim.run(10 * SECOND);
    watcher.look(10 * SECOND);
  }
  walk.end();
  await sim.run(30 * MINUTE);
  const ended = await sim.stop();
  const faults = [
    ...sim.record.violations,
    ...watcher.faults,
    ...(ended ? [] : ["it did not end"]),
  ];
  if (faults.length > 0)
    throw new Error(`CRIGC_SIM_SEED=${seed}: ${faults.slice(0, 5).join("; ")}`);
  return sim;
}

test(`nodes live through ${SEEDS} random days from seed ${SEED}`, async () => {
  const startMs = performance.now();
  let removals = 0;
  let events = 0;
  let seeds = 0;
  for (; seeds < SEEDS && performance.now() - startMs < TIME_MS; seeds += 1) {
    const { record } = await live(SEED + seeds);
    removals += record.removals.length;
    events += record.events.length;
    // Two and a half hours: a flood would be one for each of the hundreds of passes.
    if (record.events.length > 120)
      throw new Error(`CRIGC_SIM_SEED=${SEED + seeds}: ${record.events.length} events`);
  }
  console.log(`simulated ${seeds} nodes from seed ${SEED}: ${removals} removals, ${events} events`);
  expect(seeds).toBeGreaterThanOrEqual(Math.min(SEEDS, SEEDS_LEAST));
  // Else nothing was tested.
  if (seeds >= 15) expect(removals).toBeGreaterThan(seeds);
}, 110_000);
