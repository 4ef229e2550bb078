// Runs in the mutated tree under `bun test`: every test once without a mutant (and once more, where asked), then those that reach a mutant against it.

import { test } from "bun:test";
import { appendFileSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

import type { Collected } from "./stand-in.ts";

export type Job = {
  readonly standIn: string;
  readonly tests: readonly string[];
  readonly mutants: readonly string[];
  /** One JSON line for each thing that happened. */
  readonly log: string;
  /** `alone`: the mutant is on from the start, since modules run it as they are loaded. */
  readonly alone: boolean;
  /** First every test runs twice: one that keeps something between its runs would kill every mutant. */
  readonly twice: boolean;
  /** Names of tests that fail without any mutant. */
  readonly left: readonly string[];
};

/** `reset`: it left something running, so that this process is no place for another one. */
export type Line =
  | { readonly kind: "begin"; readonly id: string }
  | { readonly kind: "killed"; readonly id: string; readonly by: string; readonly reset?: true }
  | { readonly kind: "survived"; readonly id: string; readonly reached: number }
  | { readonly kind: "static"; readonly id: string }
  | { readonly kind: "broken"; readonly name: string; readonly why: string }
  | { readonly kind: "unrepeatable"; readonly name: string; readonly why: string }
  | { readonly kind: "ready"; readonly tests: number };

type Hits = Record<string, number>;
type Switch = {
  activeMutant?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
  currentTestId?: string | undefined;
  mutantCoverage?: { readonly static: Hits; readonly perTest: Record<string, Hits> };
};

const TIMEOUT_MS = 3_000;
/** Without a mutant, on a machine that is busy. */
const PATIENCE_MS = 60_000;
/** Tests that are cheap and have killed others come first; a mutant that has passed so many is let go. Of the processor's time. */
const ENOUGH_MS = 5_000;

test(
  "mutants",
  async () => {
    const job = JSON.parse(readFileSync(process.env["CRIGC_MUTATE_JOB"] ?? "", "utf8")) as Job;
    const say = (line: Line): void => appendFileSync(job.log, `${JSON.stringify(line)}\n`);
    await (job.alone ? runAlone(job, say) : runAll(job, say));
  },
  2 ** 30,
);

let testsRun = 0;

/** Takes the place of `WeakMap` in the sources: what it holds is gone with the next test. */
class ForgetfulMap<Key extends object, Value> {
  #map = new WeakMap<Key, Value>();
  #test = testsRun;

  get(key: Key): Value | undefined {
    return this.#fresh().get(key);
  }

  set(key: Key, value: Value): void {
    this.#fresh().set(key, value);
  }

  #fresh(): WeakMap<Key, Value> {
    if (this.#test !== testsRun) this.#map = new WeakMap();
    this.#test = testsRun;
    return this.#map;
  }
}
Object.assign(globalThis, { ForgetfulMap });

const state = (): Switch => {
  const holder = globalThis as unknown as { __stryker__?: Switch };
  holder.__stryker__ ??= {};
  return holder.__stryker__;
};

async function loadTests(job: Job): Promise<readonly Collected[]> {
  for (const path of job.tests) await import(pathToFileURL(path).href);
  const { collected } = (await import(pathToFileURL(job.standIn).href)) as {
    collected: readonly Collected[];
  };
  return collected;
}

async function runAll(job: Job, say: (line: Line) => void): Promise<void> {
  const tests = await loadTests(job);
  const costs = new Map<Collected, number>();
  for (const [index, one] of tests.entries()) {
    state().currentTestId = String(index);
    const start = performance.now();
    const fault = await faultOf(one, PATIENCE_MS);
    if (fault === null) costs.set(one, performance.now() - start);
    else say({ kind: "broken", name: one.name, why: fault.message });
    if (!job.twice || fault !== null) continue;
    // Its hits are not those of the first run.
    state().currentTestId = `${index} again`;
    const again = await faultOf(one, PATIENCE_MS);
    if (again !== null) say({ kind: "unrepeatable", name: one.name, why: again.message });
  }
  state().currentTestId = undefined;
  say({ kind: "ready", tests: tests.length });
  const kills = new Map<string, number>();
  const priceOf = (one: Collected): number =>
    (costs.get(one) ?? 0) / (1 + (kills.get(one.name) ?? 0));
  const coverage = state().mutantCoverage ?? { static: {}, perTest: {} };
  for (const id of job.mutants) {
    const reaching = tests
      .filter((_, index) => coverage.perTest[String(index)]?.[id] !== undefined)
      // A test that fails without any mutant, for its time under counters perhaps, shows nothing.
      .filter((one) => costs.has(one))
      .toSorted((a, b) => priceOf(a) - priceOf(b));
    const most = Math.max(0, ...Object.values(coverage.perTest).map((hits) => hits[id] ?? 0));
    say({ kind: "begin", id });
    const line = await outcome({ id, reaching, costs, hitLimit: 100 * most + 10_000 });
    // What only modules run, as they are loaded, can be tried only in a process of its own.
    if (line.kind === "killed") kills.set(line.by, 1 + (kills.get(line.by) ?? 0));
    const isStatic = reaching.length === 0 && coverage.static[id] !== undefined;
    say(isStatic ? { kind: "static", id } : line);
    if (line.kind === "killed" && line.reset === true) process.exit(0);
  }
}

type Trial = {
  readonly id: string;
  readonly reaching: readonly Collected[];
  readonly costs: ReadonlyMap<Collected, number>;
  readonly hitLimit: number;
};

async function outcome({ id, reaching, costs, hitLimit }: Trial): Promise<Line> {
  const it = state();
  const start = process.cpuUsage();
  try {
    for (const one of reaching) {
      const { user, system } = process.cpuUsage(start);
      if (user + system > 1_000 * ENOUGH_MS) break;
      it.activeMutant = id;
      it.hitCount = 0;
      it.hitLimit = hitLimit;
      const fault = await faultOf(one, TIMEOUT_MS + 10 * (costs.get(one) ?? 0));
      const by = one.name;
      // It runs for ever, and what stops it was caught by the code itself.
      if (it.hitCount > hitLimit) return { kind: "killed", id, by };
      if (fault === null) continue;
      return fault === timedOut
        ? { kind: "killed", id, by, reset: true }
        : { kind: "killed", id, by };
    }
    return { kind: "survived", id, reached: reaching.length };
  } finally {
    it.activeMutant = undefined;
    it.hitCount = undefined;
    it.hitLimit = undefined;
  }
}

async function runAlone(job: Job, say: (line: Line) => void): Promise<void> {
  const id = job.mutants[0] ?? "";
  say({ kind: "begin", id });
  let tests: readonly Collected[];
  try {
    tests = await loadTests(job);
  } catch (error) {
    return say({ kind: "killed", id, by: `loading: ${String(error)}` });
  }
  say({ kind: "ready", tests: tests.length });
  for (const one of tests) {
    if (job.left.includes(one.name)) continue;
    if ((await faultOf(one, PATIENCE_MS)) !== null)
      return say({ kind: "killed", id, by: one.name });
  }
  say({ kind: "survived", id, reached: tests.length });
}

const timedOut = new Error("it took too long");

async function faultOf({ run }: Collected, limitMs: number): Promise<Error | null> {
  let timer: Timer | undefined;
  testsRun += 1;
  try {
    const running = run();
    // Most tests are done by now, and none of these waits for a turn of the loop.
    if (!(running instanceof Promise)) return null;
    const limit = new Promise<Error>((resolve) => {
      timer = setTimeout(() => resolve(timedOut), limitMs);
    });
    const end = await Promise.race([running.then(() => null), limit]);
    return end;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    clearTimeout(timer);
  }
}
