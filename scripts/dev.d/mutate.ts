// Plants mutants in src/policy and runs its tests against each: scripts/dev mutate [OPTION…] [FILE…]
//
// A mutant is one operator of the source exchanged for another. It survives if its tests (test/policy, and
// test/conformance for src/policy/kubelet) pass. Prints survivors and the score. Run it after changing the rules, and
// kill each survivor by a test unless the change makes no difference.
//
//   --one-of N       tries one of N mutants, chosen by their text, so that other changes leave the sample as it is (1)
//   --floor PERCENT  exits 1 if fewer are killed (85)
//   --minutes N      tries no more mutants after this time

import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { compared } from "../../src/model/values.ts";

/** What stands in the source, and what stands there instead; a space on both sides makes it an operator. */
const operators: readonly (readonly [RegExp, string])[] = [
  [/ === /g, " !== "],
  [/ !== /g, " === "],
  [/ && /g, " || "],
  [/ \|\| /g, " && "],
  [/ < /g, " <= "],
  [/ <= /g, " < "],
  [/ > /g, " >= "],
  [/ >= /g, " > "],
  [/ \+ /g, " - "],
  [/ - /g, " + "],
  [/ \* /g, " / "],
  [/ \/ /g, " * "],
  [/(?<=[( ])!(?=[a-z(])/g, ""],
  [/\btrue\b/g, "false"],
  [/\bfalse\b/g, "true"],
  [/\.some\(/g, ".every("],
  [/\.every\(/g, ".some("],
  [/\bMath\.max\(/g, "Math.min("],
  [/\bMath\.min\(/g, "Math.max("],
  [/\bif \((?!!)/g, "if (false && "],
  [/ \? (?=[^:?]+ : )/g, " && false ? "],
];

type Mutant = {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  readonly shown: string;
  readonly hash: bigint;
};

/** A test that runs for so long hangs. */
const HANG_MS = 60_000;
const copied = ["src", "test", "proto", "docs", "deploy", "package.json", "tsconfig.json"];

process.chdir(join(import.meta.dir, "../.."));
const home = `.cache/mutate-${process.pid}`;
process.exit(await main().finally(() => rmSync(home, { recursive: true, force: true })));

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: {
      "one-of": { type: "string", default: "1" },
      floor: { type: "string", default: "85" },
      minutes: { type: "string", default: "600" },
    },
    allowPositionals: true,
  });
  const files = [...new Bun.Glob("src/policy/**/*.ts").scanSync(".")]
    .filter((file) => positionals.length === 0 || positionals.some((it) => file.startsWith(it)))
    .toSorted();
  const all = files
    .flatMap(mutantsOf)
    .filter(({ hash }) => hash % BigInt(values["one-of"]) === 0n)
    // If time is short, of every file some.
    .toSorted((one, other) => compared(one.hash, other.hash));
  const deadlineMs = performance.now() + Number(values.minutes) * 60_000;
  const waiting = all.values();
  const survivors: Mutant[] = [];
  let tried = 0;
  await Promise.all(
    cpus().map(async (_, lane) => {
      const tree = copyOfTree(String(lane));
      if (!(await passes(tree, "src/policy/kubelet")))
        throw new Error("the tests fail as they are");
      for (const mutant of waiting) {
        if (performance.now() > deadlineMs) return;
        if (await survives(mutant, tree)) survivors.push(mutant);
        tried += 1;
      }
    }),
  );
  for (const { file, line, shown } of survivors)
    console.log(`${file}:${line} survived\n    ${shown}`);
  const killed = tried - survivors.length;
  const score = (100 * killed) / Math.max(1, tried);
  const failed = score >= Number(values.floor) ? 0 : Math.max(1, survivors.length);
  console.log(
    `mutate: ${tried} of ${all.length} mutants tried, ${killed} killed, ${score.toFixed(1)} %`,
  );
  console.log(`${killed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

/** Of code alone: comments, imports, types and text in quotes are no rules. */
function mutantsOf(file: string): readonly Mutant[] {
  const source = readFileSync(file, "utf8");
  const lines = source.split("\n");
  return lines.flatMap((text, index) => {
    if (/^\s*(?:\/\/|\/\*|\*|import\b|export \{|(?:export )?type\b|\| )/.test(text)) return [];
    const masked = (quoted: string): string =>
      quoted.replaceAll(/\$\{[^}]*\}|[^]/g, (it) => (it.length > 1 ? it : "·"));
    const code = text.replaceAll(/"[^"]*"|`[^`]*`/g, masked);
    return operators.flatMap(([from, to]) =>
      [...code.matchAll(from)].map(({ index: at, 0: found }) => {
        const mutated = text.slice(0, at) + to + text.slice(at + found.length);
        return {
          file,
          line: index + 1,
          text: lines.with(index, mutated).join("\n"),
          shown: mutated.trim(),
          hash: Bun.hash.wyhash(`${file}\n${mutated.trim()}`),
        };
      }),
    );
  });
}

function copyOfTree(name: string): string {
  const tree = join(home, name);
  mkdirSync(tree, { recursive: true });
  for (const path of copied) cpSync(path, join(tree, path), { recursive: true });
  symlinkSync(join(process.cwd(), "node_modules"), join(tree, "node_modules"));
  return tree;
}

async function survives({ file, text }: Mutant, tree: string): Promise<boolean> {
  writeFileSync(join(tree, file), text);
  const survived = await passes(tree, file);
  cpSync(file, join(tree, file));
  return survived;
}

async function passes(tree: string, source: string): Promise<boolean> {
  const tests = ["./test/policy"];
  if (source.startsWith("src/policy/kubelet")) tests.push("./test/conformance");
  const child = Bun.spawn([process.execPath, "test", "--bail", ...tests], {
    cwd: tree,
    stdio: ["ignore", "ignore", "ignore"],
    timeout: HANG_MS,
    killSignal: "SIGKILL",
  });
  return (await child.exited) === 0;
}
