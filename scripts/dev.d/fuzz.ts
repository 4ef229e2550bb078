// Fuzzes every parser with random and damaged input: scripts/dev fuzz MINUTES [PARSER…]
//
// Shrinks a failing input and writes it to test/fuzz/corpus/PARSER, which the suite "fuzz" tries again from then on. Names
// each parser before its turn: one that never ends is the last one named.

import { relative } from "node:path";

import { keepFailure } from "../../test/fuzz/corpus.ts";
import { fuzz } from "../../test/fuzz/target.ts";
import { targets } from "../../test/fuzz/targets.ts";

/** Before the next parser has its turn. */
const TURN_MS = 20_000;

const [minutesText = "", ...names] = process.argv.slice(2);
const minutes = Number(minutesText);
const unknown = names.filter((name) => targets.every((target) => target.name !== name));
if (!(minutes > 0) || unknown.length > 0) {
  console.error(
    unknown.length > 0
      ? `fuzz: no parser is called ${unknown.join(", ")}; there are ${targets.map(({ name }) => name).join(", ")}`
      : "fuzz: say for how many minutes: scripts/dev fuzz MINUTES [PARSER…]",
  );
  process.exit(2);
}

const chosen = targets.filter(({ name }) => names.length === 0 || names.includes(name));
const endMs = performance.now() + minutes * 60_000;
const ms = Math.min(TURN_MS, (minutes * 60_000) / chosen.length);
const failed = new Set<string>();
for (let seed = Date.now() % 2 ** 31; performance.now() < endMs - ms / 2; seed += 1) {
  const target = chosen.shift();
  if (target === undefined) break;
  process.stdout.write(`${target.name.padEnd(22)} seed ${seed} `);
  const { inputs, failure } = await fuzz(target, { seed, inputsMax: 2 ** 30, ms });
  console.log(`${String(inputs).padStart(10)} inputs`);
  if (failure === null) {
    chosen.push(target);
    continue;
  }
  // A parser that fails has something to mend first.
  failed.add(target.name);
  const text = JSON.stringify(Buffer.from(failure.input).toString("utf8")).slice(0, 200);
  const file = relative(process.cwd(), keepFailure(target.name, failure.input));
  console.log(`\n${file}\n${text}\n${failure.message.trimEnd()}\n`);
}
console.log(
  `fuzz: ${failed.size === 0 ? "no parser failed" : `failed: ${[...failed].join(", ")}`}`,
);
process.exit(failed.size === 0 ? 0 : 1);
