// Random lives of a node, one process after another, against what the contract says of first seen, last used and ages.
import { expect, test } from "bun:test";
import { cpSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";

import type { Engine } from "../../src/gc/ports.ts";
import { volatileMemory } from "../../src/gc/ports.ts";
import { detect, prepare, seeListed } from "../../src/gc/prepare.ts";
import type { Ledger } from "../../src/model/ledger.ts";
import { duration, fromRfc3339, hours, instant, minutes, seconds } from "../../src/model/time.ts";
import { Recorder } from "../../src/state/recorder.ts";
import { State } from "../../src/state/state.ts";
import { aContainer, anImage, idOf, withLimits } from "../support/build/values.ts";
import { fakeEngine, runFakePass } from "../support/fake-engine.ts";
import { Random, SEED } from "../support/random.ts";
import { scratch } from "../support/scratch.ts";

const HOME = scratch();
const LIVES = Number(process.env["CRIGC_LIVES"] ?? 300);
const STEPS = 40;
const WORDS = ["a", "b", "c", "d"];
const DAY = hours(24);

/** What the contract says of an image; times are sums of uptime. */
interface Known {
  readonly name: string;
  readonly firstSeen: bigint;
  readonly firstSeenAt: bigint;
  lastUsed: bigint | null;
  /** When its minimum age began anew. */
  restarted: bigint | null;
}

/** What one process knows, and leaves to the next. */
interface Memory {
  images: Map<string, Known>;
  /** The last look: the sum of uptime, the uptime and the boot; `null`: none yet. */
  look: { readonly time: bigint; readonly uptime: bigint; readonly boot: number } | null;
  isRestartDue: boolean;
  restarted: bigint | null;
}

interface Clocks {
  wall: bigint;
  uptime: bigint;
  boot: number;
}

function timeOf({ look }: Memory, { uptime, boot }: Clocks): bigint {
  if (look === null) return 0n;
  const gap = boot === look.boot ? uptime - look.uptime : uptime;
  return look.time + (gap < DAY ? gap : DAY);
}

/** A list tells which images are there, and nothing else. */
function list(memory: Memory, clocks: Clocks, listed: ReadonlyMap<string, string>): void {
  const now = timeOf(memory, clocks);
  for (const word of memory.images.keys()) if (!listed.has(word)) memory.images.delete(word);
  for (const [word, name] of listed)
    if (!memory.images.has(word))
      memory.images.set(word, {
        name,
        firstSeen: now,
        firstSeenAt: clocks.wall,
        lastUsed: null,
        restarted: null,
      });
}

function observe(
  memory: Memory,
  clocks: Clocks,
  node: { readonly listed: ReadonlyMap<string, string>; readonly used: ReadonlySet<string> },
): void {
  const now = timeOf(memory, clocks);
  list(memory, clocks, node.listed);
  for (const [word, known] of memory.images) {
    const name = node.listed.get(word) ?? "";
    const restarted = name === known.name ? known.restarted : now;
    const lastUsed = node.used.has(word) ? now : known.lastUsed;
    memory.images.set(word, { ...known, name, restarted, lastUsed });
  }
  memory.look = { time: now, uptime: clocks.uptime, boot: clocks.boot };
  if (memory.isRestartDue) memory.restarted = now;
  memory.isRestartDue = false;
}

/** As in the ledger. */
const shown = ({ images, look: last, isRestartDue, restarted }: Memory) => ({
  images: new Map(
    Array.from(images, ([word, known]) => [
      String(idOf(word)),
      [known.firstSeen, known.firstSeenAt, known.lastUsed, known.restarted],
    ]),
  ),
  time: last?.time ?? 0n,
  isRestartDue,
  restarted,
});

const shownOf = (ledger: Ledger): ReturnType<typeof shown> => ({
  images: new Map(
    Array.from(ledger.images, ([id, record]) => [
      String(id),
      [
        record.firstSeenUptime,
        record.firstSeenAt,
        record.lastUsedUptime,
        record.ageRestartedUptime,
      ],
    ]),
  ),
  time: ledger.totalUptime,
  isRestartDue: ledger.ageRestartDue,
  restarted: ledger.ageRestartedUptime,
});

interface Process {
  readonly state: State;
  readonly recorder: Recorder;
  readonly engine: Engine;
}

class Life {
  readonly #random: Random;
  readonly #directory = join(HOME, "life");
  readonly #fake = fakeEngine();
  readonly #minimumAge: bigint;
  #memory: Memory = { images: new Map(), look: null, isRestartDue: false, restarted: null };
  /** What the disk has. */
  #saved = structuredClone(this.#memory);
  #process: Process | null = null;
  #boot = 1;
  removed = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#minimumAge = random.pick([minutes(2), minutes(90)]);
    const { world } = this.#fake;
    world.limits = withLimits({ minimumAge: duration(this.#minimumAge) });
  }

  async run(): Promise<void> {
    for (let step = 0; step < STEPS; step += 1) {
      this.#happen();
      if (this.#process === null) await this.#open();
      else await this.#act(this.#process);
      if (this.#process === null) continue;
      expect(shownOf(this.#process.state.current())).toEqual(shown(this.#memory));
    }
    await this.#process?.state.close(10_000);
    rmSync(HOME, { recursive: true });
  }

  get #clocks(): Clocks {
    const { wall, uptime } = this.#fake.world;
    return { wall, uptime, boot: this.#boot };
  }

  get #node() {
    const { images, containers } = this.#fake.world;
    const wordOf = new Map(WORDS.map((word) => [String(idOf(word)), word]));
    return {
      listed: new Map(
        images.map(({ id, repoTags }) => [wordOf.get(id) ?? "", repoTags.join("\n")]),
      ),
      used: new Set(
        containers.flatMap(({ imageId }) => {
          const isListed = images.some(({ id }) => id === imageId);
          return isListed ? [wordOf.get(imageId) ?? ""] : [];
        }),
      ),
    };
  }

  /** Time passes, the clock jumps, images and containers come and go. */
  #happen(): void {
    const random = this.#random;
    const { world } = this.#fake;
    const passed = random.pick([0n, seconds(20), minutes(3), minutes(70), hours(7), hours(80)]);
    world.uptime += passed;
    world.wall = instant(world.wall + passed);
    if (random.chance(0.1))
      world.wall = random.pick(
        ["1970-01-01T00:00:10Z", "2026-01-01T00:00:00Z", "2099-12-31T00:00:00Z"].flatMap(
          (text) => fromRfc3339(text) ?? [],
        ),
      );
    const word = random.pick(WORDS);
    const others = world.images.filter(({ id }) => id !== idOf(word));
    const [isListed, isUsed] = [others.length < world.images.length, random.chance(0.4)];
    if (random.chance(0.3)) world.images = others;
    else if (!isListed || random.chance(0.1)) {
      const repoTags = [`registry.example/${word}:v${random.between(1, 2)}`];
      world.images = [...others, anImage(word, { repoTags })];
    }
    const container = aContainer(word, { imageId: idOf(word), imageName: idOf(word) });
    const running = world.containers.filter(({ id }) => id !== container.id);
    const isThere = world.images.some(({ id }) => id === container.imageId);
    world.containers = isUsed && isThere ? [...running, container] : running;
    // No image goes from under its container.
    const listed = new Set<string>(world.images.map(({ id }) => id));
    world.containers = world.containers.filter(({ imageId }) => listed.has(imageId));
  }

  async #act(process: Process): Promise<void> {
    const random = this.#random;
    const { engine, state } = process;
    switch (random.pick(["detect", "detect", "cache", "plan", "gc", "gc", "close", "kill"])) {
      case "detect":
        await this.#detect(process);
        break;
      case "cache":
        seeListed(engine, this.#fake.world.images);
        if (this.#memory.look !== null) list(this.#memory, this.#clocks, this.#node.listed);
        break;
      case "plan":
        await this.#plan(engine);
        break;
      case "gc":
        await this.#gc(process);
        break;
      case "close":
        await state.close(10_000);
        this.#saved = structuredClone(this.#memory);
        this.#end();
        break;
      case "kill":
        await this.#kill(process);
        break;
    }
  }

  async #detect({ engine, state }: Process): Promise<void> {
    await detect(engine, new AbortController().signal);
    observe(this.#memory, this.#clocks, this.#node);
    await flushed(state);
    this.#saved = structuredClone(this.#memory);
  }

  async #plan(engine: Engine): Promise<void> {
    const own = { ...engine, memory: volatileMemory(engine.memory.current()) };
    await prepare(
      own,
      {
        purpose: { kind: "all-unused" },
        parts: { containers: "all", images: true },
        pressureTargets: [],
        paused: new Map(),
        remembers: false,
      },
      new AbortController().signal,
    );
  }

  async #gc({ engine, state }: Process): Promise<void> {
    const { world } = this.#fake;
    const before = this.#node;
    observe(this.#memory, this.#clocks, before);
    const known = structuredClone(this.#memory);
    await runFakePass({ engine }, { purpose: { kind: "all-unused" }, containers: "none" });
    await flushed(state);
    const left = new Set<string>(world.images.map(({ id }) => id));
    for (const word of before.listed.keys()) {
      if (left.has(idOf(word))) continue;
      expect(before.used).not.toContain(word);
      expect(this.#isYoung(known, word)).toBeFalse();
      this.#memory.images.delete(word);
      this.removed += 1;
    }
    this.#saved = structuredClone(this.#memory);
  }

  #isYoung(memory: Memory, word: string): boolean {
    const { firstSeen, restarted } = memory.images.get(word) ?? { firstSeen: 0n, restarted: null };
    const now = timeOf(memory, this.#clocks);
    const most = this.#minimumAge < hours(1) ? this.#minimumAge : hours(1);
    const isRestarted = [restarted, memory.restarted].some((at) => at !== null && now - at < most);
    return now - firstSeen < this.#minimumAge || isRestarted;
  }

  /** With what it wrote, without the last ledger, or before it had written anything of its last work. */
  async #kill(process: Process): Promise<void> {
    const copy = `${this.#directory}-copy`;
    const [saved, listed] = [structuredClone(this.#saved), this.#node.listed];
    const state = join(this.#directory, "state");
    cpSync(state, copy, { recursive: true });
    if (this.#random.chance(0.5)) await this.#gc(process);
    else await this.#detect(process);
    const lost = this.#random.pick([[], ["ledger.json"], ["ledger.json", "history.jsonl"]]);
    for (const name of lost) {
      rmSync(join(state, name), { force: true });
      if (existsSync(join(copy, name))) cpSync(join(copy, name), join(state, name));
    }
    rmSync(copy, { recursive: true });
    if (lost.length > 0) this.#saved = saved;
    // The history has the removals.
    if (lost.length === 1)
      for (const word of listed.keys())
        if (!this.#node.listed.has(word)) this.#saved.images.delete(word);
    this.#saved.isRestartDue ||= this.#saved.look !== null;
    this.#end();
  }

  /** Some boots follow that no process sees. */
  #end(): void {
    this.#process = null;
    const { world } = this.#fake;
    if (!this.#random.chance(0.4)) return;
    this.#boot += this.#random.between(1, 3);
    world.uptime = this.#random.pick([seconds(30), minutes(6), hours(30)]);
  }

  async #open(): Promise<void> {
    const state = await State.open({
      directory: join(this.#directory, "state"),
      runDirectory: join(this.#directory, "run"),
      userId: process.getuid?.() ?? 0,
      machineId: "",
      notify: (message) => expect(message).toBe(""),
    });
    await flushed(state);
    const recorder = new Recorder(state, () => this.#fake.world.wall);
    const { engine, world } = this.#fake;
    world.bootId = `boot-${this.#boot}`;
    this.#process = {
      state,
      recorder,
      engine: {
        ...engine,
        memory: state,
        journal: engine.journal.with(recorder),
      },
    };
    this.#memory = structuredClone(this.#saved);
  }
}

const flushed = (state: State): Promise<number> => state.flush(10_000);

test(
  `${LIVES} lives of a node agree with the contract on first seen, last used and ages`,
  async () => {
    let removed = 0;
    for (let at = 0; at < LIVES; at += 1) {
      const life = new Life(new Random(SEED + at));
      try {
        await life.run();
      } catch (thrown) {
        throw new Error(`seed ${SEED + at}: ${String(thrown)}`, { cause: thrown });
      }
      removed += life.removed;
    }
    expect(removed).toBeGreaterThan(LIVES);
  },
  60_000 + LIVES * 200,
);
