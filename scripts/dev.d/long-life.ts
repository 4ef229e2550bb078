// Runs an agent for weeks on a simulated node: scripts/dev long-life [--days 30] [--minutes N] [--seed 1]
//
// State directory and log are real. A day takes half a minute of CPU time; after --minutes it begins no other day.
// Exits 1 if memory, descriptors, rows or log exceed their limits.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { journalOf, logListener } from "../../src/engine/journal.ts";
import { Log } from "../../src/engine/log.ts";
import type { Engine } from "../../src/gc/ports.ts";
import { Recorder } from "../../src/state/recorder.ts";
import { State } from "../../src/state/state.ts";
import { HOUR, MINUTE, Simulation } from "../../test/sim/simulation.ts";
import { Walk } from "../../test/sim/walk.ts";

const bounds = {
  /** Of the heap, from the fifth part of the life to its end. */
  growthMiB: 6,
  descriptors: 4,
  logMiBPerDay: 8,
  stateMiB: 40,
  /** Rows of one kind: what the history keeps at most. */
  rows: 100_000,
} as const;

const MIB = 1024 * 1024;
const PATIENCE = () => AbortSignal.timeout(10_000);
const notices: string[] = [];

/** What an agent has beside the simulated node: the ledger, the history and the log as they are. */
class RealParts {
  readonly directory = mkdtempSync(join(tmpdir(), "crigc-long-life-"));
  logBytes = 0;
  logLines = 0;
  recorder: Recorder | null = null;

  async open({ node }: Simulation): Promise<void> {
    const state = await State.open({
      directory: this.directory,
      runDirectory: this.directory,
      userId: process.getuid?.() ?? 0,
      machineId: "",
      notify: (message) => notices.push(message),
    });
    this.recorder = new Recorder(state, () => node.wall());
  }

  refit(engine: Engine, sim: Simulation): Engine {
    const { recorder } = this;
    const { journal: judge } = engine;
    if (recorder === null) throw new Error("the ledger is not open");
    const now = () => sim.node.wall();
    const sink = (line: string): void => {
      this.logLines += 1;
      this.logBytes += line.length + 1;
    };
    const log = new Log({ format: "text", verbosity: 2, sink, now });
    return {
      ...engine,
      memory: {
        current: () => recorder.state.ledger,
        replace: (next) => recorder.state.keep(next),
        save: () => recorder.state.save(),
      },
      journal: journalOf(
        // The simulation judges removals by the pass that runs.
        {
          passStarted: (start) => judge.passStarted(start),
          passEnded: (pass, seen) => judge.passEnded(pass, seen),
        },
        recorder,
        logListener(log),
      ),
    };
  }

  stateBytes(): number {
    const names = readdirSync(this.directory);
    return names.reduce((sum, name) => sum + statSync(join(this.directory, name)).size, 0);
  }

  rows(): Readonly<Record<string, number>> {
    const lines = ["history.1.jsonl", "history.jsonl"]
      .map((name) => join(this.directory, name))
      .filter((path) => existsSync(path))
      .flatMap((path) => readFileSync(path, "utf8").split("\n"));
    const kinds = lines.flatMap((line) => /"record":"(\w+)"/.exec(line)?.[1] ?? []);
    return Object.fromEntries(
      [...Map.groupBy(kinds, (kind) => kind)].map(([kind, all]) => [kind, all.length]),
    );
  }
}

type Look = { readonly heapMiB: number; readonly descriptors: number };

function look(): Look {
  Bun.gc(true);
  return {
    heapMiB: process.memoryUsage().heapUsed / MIB,
    descriptors: readdirSync("/proc/self/fd").length,
  };
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      days: { type: "string", default: "30" },
      minutes: { type: "string", default: "600" },
      seed: { type: "string", default: "1" },
    },
  });
  const startMs = performance.now();
  const endMs = startMs + Number(values.minutes) * 60_000;
  let days = 0;
  const parts = new RealParts();
  const sim = new Simulation({
    seed: Number(values.seed),
    refit: (engine, it) => parts.refit(engine, it),
  });
  await parts.open(sim);
  const walk = new Walk(sim, { podMinutes: 2, shared: 0.5, writesMib: 20_000, breaks: false });
  const counts = { passes: 0, removals: 0 };
  const faults: string[] = [];
  const looks: Look[] = [];
  walk.begin();
  sim.start();
  for (let hour = 1; hour <= Number(values.days) * 24; hour += 1) {
    // Now and then the runtime is away, as for an upgrade.
    sim.weather.runtimeIsAway = hour % 24 === 0;
    await sim.run(2 * MINUTE);
    sim.weather.runtimeIsAway = false;
    await sim.run(HOUR - 2 * MINUTE);
    await flushed(parts);
    counts.passes += sim.record.passes.length;
    counts.removals += sim.record.removals.length;
    faults.push(...sim.record.violations);
    forget(sim);
    if (hour % 24 !== 0) continue;
    looks.push(look());
    days += 1;
    // Only whole days: a day has a peak.
    if (performance.now() > endMs) break;
  }
  const ended = await sim.stop();
  if (!ended) faults.push("the agent did not end");
  await parts.recorder?.state.close(PATIENCE());
  faults.push(...notices);
  const failed = report({ parts, days, looks, counts, startMs }) + faults.length;
  for (const fault of faults) console.log(`not ok ${fault}`);
  rmSync(parts.directory, { recursive: true });
  return failed;
}

/** The disk of a real node keeps up with real time. */
async function flushed({ recorder }: RealParts): Promise<void> {
  if ((await recorder?.state.settle(PATIENCE(), () => undefined)) !== 0)
    notices.push("the ledger could not be written");
}

/** What the simulation collects for its own judgement is no part of the agent. */
function forget({ record, node, weather }: Simulation): void {
  const sandboxes = new Set<string>(weather.sandboxes.map(({ id }) => id));
  for (const id of node.wanted.keys()) if (!sandboxes.has(id)) node.wanted.delete(id);
  for (const list of [record.passes, record.removals, record.events, record.violations])
    list.length = 0;
}

type Report = {
  readonly parts: RealParts;
  readonly days: number;
  readonly looks: readonly Look[];
  readonly counts: Readonly<Record<string, number>>;
  readonly startMs: number;
};

function report({ parts, days, looks, counts, startMs }: Report): number {
  const warm = Math.floor(looks.length / 5);
  const early = looks[warm] ?? look();
  const late = looks.slice(-Math.max(1, warm));
  const most = (of: (one: Look) => number): number => Math.max(...late.map(of));
  const rows = parts.rows();
  const table: readonly (readonly [string, number, number])[] = [
    ["heap, growth in MiB", most(({ heapMiB }) => heapMiB) - early.heapMiB, bounds.growthMiB],
    ["descriptors, growth", most((it) => it.descriptors) - early.descriptors, bounds.descriptors],
    ["state directory, MiB", parts.stateBytes() / MIB, bounds.stateMiB],
    ["log a day, MiB", parts.logBytes / MIB / days, bounds.logMiBPerDay],
    ...Object.entries(rows).map(([kind, n]) => [`rows: ${kind}`, n, bounds.rows] as const),
  ];
  const seconds = Math.round((performance.now() - startMs) / 1000);
  console.log(
    `long life: ${days} days in ${seconds} s, ${counts["passes"]} passes, ${counts["removals"]} removals, heap ${early.heapMiB.toFixed(1)} MiB at a fifth, ${parts.logLines} log lines`,
  );
  let failed = 0;
  for (const [name, value, most_] of table) {
    const isIn = value <= most_;
    if (!isIn) failed += 1;
    console.log(
      `${isIn ? "ok    " : "not ok"} ${name.padEnd(24)} ${value.toFixed(2).padStart(10)}  at most ${most_}`,
    );
  }
  // Else nothing was lived.
  if ((counts["removals"] ?? 0) < days) {
    failed += 1;
    console.log("not ok hardly anything was removed");
  }
  console.log(`${table.length - Math.min(failed, table.length)} passed, ${failed} failed`);
  return failed;
}

process.exit((await main()) === 0 ? 0 : 1);
