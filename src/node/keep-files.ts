/**
 * Keep rules, from flags and the files of the keep directory: read for each pass, with errors as problems that are never
 * thrown. Two small files of the state directory record that the keep directory had rules, and that `keep baseline --once`
 * has run.
 */

import { isUtf8 } from "node:buffer";
import { constants, readFileSync } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";

import { messageOf } from "../model/errors.ts";
import type { KeepRules } from "../model/snapshot.ts";
import { parsedJson } from "../model/values.ts";
import { adviceOn, boundedBytes, codeOf, hostError, reasonOf, writeWholeFile } from "./files.ts";

export interface KeepRulesRequest {
  /** `--keep-dir`, or its default. */
  readonly directory: string;
  /** Whether the operator named the directory, so that it has to exist. */
  readonly isNamed: boolean;
  /** `--keep`, as given. */
  readonly patterns: readonly string[];
  /** `--pod-infra-container-image`, as given. An invalid one is a problem too, because it would keep nothing. */
  readonly infraImages: readonly string[];
  /** Whether the directory has had rules, so that it has to exist as well. Throws `HostError` if that cannot be read. */
  readonly hadRules: () => boolean;
  readonly parseFile: (text: string, source: string) => KeepRules;
  readonly parsePattern: (
    text: string,
  ) => { readonly kind: "valid" } | { readonly kind: "invalid"; readonly message: string };
}

/** A list of images has some hundred lines; anything beyond this limit is not one. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;

export async function readKeepRules(request: KeepRulesRequest): Promise<KeepRules> {
  const { patterns, infraImages, parsePattern } = request;
  const rulesOf = (source: string, pattern: string): KeepRules => {
    const parsed = parsePattern(pattern);
    if (parsed.kind === "invalid") return problem(source, parsed.message);
    return { rules: [{ pattern, source }], problems: [] };
  };
  const infra = infraImages.map((image) => rulesOf("--pod-infra-container-image", image));
  return joined([
    ...patterns.map((pattern) => rulesOf("--keep", pattern)),
    // Names of images, which another rule keeps.
    ...infra.map(({ problems }) => ({ rules: [], problems })),
    await rulesOfDirectory(request),
  ]);
}

const joined = (all: readonly KeepRules[]): KeepRules => ({
  rules: all.flatMap(({ rules }) => rules),
  problems: all.flatMap(({ problems }) => problems),
});

const problem = (source: string, message: string): KeepRules => ({
  rules: [],
  problems: [{ source, message }],
});

async function rulesOfDirectory(request: KeepRulesRequest): Promise<KeepRules> {
  const { directory, isNamed, hadRules, parseFile } = request;
  const fault = (message: string): KeepRules => problem(directory, message);
  let names: readonly string[];
  try {
    names = (await readdir(directory)).filter((name) => !isLeftover(name)).toSorted();
  } catch (error) {
    if (codeOf(error) !== "ENOENT")
      return fault(`the directory cannot be read: ${reasonOf(error)}${adviceOn(error)}`);
    if (isNamed) return fault("the directory that --keep-dir names does not exist: create it");
    // A missing default directory has no rules, unless there were some before.
    try {
      if (!hadRules()) return { rules: [], problems: [] };
    } catch (unread) {
      return fault(
        `the directory does not exist, and may have had keep rules: ${messageOf(unread)}`,
      );
    }
    return fault(
      "the directory no longer exists, but had keep rules: restore it, or create it empty to drop them",
    );
  }
  return joined(
    await Promise.all(names.map((name) => rulesOfFile(join(directory, name), parseFile))),
  );
}

async function rulesOfFile(path: string, parse: KeepRulesRequest["parseFile"]): Promise<KeepRules> {
  const fault = (message: string): KeepRules => problem(path, message);
  // Under the name as text, crigc would not find the file.
  if (path.includes("\uFFFD")) return fault("the file's name is not UTF-8: rename it");
  try {
    const facts = await stat(path);
    if (facts.isDirectory())
      return fault(
        "crigc does not read subdirectories: move its lists into the keep directory itself",
      );
    if (!path.endsWith(".list"))
      return fault("crigc reads only files that end in .list: rename it, or move it elsewhere");
    // Opening a pipe blocks, and opening a device may do anything.
    if (!facts.isFile()) return fault("it is not a regular file: replace it with a list");
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    // Files of /proc have a size of 0 and may be endless.
    const chunks = file.createReadStream({ end: FILE_BYTES_MAX, autoClose: false });
    const bytes = await boundedBytes(chunks, FILE_BYTES_MAX);
    if (!isUtf8(bytes)) return fault("the file is not UTF-8 text: rewrite it");
    return parse(bytes.toString(), path);
  } catch (error) {
    return fault(`the file cannot be read: ${reasonOf(error)}${adviceOn(error)}`);
  }
}

// Copies that editors and package managers leave next to a file: neither lists nor mistakes.
const LEFTOVER =
  /~$|\.(?:bak|orig|swp|swo|dpkg-(?:old|dist|new|tmp|bak)|ucf-(?:old|new|dist)|rpm(?:new|save|orig)|apk-new|pac(?:new|save))$/;

const isLeftover = (name: string): boolean =>
  name.startsWith(".") || (name.startsWith("#") && name.endsWith("#")) || LEFTOVER.test(name);

/* Marks: small files of the state directory, each with a JSON text. */

const HAD_RULES = "keep-directory.json";
const BASELINE = "keep-baseline.json";

/** `null`: there is none. One that is not a JSON text is there: as it is. Throws `HostError` `read`. */
function markIn(stateDir: string, file: string): string | null {
  const written = readKeepFile(join(stateDir, file));
  const mark = written === null ? null : parsedJson(written);
  return typeof mark === "string" ? mark : written;
}

/** Survives a crash. Throws `HostError` `write`. */
const setMark = (stateDir: string, file: string, mark: string): void =>
  writeWholeFile(join(stateDir, file), `${JSON.stringify(mark)}\n`);

/** When `keep baseline --once` ran; `null`: not yet. Throws `HostError`. */
export const baselineStamp = (stateDir: string): string | null => markIn(stateDir, BASELINE);
export const setBaselineStamp = (stateDir: string, at: string): void =>
  setMark(stateDir, BASELINE, at);

/** Whether rules were read from this directory. A damaged mark counts. Throws `HostError`. */
export const hadKeepRules = (stateDir: string, directory: string): boolean => {
  const known = markIn(stateDir, HAD_RULES);
  return known !== null && (known === directory || !known.startsWith("/"));
};

/** Records that rules were read from this directory. Throws `HostError`. */
export function setHadKeepRules(stateDir: string, directory: string): void {
  if (markIn(stateDir, HAD_RULES) !== directory) setMark(stateDir, HAD_RULES, directory);
}

/** `null`: it does not exist. Throws `HostError` `read`. */
export function readKeepFile(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw hostError("read", error, `cannot read ${path}`);
  }
}
