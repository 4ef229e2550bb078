// Keep rules, from flags and the files of the keep directory: read for each pass, with errors as problems that are never
// thrown; and changed under a lock.

import { isUtf8 } from "node:buffer";
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
} from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

import { HostError } from "../model/errors.ts";
import type { KeepProblem, KeepRule, KeepRules } from "../model/snapshot.ts";
import { asRoot, codeOf, hostError, reasonOf, writeWholeFile } from "./files.ts";
import { tryFlock, unlockFlock } from "./libc.ts";

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
  const fault = (message: string): Rules => problem(directory, message);
  let names: readonly string[];
  try {
    names = (await readdir(directory)).filter((name) => !isLeftover(name)).toSorted();
  } catch (error) {
    if (codeOf(error) !== "ENOENT")
      return fault(`the directory cannot be read: ${reasonOf(error)}${asRoot(error)}`);
    if (isNamed) return fault("the directory that --keep-dir names does not exist: create it");
    // A missing default directory has no rules, unless there were some before.
    if (!known.includes(directory)) return { rules: [], problems: [] };
    return fault(
      "the directory no longer exists, but had keep rules: restore it, or create it empty to drop them",
    );
  }
  if (names.length > FILES_MAX)
    return fault(
      `the directory has ${names.length} files; the maximum is ${FILES_MAX}: merge them`,
    );
  const found = await Promise.all(
    names.map((name) => rulesOfFile(join(directory, name), parseFile)),
  );
  return {
    rules: found.flatMap((it) => it.rules),
    problems: found.flatMap((it) => it.problems),
  };
}

async function rulesOfFile(path: string, parse: KeepRulesRequest["parseFile"]): Promise<Rules> {
  const fault = (message: string): Rules => problem(path, message);
  // Under the name as text, crigc would not find the file.
  if (path.includes("\uFFFD")) return fault("the file's name is not UTF-8: rename it");
  try {
    if (!path.endsWith(".list"))
      return fault(
        (await stat(path)).isDirectory()
          ? "crigc does not read subdirectories: move its lists into the keep directory itself"
          : "crigc reads only files that end in .list: rename it, or move it elsewhere",
      );
    // Opening a pipe without a writer would block.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const found = await file.stat();
    if (!found.isFile()) return fault("it is not a regular file: replace it with a list");
    if (found.size > FILE_BYTES_MAX)
      return fault(`the file has ${found.size} bytes; the maximum is ${FILE_BYTES_MAX}: split it`);
    const bytes = await file.readFile();
    if (!isUtf8(bytes)) return fault("the file is not UTF-8 text: rewrite it");
    return parse(bytes.toString(), path);
  } catch (error) {
    return fault(`the file cannot be read: ${reasonOf(error)}${asRoot(error)}`);
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
const keyOf = ({ pattern, source, lease }: KeepRule): string =>
  `${pattern}\n${lease?.text ?? ""}\n${source.replace(/:\d+$/, "")}`;

/** The new text of a file, and a result. */
export interface TextChange<T> {
  /** `null`: leave it as it is. */
  readonly text: string | null;
  readonly answer: T;
}

/**
 * Concurrent commands lose no change. `change` gets `null` if the file does not exist; of a link, its target is changed.
 * Throws `HostError` `read` or `write`, and what `change` throws.
 */
export function changeKeepFile<T>(
  named: string,
  change: (before: string | null) => TextChange<T>,
  waitMs = 10_000,
): T {
  const path = targetOf(named);
  const fd = lockDotfile(path, waitMs);
  try {
    const { text, answer } = change(readKeepFile(path));
    if (text !== null) writeWholeFile(path, text);
    return answer;
  } finally {
    unlockFlock(fd);
    closeSync(fd);
  }
}

function targetOf(path: string): string {
  try {
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return isLink ? realpathSync(path) : path;
  } catch (error) {
    throw notWritten(path, error, "the target of the link: ");
  }
}

export function readKeepFile(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw hostError("read", error, (why) => `cannot read ${path}: ${why}${asRoot(error)}`);
  }
}

const notWritten = (path: string, error: unknown, what = ""): HostError =>
  hostError("write", error, (why) => `cannot write ${path}: ${what}${why}${asRoot(error)}`);

const PAUSE_MS = 20;

/**
 * Locks a dotfile, which keep directories ignore, and which is unreadable to others, who could hold a lock on the
 * directory itself forever.
 */
function lockDotfile(path: string, waitMs: number): number {
  let fd: number;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    const lock = join(dirname(path), `.${basename(path)}.lock`);
    fd = openSync(lock, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  } catch (error) {
    throw notWritten(path, error);
  }
  for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
    const result = tryFlock(fd);
    if (result.kind === "locked") return fd;
    if (result.kind === "held" && waitedMs < waitMs) Bun.sleepSync(PAUSE_MS);
    else {
      closeSync(fd);
      const why =
        result.kind === "held"
          ? "another crigc is changing it; try again"
          : `the filesystem refuses locks (error ${result.errno})`;
      throw new HostError("write", `cannot write ${path}: ${why}`);
    }
  }
}
