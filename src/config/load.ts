/** Reads files, environment and flags into one configuration; the only file of the folder that touches the machine. */
import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";

import { ConfigError, type ConfigIssue, messageOf } from "../model/errors.ts";
import { type Environment, environmentLayer, flagLayer, type FlagText } from "./arguments.ts";
import { type Config, configOf } from "./config.ts";
import { takenApart } from "./document.ts";
import { type FieldName, fieldOf, namedInFull } from "./fields.ts";
import { fileLayer } from "./file-layer.ts";
import { fromKubelet } from "./kubelet.ts";
import { bareValues, type Merged, merged, type Sourced } from "./merge.ts";
import { emptyLayer, joined, type Layer } from "./setting.ts";
import { type Validated, validated } from "./validate.ts";
import { printedText } from "./value.ts";

export interface ConfigReader {
  /** `null`: there is no such file. Throws with the system's words, and for files that are too large or not regular. */
  readonly file: (path: string) => string | null;
  /** The names in a directory; `null`: there is none. */
  readonly names: (path: string) => readonly string[] | null;
}

export interface ConfigInput {
  readonly flags: readonly FlagText[];
  readonly env: Environment;
  readonly reader: ConfigReader;
  /** Of a process that reads its configuration again: what it has in force. What is bound to the process stays as it is there. */
  readonly running?: Config | null;
  /** Whether that process has reached its runtime; while it has not, nothing is bound to the sockets. Default true. */
  readonly connected?: boolean;
}

/** Taken once, when the runtime answers. */
const BOUND_BY_CONNECTION = [
  "containerRuntimeEndpoint",
  "imageServiceEndpoint",
  "runtimeRequestTimeout",
] as const satisfies readonly FieldName[];

/** Directories, addresses and modes that a process takes once, at its start. */
const BOUND_BY_START = [
  "podLogsDir",
  "containerLogsDir",
  "rootDir",
  "stateDir",
  "runDir",
  "metricsBindAddress",
  "compat",
  "dryRun",
] as const satisfies readonly FieldName[];

export const DEFAULT_FILE = "/etc/crigc/crigc.yaml";
export const DEFAULT_DIRECTORY = "/etc/crigc/conf.d";

/** Throws `ConfigError` with everything that is wrong, not only the first thing. */
export function loadConfig(input: ConfigInput): Config {
  const given = joined([environmentLayer(input.env), flagLayer(input.flags)]);
  const naming = merged(given.settings);
  const { config: named, configDir: namedDirectory } = bareValues(naming);
  const file = named ?? DEFAULT_FILE;
  const directory = namedDirectory ?? DEFAULT_DIRECTORY;
  const base = readFile(input.reader, {
    path: file,
    kind: "file",
    required: named !== null,
    namedBy: namedByOf(naming.config),
  });
  const dropIns = readDirectory(input.reader, {
    path: directory,
    required: namedDirectory !== null,
    namedBy: namedByOf(naming.configDir),
  });
  const all = joined([base.layer, ...dropIns.map(({ layer }) => layer), given]);
  if (all.issues.length > 0) throw new ConfigError(all.issues);

  const written = merged(all.settings);
  const checked = validated(written);
  if (checked.issues.length > 0) throw new ConfigError(checked.issues);
  const { together, waiting } = bound(written, input);
  return configOf({
    merged: together,
    validated: waiting.length === 0 ? checked : validatedWith(together, waiting),
    waiting,
    files: [base, ...dropIns].filter(({ present }) => present).map(({ path }) => path),
    watched: [file, directory],
    warnings: all.warnings,
  });
}

interface Bound {
  readonly together: Merged;
  /** Fields whose written value waits for the next start. */
  readonly waiting: readonly FieldName[];
}

function bound(written: Merged, { running = null, connected = true }: ConfigInput): Bound {
  if (running === null) return { together: written, waiting: [] };
  const fields = [...(connected ? BOUND_BY_CONNECTION : []), ...BOUND_BY_START];
  const textOf = (name: FieldName, all: Merged): string =>
    printedText(fieldOf(name).type, all[name].value);
  const waiting = fields.filter((name) => textOf(name, written) !== textOf(name, running.values));
  const stay = Object.fromEntries(waiting.map((name) => [name, running.values[name]]));
  return { together: { ...written, ...stay }, waiting };
}

/** What is written is valid by itself, and may still not go together with what the process began with. */
function validatedWith(together: Merged, waiting: readonly FieldName[]): Validated {
  const checked = validated(together);
  if (checked.issues.length === 0) return checked;
  const why = `${waiting.map(namedInFull).join(", ")} would take effect at the next start only: restart the agent`;
  throw new ConfigError(
    checked.issues.map((issue) => ({ ...issue, message: `${issue.message}; ${why}` })),
  );
}

interface FileRead {
  readonly path: string;
  readonly present: boolean;
  readonly layer: Layer;
}

interface WantedDirectory {
  readonly path: string;
  readonly required: boolean;
  /** " that --config names": what to look at where it is not there; "" for a path that nobody named. */
  readonly namedBy: string;
}

interface Wanted extends WantedDirectory {
  readonly kind: "file" | "drop-in";
}

const namedByOf = ({ from }: Sourced): string => {
  const last = from.at(-1);
  return last === undefined ? "" : ` that ${last} names`;
};

function readFile(reader: ConfigReader, { path, kind, required, namedBy }: Wanted): FileRead {
  const failed = (message: string): FileRead => ({
    path,
    present: true,
    layer: issueLayer(path, message),
  });
  let text: string | null;
  try {
    text = reader.file(path);
  } catch (thrown) {
    return failed(`could not read the configuration file${namedBy}: ${messageOf(thrown)}`);
  }
  if (text === null) {
    if (required)
      return failed(`could not read the configuration file${namedBy}: it does not exist`);
    return { path, present: false, layer: emptyLayer };
  }
  const content = parsed(text);
  if ("fault" in content) return failed(content.fault);
  const document = takenApart(path, text, content.value);
  if (document.kind === null)
    return { path, present: true, layer: { ...emptyLayer, issues: document.issues } };
  const { entries, warnings } =
    document.kind === "KubeletConfiguration"
      ? fromKubelet(path, document.entries)
      : { entries: document.entries, warnings: [] };
  const layer = fileLayer({ path, kind, entries });
  return {
    path,
    present: true,
    layer: {
      settings: layer.settings,
      issues: [...document.issues, ...layer.issues],
      warnings: [...warnings, ...layer.warnings],
    },
  };
}

const DROP_IN = /\.(?:yaml|yml|json|conf)$/;

function readDirectory(
  reader: ConfigReader,
  { path, required, namedBy }: WantedDirectory,
): readonly FileRead[] {
  const failed = (message: string): readonly FileRead[] => [
    { path, present: false, layer: issueLayer(path, message) },
  ];
  try {
    const names = reader.names(path);
    if (names === null)
      return required
        ? failed(`could not read the directory of drop-ins${namedBy}: it does not exist`)
        : [];
    return names
      .filter((name) => DROP_IN.test(name) && !name.startsWith("."))
      .toSorted(byBytes)
      .map((name) =>
        readFile(reader, { path: `${path}/${name}`, kind: "drop-in", required: true, namedBy: "" }),
      );
  } catch (thrown) {
    return failed(`could not read the directory of drop-ins${namedBy}: ${messageOf(thrown)}`);
  }
}

const byBytes = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

const issueLayer = (source: string, message: string): Layer => {
  const issue: ConfigIssue = { source, text: "", message };
  return { ...emptyLayer, issues: [issue] };
};

/** The parser itself refuses aliases that expand without end, and throws a RangeError where its stack would run over. */
function parsed(text: string): { readonly value: unknown } | { readonly fault: string } {
  try {
    return { value: Bun.YAML.parse(text) };
  } catch (thrown) {
    if (thrown instanceof RangeError)
      return { fault: "the file is nested too deeply; expected a map of settings" };
    return { fault: `the file is no YAML or JSON: ${messageOf(thrown)}${whereItBreaks(text)}` };
  }
}

/** Beyond this the search for the line would take too long for what it says. */
const SEARCHED_BYTES_MAX = 64 * 1024;

/**
 * The parser does not say where: the first line up to which the text cannot be parsed is found by halving. Of JSON no
 * beginning can be parsed, so that it says nothing.
 */
function whereItBreaks(text: string): string {
  if (text.length > SEARCHED_BYTES_MAX || /^\s*[{[]/.test(text)) return "";
  const lines = text.split("\n");
  let good = 0;
  let bad = lines.length;
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (isParsed(lines.slice(0, middle).join("\n"))) good = middle;
    else bad = middle;
  }
  return ` (near line ${bad})`;
}

function isParsed(text: string): boolean {
  try {
    Bun.YAML.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A configuration is a page or two; whatever is larger is another file. */
const FILE_BYTES_MAX = 1024 * 1024;

export const diskReader: ConfigReader = {
  file: (path) => {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return null;
    if (!found.isFile()) throw new Error("it is not a regular file");
    if (found.size > FILE_BYTES_MAX)
      throw new Error(`it has ${found.size} bytes, at most ${FILE_BYTES_MAX} are read`);
    return decoded(readBounded(path));
  },
  names: (path) =>
    statSync(path, { throwIfNoEntry: false }) === undefined ? null : readdirSync(path),
};

/** A file may grow between stat and read. */
function readBounded(path: string): Uint8Array {
  const bytes = new Uint8Array(FILE_BYTES_MAX + 1);
  const file = openSync(path, "r");
  try {
    let length = 0;
    for (;;) {
      const count = readSync(file, bytes, length, bytes.length - length, null);
      length += count;
      if (length > FILE_BYTES_MAX) throw new Error(`at most ${FILE_BYTES_MAX} bytes are read`);
      if (count === 0) return bytes.subarray(0, length);
    }
  } finally {
    closeSync(file);
  }
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error("it is not UTF-8 text");
  }
}
