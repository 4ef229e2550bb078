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
  readonly parseFile: (
    text: string,
    source: string,
  ) => { readonly rules: readonly KeepRule[]; readonly problems: readonly KeepProblem[] };
  readonly parsePattern: (
    text: string,
  ) => { readonly kind: "valid" } | { readonly kind: "invalid"; readonly message: string };
}

/** A list of images has some hundred lines; anything beyond these limits is not one. */
const fileBytesMax = 4 * 1024 * 1024;
const filesMax = 1000;

export async function readKeepRules(request: KeepRulesRequest): Promise<KeepRules> {
  const flags = rulesOfFlags(request);
  const files = await rulesOfDirectory(request);
  return {
    rules: [...flags.rules, ...files.rules],
    problems: [...flags.problems, ...files.problems],
    directoriesRead: files.rules.length > 0 ? [request.directory] : [],
  };
}

interface Found {
  readonly rules: readonly KeepRule[];
  readonly problems: readonly KeepProblem[];
}

function rulesOfFlags({ patterns, infraImages, parsePattern }: KeepRulesRequest): Found {
  const read = (those: readonly string[], source: string): Found => {
    const rules: KeepRule[] = [];
    const problems: KeepProblem[] = [];
    for (const pattern of those) {
      const parsed = parsePattern(pattern);
      if (parsed.kind === "valid") rules.push({ pattern, source });
      else problems.push({ source, message: parsed.message });
    }
    return { rules, problems };
  };
  const { rules, problems } = read(patterns, "--keep");
  const infra = read(infraImages, "--pod-infra-container-image");
  return { rules, problems: [...problems, ...infra.problems] };
}

async function rulesOfDirectory(request: KeepRulesRequest): Promise<Found> {
  const { directory } = request;
  let names: readonly string[];
  try {
    names = (await readdir(directory)).filter((name) => !isLeftover(name)).toSorted();
  } catch (error) {
    return { rules: [], problems: directoryProblems(request, error) };
  }
  if (names.length > filesMax) {
    const message = `the directory has ${names.length} files; the maximum is ${filesMax}: merge them`;
    return { rules: [], problems: [{ source: directory, message }] };
  }
  const found = await Promise.all(names.map((name) => rulesOfFile(request, name)));
  return {
    rules: found.flatMap((it) => it.rules),
    problems: found.flatMap((it) => it.problems),
  };
}

/** A missing default directory has no rules, unless there were some before. */
function directoryProblems(request: KeepRulesRequest, error: unknown): readonly KeepProblem[] {
  const { directory, isNamed, known } = request;
  const source = directory;
  if (codeOf(error) !== "ENOENT")
    return [
      { source, message: `the directory cannot be read: ${reasonOf(error)}${asRoot(error)}` },
    ];
  if (isNamed)
    return [{ source, message: "the directory that --keep-dir names does not exist: create it" }];
  if (known.includes(directory)) {
    const message =
      "the directory no longer exists, but had keep rules: restore it, or create it empty to drop them";
    return [{ source, message }];
  }
  return [];
}

async function rulesOfFile(request: KeepRulesRequest, name: string): Promise<Found> {
  const path = join(request.directory, name);
  const problem = (message: string): Found => ({
    rules: [],
    problems: [{ source: path, message }],
  });
  // Under the name as text, crigc would not find the file.
  if (name.includes("\uFFFD")) return problem("the file's name is not UTF-8: rename it");
  try {
    if (!name.endsWith(".list"))
      return problem(
        (await stat(path)).isDirectory()
          ? "crigc does not read subdirectories: move its lists into the keep directory itself"
          : "crigc reads only files that end in .list: rename it, or move it elsewhere",
      );
    const text = await readBounded(path);
    return text.kind === "text" ? request.parseFile(text.text, path) : problem(text.message);
  } catch (error) {
    return problem(`the file cannot be read: ${reasonOf(error)}${asRoot(error)}`);
  }
}

type Text =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "refused"; readonly message: string };

async function readBounded(path: string): Promise<Text> {
  // Opening a pipe without a writer would block.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const found = await file.stat();
  if (!found.isFile())
    return { kind: "refused", message: "it is not a regular file: replace it with a list" };
  if (found.size > fileBytesMax) {
    const message = `the file has ${found.size} bytes; the maximum is ${fileBytesMax}: split it`;
    return { kind: "refused", message };
  }
  return decoded(await file.readFile());
}

function decoded(bytes: Uint8Array): Text {
  try {
    // The byte order mark is left for the parser, which handles it.
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return { kind: "text", text: decoder.decode(bytes) };
  } catch {
    return { kind: "refused", message: "the file is not UTF-8 text: rewrite it" };
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

/** `nowNs`: a clock that does not jump. Flags are never half-written, so their rules end at once. */
export function steadyKeepRules(read: Read, nowNs: () => bigint): Read {
  let remembered: ReadonlyMap<string, Remembered> = new Map();
  return async (known) => {
    const found = await read(known);
    const now = nowNs();
    const here = new Map(found.rules.map((rule) => [keyOf(rule), { rule, missingSinceNs: null }]));
    const missing = [...remembered]
      .filter(([key, { rule }]) => !here.has(key) && rule.source.startsWith("/"))
      .map(([key, { rule, missingSinceNs }]) => {
        return [key, { rule, missingSinceNs: missingSinceNs ?? now }] as const;
      })
      .filter(([, { missingSinceNs }]) => now - missingSinceNs < LINGER_NS);
    remembered = new Map<string, Remembered>([...here, ...missing]);
    return { ...found, rules: [...found.rules, ...missing.map(([, { rule }]) => rule)] };
  };
}

/** A rule whose line has moved is the same rule. */
const keyOf = ({ pattern, source }: KeepRule): string =>
  `${pattern}\n${source.replace(/:\d+$/, "")}`;
