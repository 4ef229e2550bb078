// Runs the suites one after another, adds up their counts and says the sum in one line.

import { accessSync, constants, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { type Counts, countsInJunit, countsInLine, failuresIn, judged } from "./counts.ts";
import { type Suite, suites } from "./suites.ts";

/** What a suite came to; `failures` are lines that say what went wrong, as they were printed. */
type Attempt = Counts & { readonly note: string; readonly failures?: readonly string[] };
type Result = Attempt & { readonly name: string; readonly seconds: number };

const top = join(import.meta.dir, "../..");
const inCi = process.env["CI"] === "true";
/** One build serves all suites of a run. */
let executableBuilt: boolean | undefined;

process.chdir(top);
process.exit(
  await main().catch((error: unknown) => {
    console.error(error);
    console.log("0 passed, 1 failed");
    return 1;
  }),
);

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: { list: { type: "boolean" } },
    allowPositionals: true,
  });
  if (values.list === true) {
    console.log(suites.map((suite) => suite.name).join("\n"));
    return 0;
  }
  const unknown = positionals.filter((name) => suites.every((suite) => suite.name !== name));
  if (unknown.length > 0) {
    console.error(
      `test: no suite is called ${unknown.join(", ")}; there are ${suites.map((suite) => suite.name).join(", ")}`,
    );
    return 2;
  }
  const chosen = suites.filter(
    (suite) => positionals.length === 0 || positionals.includes(suite.name),
  );
  const results: Result[] = [];
  for (const suite of chosen) results.push(await resultOf(suite));
  return conclude(results);
}

function conclude(results: readonly Result[]): number {
  const sum = (key: keyof Counts): number =>
    results.reduce((total, result) => total + result[key], 0);
  // Once more at the end: who keeps only the end of a long record must find it there.
  for (const { name, failures = [] } of results)
    if (failures.length > 0) console.log([`\n== failures of ${name}`, ...failures].join("\n"));
  console.log(
    `\n${"suite".padEnd(15)} ${"pass".padStart(6)} ${"fail".padStart(5)} ${"skip".padStart(5)} ${"seconds".padStart(8)}`,
  );
  for (const { name, passed, failed, skipped, seconds, note } of results) {
    const row = [
      name.padEnd(15),
      String(passed).padStart(6),
      String(failed).padStart(5),
      String(skipped).padStart(5),
      seconds.toFixed(1).padStart(8),
      note,
    ];
    console.log(row.join(" ").trimEnd());
  }
  if (sum("passed") + sum("failed") === 0) console.log("no test ran");
  const skipped = sum("skipped") > 0 ? `, ${sum("skipped")} skipped` : "";
  console.log(`${sum("passed")} passed, ${sum("failed")} failed${skipped}`);
  return sum("failed") === 0 && sum("passed") > 0 ? 0 : 1;
}

async function resultOf(suite: Suite): Promise<Result> {
  const start = performance.now();
  console.log(`\n== ${suite.name}`);
  const { note, ...counts } = await attempt(suite);
  if (note !== "") console.log(`${suite.name}: ${note}`);
  return { name: suite.name, ...counts, note, seconds: (performance.now() - start) / 1000 };
}

async function attempt(suite: Suite): Promise<Attempt> {
  const obstacle = obstacleTo(suite);
  if (obstacle !== undefined) {
    return inCi
      ? { passed: 0, failed: 1, skipped: 0, note: `must run under CI, but ${obstacle}` }
      : { passed: 0, failed: 0, skipped: 1, note: `skipped: ${obstacle}` };
  }
  const missing = await preparationFault(suite);
  if (missing !== undefined) return { passed: 0, failed: 1, skipped: 0, note: missing };
  return "executable" in suite.run
    ? runExecutable(suite, suite.run)
    : runTests(suite, suite.run.tests);
}

/** Why the suite cannot run here at all. */
function obstacleTo(suite: Suite): string | undefined {
  const paths = "executable" in suite.run ? [suite.run.executable] : suite.run.tests;
  const absent = paths.filter((path) => !existsSync(path));
  if (absent.length > 0) return `${absent.join(", ")} does not exist`;
  if (suite.needsRoot !== true) return undefined;
  if (process.getuid?.() !== 0) return "it needs root";
  const mounts = Bun.spawnSync(["unshare", "--mount", "--net", "true"], { stderr: "ignore" });
  return mounts.exitCode === 0 ? undefined : "this machine lets even root create no namespaces";
}

async function preparationFault(suite: Suite): Promise<string | undefined> {
  for (const group of suite.groups ?? []) {
    const setup = `scripts/setup.d/${group}`;
    if (existsSync(setup) && !(await succeeds(["scripts/setup", group])))
      return `scripts/setup ${group} failed`;
  }
  if (suite.needsExecutable !== true) return undefined;
  executableBuilt ??= await succeeds(["scripts/build"]);
  return executableBuilt ? undefined : "scripts/build failed";
}

async function succeeds(command: string[]): Promise<boolean> {
  return (await Bun.spawn(command, { stdio: ["ignore", "inherit", "inherit"] }).exited) === 0;
}

async function runTests(suite: Suite, paths: readonly string[]): Promise<Attempt> {
  mkdirSync(".cache", { recursive: true });
  const report = `.cache/junit-${suite.name}-${process.pid}.xml`;
  const command = [
    process.execPath,
    "test",
    "--no-orphans",
    `--timeout=${suite.testSeconds * 1000}`,
    "--reporter=junit",
    `--reporter-outfile=${report}`,
    // Of a scenario every step is shown as it ends, since one may take minutes.
    ...(suite.ordered === true ? [] : ["--randomize", "--only-failures"]),
    ...(suite.parallel === true ? ["--parallel"] : []),
    ...(suite.except ?? []).map((path) => `--path-ignore-patterns=${path}/**`),
    ...paths.map((path) => `./${path}`),
  ];
  const child = Bun.spawn(command, {
    stdio: ["ignore", "inherit", "pipe"],
    timeout: suite.suiteMinutes * 60_000,
    killSignal: "SIGTERM",
  });
  const said = await passedOn(child.stderr);
  const exitCode = await child.exited;
  const counts = existsSync(report) ? countsInJunit(await Bun.file(report).text()) : undefined;
  rmSync(report, { force: true });
  const verdict = judged({
    minutesMax: suite.suiteMinutes,
    exitCode,
    signal: child.signalCode,
    counts,
  });
  return verdict.failed === 0 ? verdict : { ...verdict, failures: failuresIn(said) };
}

/** Shows a stream as it comes, and keeps it. */
async function passedOn(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    process.stderr.write(chunk);
    text += decoder.decode(chunk, { stream: true });
  }
  return text;
}

async function runExecutable(
  suite: Suite,
  { executable, words = [] }: { readonly executable: string; readonly words?: readonly string[] },
): Promise<Attempt> {
  accessSync(executable, constants.X_OK);
  const child = Bun.spawn([`./${executable}`, ...words], {
    stdio: ["ignore", "pipe", "inherit"],
    timeout: suite.suiteMinutes * 60_000,
    killSignal: "SIGTERM",
  });
  let counts: Counts | undefined;
  const text = await child.stdout.text();
  for (const line of text.trimEnd().split("\n")) {
    const said = countsInLine(line);
    // The only such line of a run is the sum at its end.
    if (said === undefined) console.log(line);
    counts = said ?? counts;
  }
  const verdict = judged({
    minutesMax: suite.suiteMinutes,
    exitCode: await child.exited,
    signal: child.signalCode,
    counts,
  });
  return verdict.failed === 0 ? verdict : { ...verdict, failures: failuresIn(text) };
}
