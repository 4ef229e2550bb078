// Every search for defects for its share of a night, one after the other, and what they came to in one table.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const top = join(import.meta.dir, "..");
process.chdir(top);
const logs = ".cache/nightly";

type Row = {
  readonly search: string;
  readonly tried: string;
  readonly failures: number;
  readonly seconds: number;
};

type Search = {
  readonly name: string;
  /** Of the time that is left, by the shares of those that are still to come. */
  readonly share: number;
  readonly run: (minutes: number) => Promise<{ readonly tried: string; readonly failures: number }>;
};

const searches: readonly Search[] = [
  { name: "simulation", share: 30, run: simulate },
  {
    name: "fuzz",
    share: 10,
    run: async (minutes) => {
      const { text, code } = await said("fuzz", ["scripts/fuzz", String(minutes)]);
      const [, inputs = "0", failures = "1"] =
        /^fuzz: (\d+) inputs, (\d+) failures$/m.exec(text) ?? [];
      return { tried: `${inputs} inputs`, failures: atLeast(Number(failures), code) };
    },
  },
  {
    name: "mutants",
    share: 20,
    run: async (minutes) => {
      const command = ["scripts/mutate", String(minutes), "--floor", "97"];
      const { text, code } = await said("mutants", command);
      const [, tried = "no mutants", survived = "1"] =
        /^mutate: (.*, (\d+) survived)$/m.exec(text) ?? [];
      return { tried, failures: code === 0 ? 0 : Math.max(1, Number(survived)) };
    },
  },
  {
    name: "torture",
    share: 25,
    run: async (minutes) => {
      const { text, code } = await said("torture", [
        "scripts/torture",
        "--minutes",
        String(minutes),
      ]);
      const [, tried = "nothing", failures = "1"] =
        /^torture: (.*), (\d+) failures$/m.exec(text) ?? [];
      return { tried, failures: atLeast(Number(failures), code) };
    },
  },
  {
    name: "long life",
    share: 15,
    run: async (minutes) => {
      const { text, code } = await said("long-life", [
        "scripts/long-life",
        "--minutes",
        String(minutes),
      ]);
      const [, tried = "nothing"] = /^long life: (.*)$/m.exec(text) ?? [];
      const failures = text.split("\n").filter((line) => line.startsWith("not ok")).length;
      return { tried, failures: atLeast(failures, code) };
    },
  },
];

async function main(): Promise<number> {
  const minutes = Number(process.argv[2] ?? "480");
  if (!(minutes > 0)) {
    console.error("nightly: invalid MINUTES; use a number above 0");
    return 2;
  }
  mkdirSync(logs, { recursive: true });
  const endMs = performance.now() + minutes * 60_000;
  const rows: Row[] = [];
  for (const [at, { name, share, run }] of searches.entries()) {
    const shares = searches.slice(at).reduce((sum, search) => sum + search.share, 0);
    const startMs = performance.now();
    const leftMinutes = Math.max(0.1, (endMs - startMs) / 60_000);
    const result = await run(Math.round((10 * leftMinutes * share) / shares) / 10);
    const seconds = Math.round((performance.now() - startMs) / 1000);
    rows.push({ search: name, ...result, seconds });
    console.log(`nightly: ${name} took ${seconds} s, ${result.failures} failures`);
  }
  console.log(`\n${"search".padEnd(12)} ${"failures".padStart(8)} ${"seconds".padStart(8)}  tried`);
  for (const { search, tried, failures, seconds } of rows)
    console.log(
      `${search.padEnd(12)} ${String(failures).padStart(8)} ${String(seconds).padStart(8)}  ${tried}`,
    );
  const failed = rows.filter(({ failures }) => failures > 0).length;
  console.log(`${rows.length - failed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

/** One that broke off has failed, whatever it counted. */
const atLeast = (failures: number, code: number): number =>
  code === 0 ? failures : Math.max(1, failures);

const SEEDS = 10_000;
/** Below the limit of one test. */
const CHUNK_SECONDS = 80;

async function simulate(
  minutes: number,
): Promise<{ readonly tried: string; readonly failures: number }> {
  const endMs = performance.now() + minutes * 60_000;
  const first = Date.now() % 1_000_000_000;
  let seeds = 0;
  let failures = 0;
  while (seeds < SEEDS && performance.now() < endMs) {
    const seconds = Math.min(CHUNK_SECONDS, Math.max(5, (endMs - performance.now()) / 1000));
    const { text, code } = await said(
      `simulation-${first + seeds}`,
      [process.execPath, "test", "./test/sim/walk.test.ts"],
      {
        CRIGC_SIM_SEED: String(first + seeds),
        CRIGC_SIM_SEEDS: String(Math.min(500, SEEDS - seeds)),
        CRIGC_SIM_MS: String(Math.round(seconds * 1000)),
        CRIGC_SIM_LEAST: "0",
      },
    );
    const lived = /^simulated (\d+) nodes/m.exec(text)?.[1];
    const broken = /CRIGC_SIM_SEED=(\d+): (.*)/.exec(text);
    if (broken !== null) {
      failures += 1;
      console.log(`nightly: ${broken[0]}`);
      seeds = Number(broken[1]) - first + 1;
    } else if (lived === undefined) return { tried: `${seeds} seeds`, failures: failures + 1 };
    else {
      seeds += Number(lived);
      if (code !== 0) failures += 1;
    }
  }
  return { tried: `${seeds} seeds from ${first}`, failures };
}

async function said(
  name: string,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly text: string; readonly code: number }> {
  const child = Bun.spawn([...command], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  const text = `${out}\n${err}`;
  writeFileSync(join(logs, `${name}.log`), text);
  return { text, code };
}

process.exit(await main());
