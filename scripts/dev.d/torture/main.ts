// Kills crigc at random points, and takes its disk, space and time away, as root: scripts/dev torture [OPTION…]
//
// Then checks its records and its next pass. Exits 1 if anything was wrong.
//
//   --kills N     SIGKILLs in passes on a real containerd (300)
//   --cuts N      power cuts: the state directory's disk as of a random instant, unsynced writes lost (100)
//   --full N      a state directory without a free byte or a free inode (20)
//   --jumps N     jumps of the wall clock and of the time since the boot (40)
//   --minutes N   starts no round later than this
//   --seed N      repeats the choices of a run; timing still varies

import { parseArgs } from "node:util";

import { Random } from "../../../test/support/random.ts";
import type { Result, Torture } from "./common.ts";

const kinds = {
  kills: async (torture: Torture) => (await import("./kills.ts")).kills(torture),
  cuts: async (torture: Torture) => (await import("./cuts.ts")).cuts(torture),
  full: async (torture: Torture) => (await import("./full.ts")).full(torture),
  jumps: async (torture: Torture) => (await import("./jumps.ts")).jumps(torture),
} as const;

/** The share of the time by whose end each has ended. */
const until = { kills: 0.6, cuts: 0.85, full: 0.95, jumps: 1 } as const;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      kills: { type: "string", default: "300" },
      cuts: { type: "string", default: "100" },
      full: { type: "string", default: "20" },
      jumps: { type: "string", default: "40" },
      minutes: { type: "string", default: "600" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
    },
  });
  const seed = Number(values.seed);
  console.log(`torture: seed ${seed}`);
  const startMs = performance.now();
  const results: Result[] = [];
  for (const [name, run] of Object.entries(kinds)) {
    const rounds = Number(values[name as keyof typeof kinds]);
    if (!Number.isInteger(rounds) || rounds < 0) {
      console.error(`torture: invalid --${name}; use a whole number`);
      return 2;
    }
    if (rounds === 0) continue;
    const deadlineMs =
      startMs + until[name as keyof typeof kinds] * Number(values.minutes) * 60_000;
    const result = await run({ rounds, random: new Random(seed), deadlineMs });
    results.push(result);
    console.log(`${name.padEnd(6)} ${String(result.tried).padStart(5)}  ${result.figures}`);
    for (const fault of result.faults) console.log(`  not ok ${fault}`);
  }
  const sum = (of: (result: Result) => number): number =>
    results.reduce((total, result) => total + of(result), 0);
  const tried = sum((it) => it.tried);
  const failed = sum((it) => it.faults.length);
  const counts = results.map(({ name, tried: rounds }) => `${rounds} ${name}`).join(", ");
  console.log(`torture: ${counts}, ${failed} failures`);
  console.log(`${tried} passed, ${failed} failed`);
  return failed === 0 && tried > 0 ? 0 : 1;
}

process.exit(await main());
