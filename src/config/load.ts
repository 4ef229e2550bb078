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
  const files = addFiles(builder, reader, chosenFiles(flags, env));
  builder.addEnvironment(env);
  builder.addFlags(flags);
  throwIfAny(builder.issues);
  const settings = builder.settings();
  return { settings, files, warnings: builder.warnings };
}

interface ConfigFile extends ChosenFile {
  readonly kind: "file" | "drop-in";
}

interface ChosenFile {
  readonly path: string;
  readonly required: boolean;
  /** " named by --config": where the path was set; "" for the default. */
  readonly namedBy: string;
}

/** The file and the directory that flags and variables name. */
function chosenFiles(flags: readonly FlagText[], env: Environment) {
  const naming = new SettingsBuilder();
  naming.addEnvironment(env);
  naming.addFlags(flags);
  const { values, sources } = naming.settings();
  const chosen = (name: "config" | "configDir", usual: string): ChosenFile => {
    const [place] = sources[name].from;
    const namedBy = place === undefined ? "" : ` named by ${place}`;
    return { path: values[name] ?? usual, required: values[name] !== null, namedBy };
  };
  return {
    file: chosen("config", DEFAULT_FILE),
    directory: chosen("configDir", DEFAULT_DIRECTORY),
  };
}

/** Adds the file, then the drop-ins in the order of their names; returns the paths read. */
function addFiles(
  builder: SettingsBuilder,
  reader: ConfigReader,
  { file, directory }: ReturnType<typeof chosenFiles>,
): readonly string[] {
  const read = addFile(builder, reader, { ...file, kind: "file" }) ? [file.path] : [];
  const failed = (why: string): void => {
    const message = `cannot read the directory of drop-ins${directory.namedBy}: ${why}`;
    builder.issues.push(configIssue(directory.path, "", message));
  };
  let names: readonly string[] | null = null;
  try {
    names = reader.names(directory.path);
    if (names === null && directory.required) failed("it does not exist");
  } catch (thrown) {
    failed(messageOf(thrown));
  }
  const dropIns = (names ?? [])
    .filter(isDropIn)
    .toSorted()
    .map((name) => `${directory.path}/${name}`);
  for (const path of dropIns)
    addFile(builder, reader, { path, required: true, namedBy: "", kind: "drop-in" });
  return [...read, ...dropIns];
}

/** Ignores hidden files: an editor's copy, or the internals of a mounted ConfigMap. */
const isDropIn = (name: string): boolean =>
  /\.(?:yaml|yml|json|conf)$/.test(name) && !name.startsWith(".");

/** `false`: does not exist. */
function addFile(builder: SettingsBuilder, reader: ConfigReader, file: ConfigFile): boolean {
  const { path, kind, required, namedBy } = file;
  const { issues } = builder;
  let text: string | null = null;
  let why = "it does not exist";
  try {
    text = reader.file(path);
    if (text === null && !required) return false;
  } catch (thrown) {
    why = messageOf(thrown);
  }
  if (text === null) {
    issues.push(configIssue(path, "", `cannot read the configuration file${namedBy}: ${why}`));
    return true;
  }
  const document = parseDocument(path, text);
  issues.push(...document.issues);
  if (document.kind === "KubeletConfiguration") {
    builder.addFile(path, kind, fromKubelet(document.entries));
  } else builder.addFile(path, kind, document.entries);
  return true;
}

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
