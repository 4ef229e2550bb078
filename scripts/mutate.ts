// Mutation testing of the rules and of what carries them out: what no test notices is killed by a new test, or explained.

import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { refusedByCompiler } from "./mutate-parts/compiler.ts";
import { type Mutant, plantMutants } from "./mutate-parts/mutants.ts";
import { type Verdict, verdictsOf } from "./mutate-parts/workers.ts";

const top = join(import.meta.dir, "..");
process.chdir(top);

/** Which tests decide on the mutants of which sources; the later ones only on what survives the first and is not explained. */
const areas = [
  { sources: "src/policy", tests: ["test/policy", "test/conformance"], share: 0.7 },
  { sources: "src/gc", tests: ["test/gc"], share: 1 },
] as const;
const explainedPath = "test/mutants.json";
/** Two runs side by side do not meet. */
const home = join(top, `.cache/mutate/${process.pid}`);
const tree = join(home, "tree");

type Explanations = Readonly<
  Record<string, readonly { why: string; mutants: readonly string[] }[]>
>;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: {
      "one-of": { type: "string", default: "1" },
      floor: { type: "string", default: "100" },
    },
    allowPositionals: true,
  });
  const minutes = /^\d+(\.\d+)?$/.test(positionals[0] ?? "") ? Number(positionals.shift()) : null;
  const every = Number(values["one-of"]);
  const deadlineMs = minutes === null ? Infinity : performance.now() + minutes * 60_000;
  const files = filesIn(positionals);
  if (files.length === 0 || !Number.isInteger(every) || every < 1) {
    console.error("mutate: no matching sources in src/policy and src/gc; see --help");
    return 2;
  }
  const explanations = JSON.parse(readFileSync(explainedPath, "utf8")) as Explanations;
  const all = await plantMutants(files, tree);
  const chosen = all.filter((_, index) => index % every === 0);
  const verdicts = new Map<Mutant, Verdict>();
  const startMs = performance.now();
  for (const area of areas) {
    // In a short time what carries the rules out has its share, too.
    const untilMs = startMs + area.share * (deadlineMs - startMs);
    let left = chosen.filter(({ file }) => file.startsWith(`${area.sources}/`));
    for (const folder of area.tests) {
      const found = await verdictsOf({
        tree,
        tests: testFiles(folder),
        mutants: left,
        deadlineMs: untilMs,
      });
      for (const [mutant, verdict] of found)
        verdicts.set(mutant, together(verdicts.get(mutant), verdict));
      // The time was up before the tests of every folder had it.
      for (const mutant of left.filter((one) => !found.has(one))) verdicts.delete(mutant);
      const survived = [...found.values()].filter(({ kind }) => kind === "survived").length;
      console.log(`${folder}: ${found.size} mutants tried, ${survived} survived`);
      left = left.filter(
        (mutant) => found.get(mutant)?.kind === "survived" && !isExplained(explanations, mutant),
      );
      const refused = new Set(await refusedByCompiler(left, join(home, "types")));
      for (const mutant of refused) verdicts.set(mutant, { kind: "killed", by: "the compiler" });
      left = left.filter((mutant) => !refused.has(mutant));
    }
  }
  const whole = every === 1 && verdicts.size === all.length;
  return conclude(chosen, verdicts, {
    explanations,
    whole,
    floorPercent: Number(values.floor),
  });
}

const isExplained = (explanations: Explanations, { file, key }: Mutant): boolean =>
  explanations[file]?.some(({ mutants }) => mutants.includes(key)) === true;

/** A survivor was reached by the tests of all folders together. */
const together = (before: Verdict | undefined, now: Verdict): Verdict =>
  before?.kind === "survived" && now.kind === "survived"
    ? { kind: "survived", reached: before.reached + now.reached }
    : now;

function filesIn(paths: readonly string[]): readonly string[] {
  const wanted = paths.length === 0 ? areas.map(({ sources }) => sources) : paths;
  const known = areas.flatMap(({ sources }) => [
    ...new Bun.Glob(`${sources}/**/*.ts`).scanSync("."),
  ]);
  const bare = wanted.map((path) => path.replace(/\/$/, ""));
  return known
    .filter((file) => bare.some((path) => file === path || file.startsWith(`${path}/`)))
    .toSorted();
}

const testFiles = (folder: string): readonly string[] =>
  [...new Bun.Glob(`${folder}/**/*.test.ts`).scanSync(".")]
    // Its 300 vectors would run for every mutant.
    .filter((file) => file !== "test/conformance/containers.test.ts")
    .toSorted();

type Row = { mutants: number; killed: number; explained: number; survived: number };

function conclude(
  chosen: readonly Mutant[],
  verdicts: ReadonlyMap<Mutant, Verdict>,
  {
    explanations,
    whole,
    floorPercent,
  }: { explanations: Explanations; whole: boolean; floorPercent: number },
): number {
  const rows = new Map<string, Row>();
  const unexplained: string[] = [];
  let skipped = 0;
  for (const mutant of chosen) {
    const verdict = verdicts.get(mutant);
    const row = rows.get(mutant.file) ?? { mutants: 0, killed: 0, explained: 0, survived: 0 };
    rows.set(mutant.file, row);
    if (verdict === undefined) continue;
    if (verdict.kind === "skipped") {
      skipped += 1;
      continue;
    }
    row.mutants += 1;
    if (verdict.kind === "killed") {
      row.killed += 1;
      continue;
    }
    if (isExplained(explanations, mutant)) {
      row.explained += 1;
      continue;
    }
    row.survived += 1;
    const reached = verdict.reached === 0 ? "reached by no test" : "survived";
    unexplained.push(`${mutant.file}:${mutant.line} ${reached}\n    ${mutant.key}`);
  }
  printTable(rows);
  if (unexplained.length > 0) console.log(`\n${unexplained.join("\n")}\n`);
  const stale = whole ? staleOf(explanations, chosen, rows) : [];
  for (const key of stale) console.log(`explained, but no mutant: ${key}`);
  const sum = (key: keyof Row): number =>
    [...rows.values()].reduce((total, row) => total + row[key], 0);
  const untried = chosen.length - skipped - sum("mutants");
  if (skipped > 0) console.log(`${skipped} whole functions at the top of modules were left out`);
  if (untried > 0) console.log(`${untried} mutants not tried in time`);
  const score = ((100 * sum("killed")) / Math.max(1, sum("mutants"))).toFixed(1);
  console.log(
    `mutate: ${sum("mutants")} mutants, ${sum("killed")} killed (${score} %), ${sum("explained")} explained, ${sum("survived")} survived`,
  );
  // Below the floor every survivor is a failure; above it only what is new would be, and nobody knows which that is.
  const good = sum("killed") + sum("explained");
  const isAbove = 100 * good >= floorPercent * sum("mutants");
  const failed = (isAbove ? 0 : sum("survived")) + stale.length;
  console.log(`${good} passed, ${failed} failed`);
  return failed === 0 && sum("mutants") > 0 ? 0 : 1;
}

function printTable(rows: ReadonlyMap<string, Row>): void {
  const columns = ["mutants", "killed", "explained", "survived"] as const;
  console.log(`${"file".padEnd(46)} ${columns.map((it) => it.padStart(9)).join(" ")}`);
  for (const [file, row] of rows)
    console.log(`${file.padEnd(46)} ${columns.map((it) => String(row[it]).padStart(9)).join(" ")}`);
}

/** What is only slower for its mutant may be killed by a test of speed, as the machine is: an explanation is stale with its code. */
function staleOf(
  explanations: Explanations,
  all: readonly Mutant[],
  rows: ReadonlyMap<string, Row>,
): readonly string[] {
  const known = new Set(all.map(({ file, key }) => `${file} ${key}`));
  return Object.entries(explanations).flatMap(([file, groups]) =>
    rows.has(file) || !existsSync(file)
      ? groups
          .flatMap(({ mutants }) => mutants.map((key) => `${file} ${key}`))
          .filter((key) => !known.has(key))
      : [],
  );
}

const code = await main().finally(() => rmSync(home, { recursive: true, force: true }));
process.exit(code);
