/** Loads files, environment and flags into one configuration. The only file of this folder that reads the machine. */
import { readdirSync, readFileSync, statSync } from "node:fs";

import { configIssue, messageOf } from "../model/errors.ts";
import { isMap, once } from "../model/values.ts";
import { type Config, configOf, throwIfAny, type Written } from "./config.ts";
import { type Entry, parseDocument } from "./document.ts";
import { isDiskSignal, isKnownSignal } from "./eviction.ts";
import { fieldNames, fieldOf, isFieldName } from "./fields.ts";
import { type Environment, type FlagText, SettingsBuilder } from "./settings.ts";
import { parseDuration } from "./units.ts";

export interface ConfigReader {
  /** `null`: not found. Throws with the system's message, also for files that are too large or not regular. */
  readonly file: (path: string) => string | null;
  /** The names in a directory; `null`: not found. */
  readonly names: (path: string) => readonly string[] | null;
}

export interface ConfigInput {
  readonly flags: readonly FlagText[];
  readonly env: Environment;
  readonly reader: ConfigReader;
}

export const DEFAULT_FILE = "/etc/crigc/crigc.yaml";
export const DEFAULT_DIRECTORY = "/etc/crigc/conf.d";

/** For a configuration that is not about this node. */
export const loadConfig = (input: ConfigInput): Config => configOf(readWritten(input), () => false);

/** Each value by itself, for commands that load nothing too. Throws `ConfigError`. */
export function checkFlags(flags: readonly FlagText[]): void {
  const builder = new SettingsBuilder();
  builder.addFlags(flags);
  throwIfAny(builder.issues);
}

/** Throws `ConfigError` with all errors, not only the first one. */
export function readWritten({ flags, env, reader }: ConfigInput): Written {
  const builder = new SettingsBuilder();
  const files = addFiles(builder, { flags, env, reader });
  builder.addEnvironment(env);
  builder.addFlags(flags);
  throwIfAny(builder.issues);
  const settings = builder.settings();
  return { settings, files, warnings: builder.warnings };
}

/** Adds the file, then the drop-ins in the order of their names; returns the paths read. */
function addFiles(
  builder: SettingsBuilder,
  { flags, env, reader }: ConfigInput,
): readonly string[] {
  const naming = new SettingsBuilder();
  naming.addEnvironment(env);
  naming.addFlags(flags);
  const { values, sources } = naming.settings();
  const place = (name: "config" | "configDir", usual: string, what: string): Place => {
    const by = sources[name].from.slice(0, 1).map((it) => ` named by ${it}`);
    return {
      path: values[name] ?? usual,
      isNeeded: values[name] !== null,
      what: what + by.join(""),
    };
  };
  /** `null`: absent or unreadable, which is an issue if it is needed. */
  const found = <Content>(
    { path, isNeeded, what }: Place,
    contentOf: (path: string) => Content | null,
  ): Content | null => {
    let why = "it does not exist";
    try {
      const content = contentOf(path);
      if (content !== null || !isNeeded) return content;
    } catch (thrown) {
      why = messageOf(thrown);
    }
    builder.issues.push(configIssue(path, "", `cannot read ${what}: ${why}`));
    return null;
  };
  const add = (kind: "file" | "drop-in", file: Place): readonly string[] => {
    const text = found(file, reader.file);
    if (text === null) return [];
    const { issues, entries, kind: of } = parseDocument(file.path, text);
    builder.issues.push(...issues);
    builder.addFile(
      file.path,
      kind,
      of === "KubeletConfiguration" ? fromKubelet(entries) : entries,
    );
    return [file.path];
  };
  const what = "the configuration file";
  const read = add("file", place("config", DEFAULT_FILE, what));
  const directory = place("configDir", DEFAULT_DIRECTORY, "the directory of drop-ins");
  const dropIns = (found(directory, reader.names) ?? [])
    .filter(isDropIn)
    .toSorted()
    .map((name) => ({ path: `${directory.path}/${name}`, isNeeded: true, what }));
  return [...read, ...dropIns.flatMap((it) => add("drop-in", it))];
}

interface Place {
  readonly path: string;
  readonly isNeeded: boolean;
  /** With the flag or variable that names it. */
  readonly what: string;
}

/** Ignores hidden files: an editor's copy, or the internals of a mounted ConfigMap. */
const isDropIn = (name: string): boolean =>
  /\.(?:yaml|yml|json|conf)$/.test(name) && !name.startsWith(".");

const ADOPTED: readonly string[] = fieldNames.filter((name) => fieldOf(name).kubelet === true);

/** The entries of a KubeletConfiguration that crigc adopts; in it null, "" and a duration of zero count as missing. */
const fromKubelet = (entries: readonly Entry[]): readonly Entry[] =>
  entries
    .filter(({ name, value }) => ADOPTED.includes(name) && value !== null && value !== "")
    .flatMap((entry) => {
      const { name, value } = entry;
      if (!isFieldName(name)) return [];
      const { kind } = fieldOf(name).type;
      if (kind === "duration" && parseDuration(String(value)) === 0n) return [];
      return [kind === "statements" && isMap(value) ? { ...entry, value: disksOf(value) } : entry];
    });

/** Without the kubelet's signals that are not about disks. */
const disksOf = (
  statements: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(statements).filter(([signal]) => isDiskSignal(signal) || !isKnownSignal(signal)),
  );

/** Reads each file once: a process keeps the configuration of its start. */
export const rememberedReader = ({ file, names }: ConfigReader): ConfigReader => ({
  file: remembered(file),
  names: remembered(names),
});

function remembered<Content>(read: (path: string) => Content) {
  const known = new Map<string, () => Content>();
  return (path: string): Content => known.getOrInsertComputed(path, () => once(() => read(path)))();
}

/** A configuration has a page or two; anything larger is another file. */
const FILE_BYTES_MAX = 1024 * 1024;

export const diskReader: ConfigReader = {
  file: (path) => {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return null;
    if (!found.isFile()) throw new Error("it is not a regular file");
    if (found.size > FILE_BYTES_MAX)
      throw new Error(`it has ${found.size} bytes; the maximum is ${FILE_BYTES_MAX}`);
    const bytes = readFileSync(path);
    if (bytes.length > FILE_BYTES_MAX) throw new Error(`it has more than ${FILE_BYTES_MAX} bytes`);
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
      throw new Error("it is not UTF-8 text");
    }
  },
  names: (path) =>
    statSync(path, { throwIfNoEntry: false }) === undefined ? null : readdirSync(path),
};
