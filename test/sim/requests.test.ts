// The figures of docs/evidence.md on a public list of requests, which is not part of the project: skipped without it.

import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Limits } from "../../src/model/limits.ts";
import { replay, type Scenario } from "../../src/simulate/replay.ts";
import { replayable } from "../../src/simulate/trace.ts";
import { aScenario, aTrace, HOUR, traced, usedAt } from "../simulate/build.ts";
import { MIB } from "../support/build/values.ts";
import { Random } from "../support/random.ts";
import { simLimits } from "./simulation.ts";

const FILE = join(import.meta.dir, "../../../shared/traces/model-requests.csv");

/** `seconds,image` after a head line. */
function requests(seed: number) {
  const rows = readFileSync(FILE, "utf8").trim().split("\n").slice(1);
  const all = rows
    .map((row) => row.split(","))
    .map(([at, name = ""]) => ({ at: Number(at), name }));
  const random = new Random(seed);
  const normal = (): number =>
    Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  const names = [...new Set(all.map(({ name }) => name))].toSorted();
  return replayable(
    aTrace({
      untilMs: (all.at(-1)?.at ?? 0) * 1000 + HOUR,
      images: names.map((name) => ({
        ...traced(name, 0),
        sizeBytes: BigInt(Math.round(4.5e9 * Math.exp(0.5 * normal()))),
      })),
      uses: all.map(({ at, name }) => usedAt(name, at * 1000)),
    }),
  );
}

/** Bytes pulled again, as a multiple of those of the offline bound, over some draws of the sizes. */
function timesBound(order: Limits["images"]["order"], percent: bigint): number {
  const all = SEEDS.map((trace) => {
    const scenario = aScenario(aTrace({}), {
      trace,
      capacityBytes: (trace.allBytes * percent) / 100n,
      limits: { ...simLimits, images: { ...simLimits.images, order } },
    });
    const again = (change: Partial<Scenario>): number =>
      Number(replay({ ...scenario, ...change }).figures.pulledAgainBytes / MIB);
    return again({}) / again({ order: "offline" });
  });
  return all.reduce((sum, one) => sum + one, 0) / all.length;
}

const SEEDS = existsSync(FILE) ? [1, 2, 3].map(requests) : [];

/** As computed apart from crigc, for one draw of the sizes. */
const KNOWN = {
  recent: [1.71, 1.83, 2.03, 2.48, 3.63],
  frequent: [1.31, 1.51, 1.78, 2.19, 2.54],
} as const;
const PERCENTS = [20n, 30n, 40n, 60n, 80n] as const;

test.skipIf(SEEDS.length === 0).each(["recent", "frequent"] as const)(
  "the order %s pulls again as much of 26,798 requests as was computed apart from crigc",
  (order) => {
    const ratios = PERCENTS.map(
      (percent, at) => timesBound(order, percent) / (KNOWN[order][at] ?? 0),
    );
    // Draws of the sizes differ most on the largest disk, where least is pulled.
    for (const [at, ratio] of ratios.entries())
      expect(ratio).toBeWithin(0.92, at < 4 ? 1.08 : 1.15);
  },
  120_000,
);
