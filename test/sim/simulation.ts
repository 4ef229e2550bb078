// One simulated node with an agent on it, which can be stopped, killed and started again; and the judge of what it does.

import { Agent, type AgentConfig } from "../../src/agent/loops.ts";
import type { Engine } from "../../src/gc/ports.ts";
import type { ImageId } from "../../src/model/ids.ts";
import type { Limits, Signal, Threshold } from "../../src/model/limits.ts";
import type { Pass, PassKind } from "../../src/model/pass.ts";
import { duration } from "../../src/model/time.ts";
import { compileKeepRules, matchKeepRules } from "../../src/policy/keep/keep.ts";
import { defaultConfig } from "../support/build/values.ts";
import { Random } from "../support/random.ts";
import { SimClock } from "./clock.ts";
import { simEngine, SimRecord, type Weather } from "./engine.ts";
import { Hostility } from "./hostility.ts";
import { aDisk, aRelease, available, inodesFree, type SimDisk, SimNode } from "./node.ts";

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

export const aThreshold = (
  signal: Signal,
  percent: number,
  change: Partial<Threshold> = {},
): Threshold => ({
  signal,
  amount: { kind: "fraction", value: percent / 100 },
  grace: duration(0n),
  minimumReclaim: null,
  ...change,
});

/** The defaults of the flag table. */
export const simLimits: Limits = defaultConfig.limits;

/** The defaults of the flag table, but pressure is looked at less often, so that a day is simulated in seconds. */
export const simPeriods: AgentConfig["periods"] = {
  ...defaultConfig.periods,
  pressure: 10 * SECOND,
};

/** No loop but the one of pressure, after the first run of each. */
export const ONLY_PRESSURE: Partial<AgentConfig["periods"]> = {
  "image-cache": 1_000 * HOUR,
  "image-detection": 1_000 * HOUR,
  "image-gc": 1_000 * HOUR,
  "container-gc": 1_000 * HOUR,
};

/** The default limits with these thresholds. */
export const withThresholds = (...thresholds: readonly Threshold[]): Limits => ({
  ...simLimits,
  pressure: { ...simLimits.pressure, thresholds },
});

export interface SimOptions {
  readonly seed?: number;
  readonly disks?: readonly SimDisk[];
  readonly lateMs?: number;
  readonly weather?: Partial<Weather>;
  readonly periods?: Partial<AgentConfig["periods"]>;
  /** Puts other parts into the engine of each agent that starts. */
  readonly refit?: (engine: Engine, sim: Simulation) => Engine;
  /** The runtime lies in spells: what depends on its word for sizes is not judged. */
  readonly hostile?: true;
}

export class Simulation {
  readonly clock = new SimClock();
  readonly random: Random;
  readonly node: SimNode;
  readonly record: SimRecord;
  readonly weather: Weather;
  readonly hostility: Hostility | null;
  readonly #periods: AgentConfig["periods"];
  readonly #refit: (engine: Engine, sim: Simulation) => Engine;
  #agent: Agent | null = null;
  #life: { alive: boolean; readonly stop: AbortController; ended: boolean } | null = null;

  constructor(options: SimOptions = {}) {
    this.random = new Random(options.seed ?? 1);
    this.node = new SimNode({
      clock: this.clock,
      disks: options.disks ?? [aDisk()],
      lateMs: options.lateMs ?? 0,
    });
    this.record = new SimRecord(this.node.fake);
    const sky = {
      runtimeIsAway: false,
      latencyMs: 0,
      refusedPercent: 0,
      tooLatePercent: 0,
      removalsHang: false,
      layersHang: false,
      limits: simLimits,
      podDirectories: [],
      told: "exact" as const,
    };
    this.weather = Object.assign(this.node.fake.world, sky, options.weather);
    this.hostility = options.hostile === true ? new Hostility(this.clock, this.random) : null;
    this.#periods = { ...simPeriods, ...options.periods };
    this.#refit = options.refit ?? ((engine) => engine);
  }

  get agent(): Agent {
    if (this.#agent === null) throw new Error("no agent was started");
    return this.#agent;
  }

  /** There is one agent at a time: whoever is left of an earlier one is gone. */
  start(): void {
    this.kill();
    const life = { alive: true, stop: new AbortController(), ended: false };
    const engine = simEngine({
      node: this.node,
      weather: this.weather,
      record: this.record,
      random: this.random,
      isAlive: () => life.alive,
      judge: (id) => this.#faultOf(id),
      hostility: this.hostility,
    });
    const config = { periods: this.#periods, values: defaultConfig.values };
    this.#agent = new Agent(this.#refit(engine, this), config);
    this.#life = life;
    void this.#agent.run(life.stop.signal).then(() => {
      life.ended = true;
    });
  }

  /** SIGKILL: whatever it waits for is never answered. */
  kill(): void {
    if (this.#life !== null) this.#life.alive = false;
  }

  /** Whether a process of the agent is there. */
  isAlive(): boolean {
    return this.#life?.alive ?? false;
  }

  /** SIGTERM; says whether it has ended after a removal's deadline at the latest. */
  async stop(): Promise<boolean> {
    this.#life?.stop.abort();
    await this.clock.run(5 * MINUTE);
    return this.#life?.ended ?? true;
  }

  async run(ms: number): Promise<void> {
    await this.clock.run(ms);
  }

  /** What is free on the disk of images, in percent. */
  freePercent(disk: SimDisk = this.node.imageDisk()): number {
    return Number((10_000n * available(this.node, disk)) / disk.capacity) / 100;
  }

  /** Others write or delete until so much is free. */
  fill(percentFree: number, disk: SimDisk = this.node.imageDisk()): void {
    const target = (disk.capacity * BigInt(Math.round(percentFree * 100))) / 10_000n;
    disk.others += available(this.node, disk) - target;
  }

  /** Of these passes, in order. */
  passes(kind: PassKind): readonly Pass[] {
    return this.record.passes.filter((pass) => pass.kind === kind);
  }

  /** A container that was being created at the last look, while the pass cannot have waited for it long enough yet. */
  #creatingOn(id: ImageId): string | null {
    const { node, record, clock } = this;
    const patience = record.kind === "pressure" ? 5_000_000_000n : 150_000_000_000n;
    if (clock.monotonicNs() - record.passStartedNs >= patience) return null;
    // A pass under pressure may have waited for it before.
    if (record.kind === "pressure" && record.removals.length > 0) return null;
    const creating = record.listedSandboxes.find((sandbox) => {
      const directory = record.directories.find(({ uid }) => uid === sandbox.podUid);
      const [file] = directory?.files ?? [];
      return (
        sandbox.state === "ready" &&
        node.wanted.get(sandbox.id) === id &&
        file !== undefined &&
        node.wall() - file.bornAt < 150_000_000_000n &&
        file.bornAt > sandbox.createdAt &&
        file.bornAt <= node.wall() &&
        !record.listed.some(({ sandboxId }) => sandboxId === sandbox.id)
      );
    });
    return creating?.id ?? null;
  }

  /** Judged on the truth, but for containers: there it counts what the runtime said last. */
  #faultOf(id: ImageId): string | null {
    const { node, record, weather } = this;
    if (this.hostility === null && !isNeeded(this, record.kind)) record.surplus += 1;
    // One more than the target needed is what nobody can avoid; one not answered in time counts with the next one, and where
    // calls outlast the delay of space, it cannot always be told that there is one.
    const isHidden = node.lateMs > 0 && weather.latencyMs > node.lateMs;
    if (record.surplus > (weather.tooLatePercent > 0 || isHidden ? 2 : 1))
      return `a ${record.kind} pass had removed enough ${record.surplus - 1} images before`;
    const found = node.images.get(id);
    const user =
      record.listed.find(({ imageRef }) => imageRef === id) ??
      // A list that lacks it does not mean that it is gone: it was in the ledger, and the runtime can be asked.
      weather.containers.find(
        (container) => container.imageRef === id && record.remembered.has(container.id),
      );
    if (user !== undefined) return `${user.id} uses it, which the runtime had named`;
    const creating = this.#creatingOn(id);
    if (creating !== null) return `a container of it is being created in ${creating}`;
    if (weather.hold.kind === "held") return "collection is on hold";
    // They are read once in a pass.
    if ((record.keepRead?.problems ?? []).length > 0) return "the keep rules are invalid";
    if (weather.bootId !== "boot-1" && node.uptimeNs() < weather.limits.ledger.bootGrace)
      return "the machine has only just booted";
    if (found === undefined) return null;
    if (found.release.pinned) return "it is pinned";
    const match = matchKeepRules(compileKeepRules(weather.keep.rules), found.image);
    if (match !== null) return `the rule ${match.rule.pattern} keeps it`;
    const ageNs = this.clock.monotonicNs() - found.cameNs;
    // One that went in a call that failed, and was pulled again, never seemed to go.
    if (this.hostility !== null && node.removedOnce.has(id)) return null;
    if (ageNs < weather.limits.images.minimumAge) return `it is ${Number(ageNs) / 1e9} s old`;
    return null;
  }
}

/** A node with so many images of 1000 MiB on a disk of 100,000 MiB, observed for ten minutes. */
export async function aNodeWith(images: number, options: SimOptions = {}): Promise<Simulation> {
  const sim = new Simulation(options);
  for (let at = 0; at < images; at += 1) sim.node.pull(aRelease(`image${at}`, 1_000));
  sim.start();
  await sim.run(10 * MINUTE);
  return sim;
}

/** By the targets that a pass of the kind can have with the thresholds that simulations use. */
function isNeeded(sim: Simulation, kind: PassKind | null): boolean {
  const { node, weather } = sim;
  const { maximumAge, storeBudgetBytes } = weather.limits.images;
  const disk = node.imageDisk();
  const pressure = kind === "pressure";
  const free = freeShare(sim, disk);
  // A fraction is a float32, as with the kubelet: a threshold is a little more than its percentage.
  if (free.bytes < (pressure ? 15_001n : 20_001n)) return true;
  if (pressure) return free.inodes < 5_001n;
  if (maximumAge > 0n) return true;
  if (storeBudgetBytes === null) return false;
  // The budget counts the sizes that the runtime lists; here it reports no layers.
  const listed = weather.images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
  return listed > storeBudgetBytes;
}

/** In thousandths of a percent. */
function freeShare({ node }: Simulation, disk: SimDisk): { bytes: bigint; inodes: bigint } {
  return {
    bytes: (100_000n * available(node, disk)) / disk.capacity,
    inodes: (100_000n * inodesFree(node, disk)) / disk.inodes,
  };
}
