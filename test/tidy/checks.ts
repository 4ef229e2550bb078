// The tidy checks: each takes sources and returns one sentence for each thing that is wrong.

import { posix } from "node:path";

import { lineAt, type Source } from "./source.ts";
import { type FolderRule, folderRules } from "./table.ts";

/** Imports that the table does not allow. */
export function forbiddenImports(sources: readonly Source[]): readonly string[] {
  const problems: string[] = [];
  const grants = new Grants();
  for (const file of sources) {
    const folder = folderOf(file.path);
    const rule = folderRules[folder];
    if (rule === undefined) {
      problems.push(`${file.path} is in no folder of the import table`);
      continue;
    }
    for (const { specifier, line } of file.imports) {
      const fault = isRelative(specifier)
        ? relativeFault({ file, specifier, rule })
        : packageFault({ file, name: specifier, rule, grants });
      if (fault !== undefined)
        problems.push(`${file.path}:${line} imports "${specifier}": ${fault}`);
    }
    const bun = file.code.search(BUN);
    if (bun >= 0) {
      const fault = packageFault({ file, name: "Bun", rule, grants });
      if (fault !== undefined)
        problems.push(`${file.path}:${lineAt(file.text, bun)} uses Bun: ${fault}`);
    }
  }
  return problems;
}

/** What the table allows and no source needs. */
export function unusedGrants(sources: readonly Source[]): readonly string[] {
  const used = Map.groupBy(sources, ({ path }) => folderOf(path));
  return Object.entries(folderRules).flatMap(([folder, rule]) => {
    const names = (used.get(folder) ?? []).flatMap(namesUsed);
    const isUsed = (grant: string): boolean =>
      grant === "*" || names.some((name) => matches(name, [grant]));
    return [...rule.folders, ...rule.packages, ...(rule.oneFile ?? [])]
      .filter((grant) => !isUsed(grant))
      .map((grant) => `no file of ${folder} uses ${grant}: take it out of the table`);
  });
}

const BUN = /(?<![.\w$])Bun\s*[.[]/;

/** Folders and packages that a file imports. */
const namesUsed = (file: Source): readonly string[] => [
  ...file.imports.map(({ specifier }) =>
    isRelative(specifier) ? folderOf(resolved(file, specifier)) : specifier,
  ),
  ...(BUN.test(file.code) ? ["Bun"] : []),
];

/** Which file of a folder uses what the table grants to one file only. */
class Grants {
  readonly #holders = new Map<string, string>();

  holder(folder: string, path: string): string {
    const known = this.#holders.get(folder);
    if (known === undefined) this.#holders.set(folder, path);
    return known ?? path;
  }
}

function relativeFault(about: {
  file: Source;
  specifier: string;
  rule: FolderRule;
}): string | undefined {
  const { file, specifier, rule } = about;
  if (!/\.\w+$/.test(specifier)) return "name the file with its extension";
  const folder = folderOf(resolved(file, specifier));
  if (folder === folderOf(file.path) || rule.folders.includes("*") || rule.folders.includes(folder))
    return undefined;
  return `${folderOf(file.path)} may import ${listed(["itself", ...rule.folders])}`;
}

function packageFault(about: {
  file: Source;
  name: string;
  rule: FolderRule;
  grants: Grants;
}): string | undefined {
  const { file, name, rule, grants } = about;
  if (matches(name, rule.packages)) return undefined;
  const folder = folderOf(file.path);
  if (!matches(name, rule.oneFile ?? [])) return `${folder} may use ${listed(rule.packages)}`;
  const holder = grants.holder(folder, file.path);
  return holder === file.path ? undefined : `only one file of ${folder} may, and that is ${holder}`;
}

function matches(name: string, patterns: readonly string[]): boolean {
  return patterns.some((it) => (it.endsWith("*") ? name.startsWith(it.slice(0, -1)) : name === it));
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? "no packages" : names.join(", ");
}

/** Files that import each other in a circle, by any kind of import; one sentence a circle. */
export function importCycles(sources: readonly Source[]): readonly string[] {
  const edges = new Map(sources.map((file) => [file.path, importedPaths(file)]));
  const done = new Set<string>();
  const problems: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) problems.push([...trail.slice(start), path].join(" imports "));
    if (start >= 0 || done.has(path)) return;
    for (const next of edges.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) visit(path, []);
  return problems;
}

/** Source files that no other source file imports. */
export function unusedFiles(sources: readonly Source[]): readonly string[] {
  const imported = new Set(sources.flatMap((file) => importedPaths(file)));
  return sources
    .filter((file) => file.path !== "src/main.ts" && !imported.has(file.path))
    .map((file) => `${file.path} is imported by no file of src`);
}

// Spelled apart, so that this file does not hold what it looks for.
const markers = new RegExp(
  ["T-O-D-O", "F-I-X-M-E", "X-X-X", "H-A-C-K"]
    .map((it) => `\\b${it.replaceAll("-", "")}\\b`)
    .join("|"),
);

export function leftoverMarkers(sources: readonly Source[]): readonly string[] {
  return sources.flatMap((file) =>
    found(file, file.text, markers).map(
      ({ line, match }) =>
        `${file.path}:${line} says ${match}: do it, or write it down as an issue`,
    ),
  );
}

const RE_EXPORT = /(?<![.\w$])export\b[^;'"`()=]*?\bfrom\s*["']/;

export const reExports = (sources: readonly Source[]): readonly string[] =>
  sources.flatMap((file) =>
    found(file, file.code, RE_EXPORT).map(
      ({ line }) => `${file.path}:${line} re-exports: import from the file itself`,
    ),
  );

export const forbiddenGlobals = (sources: readonly Source[]): readonly string[] =>
  sources
    .filter(({ path }) => path !== "src/main.ts")
    .flatMap((file) =>
      found(file, file.code, PROCESS).map(
        ({ line, match }) =>
          `${file.path}:${line} uses ${match}: take it as a parameter or a port that main.ts fills`,
      ),
    );

const PROCESS = /(?<![.\w$])process\s*(?:\?\.|[.[])|\bBun\.(?:env|argv)\b|\bimport\.meta\.env\b/;

export function missingOpenings(sources: readonly Source[]): readonly string[] {
  return sources
    .filter((file) => !/^(?:#![^\n]*\n)?\/(?:\/ \S|\*\*)/.test(file.text))
    .map((file) => `${file.path} does not open with a sentence on its job`);
}

function found(
  file: Source,
  text: string,
  pattern: RegExp,
): readonly { line: number; match: string }[] {
  return [...text.matchAll(new RegExp(pattern, "g"))].map((match) => ({
    line: lineAt(file.text, match.index),
    match: match[0],
  }));
}

function importedPaths(file: Source): readonly string[] {
  return file.imports
    .filter((it) => isRelative(it.specifier))
    .map((it) => resolved(file, it.specifier));
}

function isRelative(specifier: string): boolean {
  return specifier.startsWith(".") || specifier.startsWith("/");
}

function resolved(file: Source, specifier: string): string {
  return posix.join(posix.dirname(file.path), specifier);
}

/** The folder of src that a path is in, "main" for src/main.ts, else its first component. */
function folderOf(path: string): string {
  const [top, second] = path.split("/");
  if (top !== "src") return top ?? path;
  return second === "main.ts" ? "main" : (second ?? top);
}
