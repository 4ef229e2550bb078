// The tidy checks: each takes sources and returns one sentence for each thing that is wrong.

import { posix } from "node:path";

import { folderRules, SHARED_FILES } from "./table.ts";

export type Source = {
  /** Relative to the top of the project, with forward slashes. */
  readonly path: string;
  readonly text: string;
  /** The text with comments and the contents of strings as spaces. */
  readonly code: string;
  readonly imports: readonly string[];
};

export function source(path: string, text: string): Source {
  const code = text.replace(TEXTS, (it) => it.replace(/[^\n"']/g, " "));
  const imports = Array.from(code.matchAll(IMPORT), ({ 0: found, index }) => {
    const start = index + found.length;
    return text.slice(start + 1, code.indexOf(code.charAt(start), start + 1));
  });
  return { path, text, code, imports };
}

// Templates are read as code: at worst a check takes their text for it.
const TEXTS = /\/\*[^]*?\*\/|\/\/.*|(["'])(?:\\.|(?!\1)[^\\\n])*\1/g;
// Type-only imports, dynamic ones and `typeof import(…)` count as much as any other.
const IMPORT =
  /(?<![.\w$])(?:(?:import|export)\b[^;'"`()]*?\bfrom\s*|import\s*|(?:import|require)\s*\(\s*)(?=["'])/g;
const BUN = /(?<![.\w$])Bun\s*[.[]/;

/** Imports, and uses of the global Bun, that the table does not allow. */
export function forbiddenImports(sources: readonly Source[]): readonly string[] {
  const holders = new Map<string, string>();
  return sources.flatMap((file) => {
    const folder = folderOf(file.path);
    const rule = folderRules[folder];
    if (rule === undefined) return [`${file.path} is in no folder of the import table`];
    const isAllowed = (name: string): boolean => {
      if (matches(name, [folder, ...SHARED_FILES, ...rule.folders, ...rule.packages])) return true;
      if (!matches(name, rule.oneFile ?? [])) return false;
      if (!holders.has(folder)) holders.set(folder, file.path);
      return holders.get(folder) === file.path;
    };
    return [
      ...file.imports
        .filter((it) => it.startsWith(".") && !/\.\w+$|\/deploy\//.test(it))
        .map((it) => `${file.path} imports "${it}" without its extension`),
      ...namesUsed(file)
        .filter((name) => !isAllowed(name))
        .map((name) => `${file.path} uses ${name}, which the table does not allow`),
    ];
  });
}

/** What the table allows and no source needs. */
export function unusedGrants(sources: readonly Source[]): readonly string[] {
  const used = Map.groupBy(sources, ({ path }) => folderOf(path));
  return Object.entries(folderRules).flatMap(([folder, rule]) => {
    const names = (used.get(folder) ?? []).flatMap(namesUsed);
    return [...rule.folders, ...rule.packages, ...(rule.oneFile ?? [])]
      .filter((grant) => !names.some((name) => matches(name, [grant])))
      .map((grant) => `no file of ${folder} uses ${grant}: take it out of the table`);
  });
}

/** Folders and packages that a file imports; the global Bun counts as one. */
const namesUsed = (file: Source): readonly string[] => [
  ...file.imports.map((it) => (it.startsWith(".") ? importedFrom(file, resolved(file, it)) : it)),
  ...(BUN.test(file.code) ? ["Bun"] : []),
];

const importedFrom = (file: Source, path: string): string => {
  const isShared = SHARED_FILES.includes(path) && folderOf(path) !== folderOf(file.path);
  return isShared ? path : folderOf(path);
};

const matches = (name: string, patterns: readonly string[]): boolean =>
  patterns.some((it) =>
    it === "*"
      ? folderRules[name] !== undefined
      : it.endsWith("*")
        ? name.startsWith(it.slice(0, -1))
        : name === it,
  );

/** Source files that no other source file imports. */
export function unusedFiles(sources: readonly Source[]): readonly string[] {
  const imported = new Set(sources.flatMap((it) => it.imports.map((name) => resolved(it, name))));
  return sources
    .filter(({ path }) => path !== "src/main.ts" && !path.endsWith(".d.ts") && !imported.has(path))
    .map(({ path }) => `${path} is imported by no file of src`);
}

const RE_EXPORT = /(?<![.\w$])export\b[^;'"`()=]*?\bfrom\s*["']/;
const PROCESS = /(?<![.\w$])process\s*(?:\?\.|[.[])|\bBun\.(?:env|argv)\b|\bimport\.meta\.env\b/;

export const misstyled = (sources: readonly Source[]): readonly string[] =>
  sources.flatMap(({ path, text, code }) => [
    ...(RE_EXPORT.test(code) ? [`${path} re-exports: import from the file itself`] : []),
    ...(path !== "src/main.ts" && PROCESS.test(code)
      ? [`${path} uses the process: take it as a parameter or a port that main.ts fills`]
      : []),
    ...(/^(?:#![^\n]*\n)?\/(?:\/ \S|\*\*)/.test(text)
      ? []
      : [`${path} does not open with a sentence on its job`]),
  ]);

const resolved = (file: Source, specifier: string): string =>
  posix.join(posix.dirname(file.path), specifier);

/** The folder of src that a path is in, "main" for src/main.ts, else its first component. */
function folderOf(path: string): string {
  const [top = "", second = top] = path.split("/");
  if (top !== "src") return top;
  return second === "main.ts" ? "main" : second;
}
