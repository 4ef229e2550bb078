// The mutants of sources, and a copy of the tree in which each of them can be switched on.

import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";

export type Mutant = {
  readonly id: string;
  readonly file: string;
  readonly mutator: string;
  /** Of the source, from 1. */
  readonly line: number;
  readonly from: string;
  readonly to: string;
  /** What identifies it where lines above it come and go. */
  readonly key: string;
  /** The whole source with the mutant in it. */
  readonly text: string;
};

/** What the tests of rules may read beside sources. */
const copied = ["src", "test", "proto", "docs", "package.json", "tsconfig.json", "bunfig.toml"];

type Source = { readonly name: string; readonly content: string };
type Planting = {
  readonly files: readonly Source[];
  readonly mutants: readonly Planted[];
};
/** Of what is used here; its own declarations do not pass our compiler. */
type Package = {
  readonly Instrumenter: new (logger: object) => {
    instrument(files: readonly object[], options: object): Promise<Planting>;
  };
};
const require = createRequire(import.meta.url);
const { Instrumenter } = require("@stryker-mutator/instrumenter") as Package;

const silent = new Proxy({}, { get: () => () => false });

/** Writes the tree with every mutant of `files` switched off, and says which mutants there are. */
export async function plantMutants(
  files: readonly string[],
  tree: string,
): Promise<readonly Mutant[]> {
  rmSync(tree, { recursive: true, force: true });
  mkdirSync(tree, { recursive: true });
  for (const path of copied) cpSync(path, join(tree, path), { recursive: true });
  symlinkSync(join(process.cwd(), "node_modules"), join(tree, "node_modules"));
  redirectTests(tree);
  const instrumenter = new Instrumenter(silent);
  const sources = files.map((name) => ({
    name,
    content: readFileSync(name, "utf8"),
    mutate: true,
  }));
  const options = { ignorers: [], excludedMutations: [], plugins: null };
  const result = await instrumenter.instrument(sources, options);
  for (const { name, content } of result.files) writeFileSync(join(tree, name), content);
  forgetBetweenTests(tree);
  const texts = new Map(sources.map(({ name, content }) => [name, content]));
  return result.mutants
    .map((one) => described(one, texts.get(one.fileName) ?? ""))
    .filter((mutant) => !isProse(mutant) && !choosesBetweenEquals(mutant));
}

/** Sentences that are gone: how they read is for people to judge, and tests quote those that matter. */
function isProse({ mutator, from }: Mutant): boolean {
  const words = from.replaceAll(/\$\{[^}]*\}/g, "x").split(" ");
  return mutator === "StringLiteral" && words.length >= 3;
}

/** The smaller or larger of two, their distance, or which of them comes first: where both are equal, the same either way. */
function choosesBetweenEquals({ from, to, text }: Mutant): boolean {
  const flat = text.replaceAll(/\s+/g, " ");
  const [, left = "", operator = "", right = ""] = /^(.+) ([<>]=?) (.+)$/.exec(from) ?? [];
  const shifted = operator.endsWith("=") ? operator.slice(0, -1) : `${operator}=`;
  if (operator === "" || to !== `${left} ${shifted} ${right}`) return false;
  return [
    `${to} ? ${left} : ${right}`,
    `${to} ? ${right} : ${left}`,
    `${to} ? ${left} - ${right} : 0n`,
    `${to} ? ${left} - ${right} : ${right} - ${left}`,
    `${to} ? -1 : 1`,
    `${to} ? 1 : -1`,
    `if (${to}) ${left} = ${right};`,
    `if (${to}) ${right} = ${left};`,
  ].some((choice) => flat.includes(choice));
}

/** What was made of an object of the tests, by the source or another mutant, is not what this mutant makes of it. */
function forgetBetweenTests(tree: string): void {
  for (const path of new Bun.Glob("src/{policy,gc}/**/*.ts").scanSync(tree)) {
    const text = readFileSync(join(tree, path), "utf8");
    if (text.includes("new WeakMap"))
      writeFileSync(join(tree, path), text.replaceAll("new WeakMap", "new ForgetfulMap"));
  }
}

/** Tests register with the stand-in, which can run them again and again. */
function redirectTests(tree: string): void {
  const standIn = join(tree, "test/stand-in.ts");
  cpSync(join(import.meta.dir, "stand-in.ts"), standIn);
  for (const path of new Bun.Glob("test/**/*.ts").scanSync(tree)) {
    const file = join(tree, path);
    if (file === standIn) continue;
    const text = readFileSync(file, "utf8");
    if (!text.includes('from "bun:test"')) continue;
    const target = relative(dirname(file), standIn);
    const specifier = target.startsWith(".") ? target : `./${target}`;
    writeFileSync(file, text.replaceAll('from "bun:test"', `from "${specifier}"`));
  }
}

type Place = { readonly line: number; readonly column: number };
type Planted = {
  readonly id: string;
  readonly fileName: string;
  readonly mutatorName: string;
  readonly location: { readonly start: Place; readonly end: Place };
  readonly replacement: string;
};

function described(mutant: Planted, source: string): Mutant {
  const lines = source.split("\n");
  const offset = ({ line, column }: Place): number =>
    lines.slice(0, line).reduce((sum, one) => sum + one.length + 1, 0) + column;
  const { start, end } = mutant.location;
  const from = source.slice(offset(start), offset(end));
  const to = mutant.replacement;
  const text = source.slice(0, offset(start)) + to + source.slice(offset(end));
  const key = [lines[start.line] ?? "", from, to].map(brief).join(" | ");
  const { id, fileName: file, mutatorName: mutator } = mutant;
  return { id, file, mutator, line: start.line + 1, from, to, key, text };
}

const brief = (text: string): string => {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return flat.length > 90 ? `${flat.slice(0, 60)} … ${flat.slice(-27)}` : flat;
};
