// Two processes that try mutants, watched from outside: one that hangs is ended, and its mutant counts as killed.

import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import type { Mutant } from "./mutants.ts";
import type { Job, Line } from "./worker.ts";

export type Verdict =
  | { readonly kind: "killed"; readonly by: string }
  | { readonly kind: "survived"; readonly reached: number }
  /** Not tried: whole functions that modules define as they are loaded. */
  | { readonly kind: "skipped" };

export type Work = {
  readonly tree: string;
  readonly tests: readonly string[];
  readonly mutants: readonly Mutant[];
  /** Of `performance.now()`. */
  readonly deadlineMs: number;
};
type Lane = Work & {
  /** The first worker of one lane finds tests that fail when they are run again. */
  readonly twice: boolean;
};

const WORKERS = 2;
/** Without a word for so long, a worker hangs in a loop; until its first mutant it runs every test once. */
const SILENCE_MS = 30_000;
const LOADING_MS = 300_000;
/** Tests that measure time may fail under the counters of mutants; more than these is a broken tree. */
const BROKEN_MAX = 3;

export async function verdictsOf(work: Work): Promise<ReadonlyMap<Mutant, Verdict>> {
  const found = new Map<Mutant, Verdict>();
  copyFileSync(join(import.meta.dir, "worker.ts"), join(work.tree, "test/worker.ts"));
  const lanes = Array.from({ length: WORKERS }, (_, lane) =>
    work.mutants.filter((_mutant, index) => index % WORKERS === lane),
  );
  await Promise.all(
    lanes.map((mutants, lane) => runLane({ ...work, mutants, twice: lane === 0 }, found)),
  );
  return found;
}

async function runLane({ twice, ...work }: Lane, found: Map<Mutant, Verdict>): Promise<void> {
  const alone: Mutant[] = [];
  const broken = new Map<string, string>();
  let left = [...work.mutants];
  for (let first = true; left.length > 0 && performance.now() < work.deadlineMs; first = false) {
    const before = left.length;
    const lines = await runWorker({ ...work, twice: twice && first }, left);
    for (const line of lines) if (line.kind === "broken") broken.set(line.name, line.why);
    const unrepeatable = lines.filter((line) => line.kind === "unrepeatable");
    if (unrepeatable.length > 0)
      throw new Error(
        `tests fail when run again: ${unrepeatable.map(({ name, why }) => `${name}: ${why}`).join("; ")}`,
      );
    if (broken.size > BROKEN_MAX)
      throw new Error(`tests fail without any mutant: ${[...broken].flat().join("; ")}`);
    alone.push(...take(lines, left, found));
    left = left.filter((mutant) => !found.has(mutant) && !alone.includes(mutant));
    if (left.length === before && performance.now() < work.deadlineMs)
      throw new Error(`a worker tried nothing: ${JSON.stringify(lines.slice(-2))}`);
  }
  for (const mutant of alone) {
    if (performance.now() >= work.deadlineMs) return;
    // A function that is gone as a whole: what is in it is mutated by itself, and takes no process for each.
    if (mutant.mutator === "ArrowFunction") {
      found.set(mutant, { kind: "skipped" });
      continue;
    }
    // The tests beside the source mostly decide, and are loaded in no time.
    const beside = dirname(mutant.file).replace(/^src/, "test");
    for (const tests of [work.tests.filter((path) => path.startsWith(beside)), work.tests]) {
      if (tests.length === 0) continue;
      take(
        await runWorker({ ...work, tests, twice: false }, [mutant], [...broken.keys()]),
        [mutant],
        found,
      );
      if (found.get(mutant)?.kind === "killed") break;
    }
  }
}

/** Records what was found; a mutant that was begun and never ended hung. Says which ones have to run alone. */
function take(
  lines: readonly Line[],
  mutants: readonly Mutant[],
  found: Map<Mutant, Verdict>,
): readonly Mutant[] {
  const byId = new Map(mutants.map((mutant) => [mutant.id, mutant]));
  const alone: Mutant[] = [];
  for (const [index, line] of lines.entries()) {
    if (!("id" in line)) continue;
    const mutant = byId.get(line.id);
    if (mutant === undefined) continue;
    if (line.kind === "static") alone.push(mutant);
    if (line.kind === "killed") found.set(mutant, { kind: "killed", by: line.by });
    if (line.kind === "survived") found.set(mutant, { kind: "survived", reached: line.reached });
    const hung = line.kind === "begin" && !lines.slice(index + 1).some((it) => it.kind !== "ready");
    if (hung) found.set(mutant, { kind: "killed", by: "it hangs" });
  }
  return alone;
}

async function runWorker(
  { tree, tests, deadlineMs, twice }: Lane,
  mutants: readonly Mutant[],
  left?: readonly string[],
): Promise<readonly Line[]> {
  const alone = left !== undefined;
  const folder = mkdtempSync(join(tmpdir(), "crigc-mutate-"));
  const log = join(folder, "log");
  const job: Job = {
    standIn: join(tree, "test/stand-in.ts"),
    tests: tests.map((path) => join(tree, path)),
    mutants: mutants.map(({ id }) => id),
    log,
    alone,
    twice,
    left: left ?? [],
  };
  writeFileSync(join(folder, "job"), JSON.stringify(job));
  writeFileSync(log, "");
  const env = { ...process.env, CRIGC_MUTATE_JOB: join(folder, "job") };
  const child = Bun.spawn([process.execPath, "test", "./test/worker.ts"], {
    cwd: tree,
    env: alone ? { ...env, __STRYKER_ACTIVE_MUTANT__: mutants[0]?.id ?? "" } : env,
    stdio: ["ignore", "ignore", "ignore"],
  });
  let cutOff = false;
  const watch = setInterval(() => {
    const { mtimeMs, size } = statSync(log);
    const limitMs = size === 0 ? LOADING_MS : SILENCE_MS;
    cutOff = performance.now() >= deadlineMs;
    if (Date.now() - mtimeMs > limitMs || cutOff) child.kill("SIGKILL");
  }, 500);
  await child.exited;
  clearInterval(watch);
  const lines = readFileSync(log, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
  rmSync(folder, { recursive: true });
  // What was cut off by the end of the time did not hang.
  return cutOff && lines.at(-1)?.kind === "begin" ? lines.slice(0, -1) : lines;
}
