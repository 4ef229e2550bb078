// Reads the keep rules for each pass, from flags and the files of the keep directory; errors become problems, and are
// never thrown.

import { constants } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";

import type { KeepProblem, KeepRule, KeepRules } from "../model/snapshot.ts";
import { asRoot, codeOf, reasonOf } from "./files.ts";

export interface KeepRulesRequest {
  /** `--keep-dir`, or its default. */
  readonly directory: string;
  /** Whether the operator named the directory, so that it has to exist. */
  readonly isNamed: boolean;
  /** `--keep`, as given. */
  readonly patterns: readonly string[];
  /** `--pod-infra-container-image`, as given: no rules, but one that names no image would keep none either. */
  readonly infraImages: readonly string[];
  /** Directories from which rules were read before: one of them has to exist as well. */
  readonly known: readonly string[];
  readonly parseFile: (text: string, source: string) => Rules;
  readonly parsePattern: (
    text: string,
  ) => { readonly kind: "valid" } | { readonly kind: "invalid"; readonly message: string };
}

interface Rules {
  readonly rules: readonly KeepRule[];
  readonly problems: readonly KeepProblem[];
}

/** A list of images has some hundred lines; anything beyond these limits is not one. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;
const FILES_MAX = 1000;

export async function readKeepRules(request: KeepRulesRequest): Promise<KeepRules> {
  const { patterns, infraImages, parsePattern } = request;
  const invalid = (those: readonly string[], source: string): readonly KeepProblem[] =>
    those.flatMap((text) => {
      const parsed = parsePattern(text);
      return parsed.kind === "valid" ? [] : [{ source, message: parsed.message }];
    });
  const files = await rulesOfDirectory(request);
  const valid = patterns.filter((pattern) => parsePattern(pattern).kind === "valid");
  return {
    rules: [...valid.map((pattern) => ({ pattern, source: "--keep" })), ...files.rules],
    problems: [
      ...invalid(patterns, "--keep"),
      ...invalid(infraImages, "--pod-infra-container-image"),
      ...files.problems,
    ],
    directoriesRead: files.rules.length > 0 ? [request.directory] : [],
  };
}

const problem = (source: string, message: string): Rules => ({
  rules: [],
  problems: [{ source, message }],
});

async function rulesOfDirectory(request: KeepRulesRequest): Promise<Rules> {
  const { directory, isNamed, known, parseFile } = request;
  let names: readonly string[];
  try {
    names = (await readdir(directory)).filter((name) => !isLeftover(name)).toSorted();
  } catch (error) {
    if (codeOf(error) !== "ENOENT")
      return problem(directory, `the directory cannot be read: ${reasonOf(error)}${asRoot(error)}`);
    if (isNamed)
      return problem(directory, "the directory that --keep-dir names does not exist: create it");
    // A missing default directory has no rules, unless there were some before.
    return known.includes(directory)
      ? problem(
          directory,
          "the directory no longer exists, but had keep rules: restore it, or create it empty to drop them",
        )
      : { rules: [], problems: [] };
  }
  if (names.length > FILES_MAX)
    return problem(
      directory,
      `the directory has ${names.length} files; the maximum is ${FILES_MAX}: merge them`,
    );
  const found = await Promise.all(
    names.map(async (name) => {
      const path = join(directory, name);
      try {
        return parseFile(await textOf(path), path);
      } catch (error) {
        const message =
          error instanceof Unusable
            ? error.message
            : `the file cannot be read: ${reasonOf(error)}${asRoot(error)}`;
        return problem(path, message);
      }
    }),
  );
  return {
    rules: found.flatMap((it) => it.rules),
    problems: found.flatMap((it) => it.problems),
  };
}

/** The file can be read, but is not a list. */
class Unusable extends Error {}

async function textOf(path: string): Promise<string> {
  // Under the name as text, crigc would not find the file.
  if (path.includes("\uFFFD")) throw new Unusable("the file's name is not UTF-8: rename it");
  if (!path.endsWith(".list"))
    throw new Unusable(
      (await stat(path)).isDirectory()
        ? "crigc does not read subdirectories: move its lists into the keep directory itself"
        : "crigc reads only files that end in .list: rename it, or move it elsewhere",
    );
  // Opening a pipe without a writer would block.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const found = await file.stat();
  if (!found.isFile()) throw new Unusable("it is not a regular file: replace it with a list");
  if (found.size > FILE_BYTES_MAX)
    throw new Unusable(
      `the file has ${found.size} bytes; the maximum is ${FILE_BYTES_MAX}: split it`,
    );
  const bytes = await file.readFile();
  try {
    // The byte order mark is left for the parser, which handles it.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Unusable("the file is not UTF-8 text: rewrite it");
  }
}

// Copies that editors and package managers leave next to a file: neither lists nor mistakes.
const LEFTOVER =
  /~$|\.(?:bak|orig|swp|swo|dpkg-(?:old|dist|new|tmp|bak)|ucf-(?:old|new|dist)|rpm(?:new|save|orig)|apk-new|pac(?:new|save))$/;

const isLeftover = (name: string): boolean =>
  name.startsWith(".") || (name.startsWith("#") && name.endsWith("#")) || LEFTOVER.test(name);

/** Longer than editors, copies and configuration management take between truncating a file and writing its last line. */
const LINGER_NS = 10_000_000_000n;

type Read = (known: readonly string[]) => Promise<KeepRules>;

interface Remembered {
  readonly rule: KeepRule;
  /** `null`: the last reading had it. */
  readonly missingSinceNs: bigint | null;
}

/**
 * Keep rules that outlive the rewriting of a file: a rule missing from a file remains in force until it has been missing
 * for a while. `nowNs`: a clock that does not jump. Flags are never half-written, so their rules end at once.
 */
export function steadyKeepRules(read: Read, nowNs: () => bigint): Read {
  let remembered: ReadonlyMap<string, Remembered> = new Map();
  return async (known) => {
    const found = await read(known);
    const now = nowNs();
    const next = new Map<string, Remembered>();
    for (const rule of found.rules) next.set(keyOf(rule), { rule, missingSinceNs: null });
    const missing: KeepRule[] = [];
    for (const [key, { rule, missingSinceNs }] of remembered) {
      const sinceNs = missingSinceNs ?? now;
      if (next.has(key) || !rule.source.startsWith("/") || now - sinceNs >= LINGER_NS) continue;
      next.set(key, { rule, missingSinceNs: sinceNs });
      missing.push(rule);
    }
    remembered = next;
    return { ...found, rules: [...found.rules, ...missing] };
  };
}

/** A rule whose line has moved is the same rule. */
const keyOf = ({ pattern, source }: KeepRule): string =>
  `${pattern}\n${source.replace(/:\d+$/, "")}`;
