// Which branches of the rules their tests take: every one of them, or the exit is 1.

import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";

const top = join(import.meta.dir, "..");
process.chdir(top);
const counts = ".cache/coverage.json";
const tests = ["./test/policy", "./test/conformance"];

/** An `else` that is not written has no place of its own. */
type Place = { readonly start: { readonly line?: number; readonly column?: number } };
type FileCounts = {
  readonly path: string;
  readonly branchMap: Readonly<
    Record<
      string,
      { readonly type: string; readonly locations: readonly Place[]; readonly line: number }
    >
  >;
  readonly b: Readonly<Record<string, readonly number[]>>;
};

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { floor: { type: "string", default: "100" } } });
  mkdirSync(".cache", { recursive: true });
  rmSync(counts, { force: true });
  const preload = "./scripts/coverage-preload.ts";
  const run = Bun.spawn(
    [
      process.execPath,
      "test",
      "--only-failures",
      "--timeout=120000",
      "--preload",
      preload,
      ...tests,
    ],
    { env: { ...process.env, CRIGC_COVERAGE: counts }, stdio: ["ignore", "ignore", "inherit"] },
  );
  if ((await run.exited) !== 0 || !existsSync(counts)) {
    console.error("coverage: the tests failed, see above");
    return 1;
  }
  const files = JSON.parse(readFileSync(counts, "utf8")) as Readonly<Record<string, FileCounts>>;
  const all = Object.values(files).flatMap(branchesOf);
  const missed = all.filter(({ count }) => count === 0);
  const unloaded = [...new Bun.Glob("src/policy/**/*.ts").scanSync(".")].filter(
    (file) => files[join(top, file)] === undefined && hasCode(file),
  );
  for (const { place, type } of missed) console.log(`${place} ${type}: never taken`);
  for (const file of unloaded) console.log(`${file} is loaded by no test`);
  const share = ((100 * (all.length - missed.length)) / all.length).toFixed(2);
  console.log(
    `coverage: ${all.length - missed.length} of ${all.length} branches of src/policy, ${share} %`,
  );
  const isAbove = 100 * (all.length - missed.length) >= Number(values.floor) * all.length;
  const failed = (isAbove ? 0 : missed.length) + unloaded.length;
  console.log(`${all.length - missed.length} passed, ${failed} failed`);
  return failed === 0 && all.length > 1_000 ? 0 : 1;
}

type Branch = { readonly place: string; readonly type: string; readonly count: number };

function branchesOf({ path, branchMap, b }: FileCounts): readonly Branch[] {
  const lines = readFileSync(path, "utf8").split("\n");
  return Object.entries(branchMap).flatMap(([id, { type, locations, line: first }]) =>
    locations.flatMap((location, at) => {
      const { line = first, column = 0 } = location.start;
      // The compiler proves that these are never reached.
      if (lines.slice(line - 1, line + 1).some((text) => /\bassertNever\(/.test(text))) return [];
      const place = `${relative(top, path)}:${line}:${column + 1}`;
      return [{ place, type: `${type} ${at + 1} of ${locations.length}`, count: b[id]?.[at] ?? 0 }];
    }),
  );
}

/** Whether anything is left of it at run time. */
const hasCode = (file: string): boolean =>
  new Bun.Transpiler({ loader: "ts" }).transformSync(readFileSync(file, "utf8")).trim() !== "";

process.exit(await main());
