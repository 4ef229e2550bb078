// Fuzzes every parser with random and damaged input: scripts/dev fuzz MINUTES [PARSER…]
//
// Shrinks a failing input and writes it to test/fuzz/corpus/PARSER, which the suite "fuzz" tries again from then on.
// Each parser runs in a process of its own, so that one that never ends can be ended.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

import { keepFailure } from "../../../test/fuzz/corpus.ts";
import { targets } from "../../../test/fuzz/targets.ts";
import { createNote, readNote } from "./note.ts";

/** What one process does before the next parser has its turn. */
const SLICE_MS = 20_000;
/** No single input may take so much of the processor. */
const HANG_SECONDS = 20;
/** A parser with so many failures has something to mend first. */
const FAILURES_MAX = 3;

interface Row {
  inputs: number;
  readonly failures: { readonly file: string; readonly shown: string; readonly why: string }[];
}

const [minutesText = "", ...names] = process.argv.slice(2);
const minutes = Number(minutesText);
const chosen = targets.filter(({ name }) => names.length === 0 || names.includes(name));
const unknown = names.filter((name) => targets.every((target) => target.name !== name));
if (!(minutes > 0) || unknown.length > 0) {
  console.error(
    unknown.length > 0
      ? `fuzz: no parser is called ${unknown.join(", ")}; there are ${targets.map(({ name }) => name).join(", ")}`
      : "fuzz: say for how many minutes: scripts/dev fuzz MINUTES [PARSER…]",
  );
  process.exit(2);
}

const endMs = performance.now() + minutes * 60_000;
const sliceMs = Math.min(SLICE_MS, (minutes * 60_000) / chosen.length);
const rows = new Map<string, Row>(chosen.map(({ name }) => [name, { inputs: 0, failures: [] }]));
const home = mkdtempSync(join(tmpdir(), "crigc-fuzz-"));
const firstSeed = Date.now() % 2 ** 31;
console.log(`fuzz: ${chosen.length} parsers for ${minutes} min, seeds from ${firstSeed}`);

for (let turn = 0; performance.now() < endMs - sliceMs / 2; turn += 1) {
  const name = chosen[turn % chosen.length]?.name ?? "";
  const row = rows.get(name);
  if (row === undefined || row.failures.length >= FAILURES_MAX) {
    if ([...rows.values()].every(({ failures }) => failures.length >= FAILURES_MAX)) break;
    continue;
  }
  await slice(name, row, firstSeed + turn);
}
rmSync(home, { recursive: true, force: true });
process.exit(report());

async function slice(name: string, row: Row, seed: number): Promise<void> {
  const path = join(home, "note");
  createNote(path);
  const program = join(import.meta.dir, "slice.ts");
  const child = Bun.spawn(
    [process.execPath, program, name, String(seed), String(Math.round(sliceMs)), path],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let seen = -1;
  let seenSeconds = 0;
  const watch = setInterval(() => {
    const { count } = readNote(path);
    const used = processorSeconds(child.pid);
    if (count !== seen) [seen, seenSeconds] = [count, used];
    else if (used - seenSeconds > HANG_SECONDS) child.kill("SIGKILL");
  }, 500);
  const said = await new Response(child.stdout).text();
  const code = await child.exited;
  clearInterval(watch);
  const note = readNote(path);
  row.inputs += note.count;
  if (code === 0 && said === "") return;
  const input = code === 0 ? Buffer.from(said.split("\n")[0] ?? "", "base64") : note.input;
  const why =
    code === 0
      ? said.slice(said.indexOf("\n") + 1)
      : child.signalCode === "SIGKILL"
        ? `it did not end within ${HANG_SECONDS} s of the processor`
        : `the process broke off (${child.signalCode ?? `exit ${code}`})`;
  const file = relative(join(import.meta.dir, "../../.."), keepFailure(name, input));
  row.failures.push({ file, shown: shownInput(input), why });
  console.log(`fuzz: ${name} fails on ${file}: ${why.split("\n")[0]}`);
}

/** In user and kernel mode; the clock of /proc ticks a hundred times a second. */
function processorSeconds(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return 0;
  }
}

function shownInput(input: Uint8Array): string {
  const text = JSON.stringify(Buffer.from(input).toString("utf8"));
  return text.length > 200 ? `${text.slice(0, 200)}… (${input.length} bytes)` : text;
}

function report(): number {
  console.log(`\n${"parser".padEnd(22)} ${"inputs".padStart(10)} ${"failures".padStart(8)}`);
  for (const [name, { inputs, failures }] of rows)
    console.log(
      `${name.padEnd(22)} ${String(inputs).padStart(10)} ${String(failures.length).padStart(8)}`,
    );
  const all = [...rows.values()];
  for (const { failures } of all)
    for (const { file, shown, why } of failures)
      console.log(`\n${file}\n${shown}\n${why.trimEnd()}`);
  const inputs = all.reduce((sum, row) => sum + row.inputs, 0);
  const failed = all.reduce((sum, row) => sum + row.failures.length, 0);
  console.log(`\nfuzz: ${inputs} inputs, ${failed} failures`);
  return failed === 0 ? 0 : 1;
}
