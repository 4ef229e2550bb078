/** Loads files, environment and flags into one configuration. The only file of this folder that reads the machine. */
import { readdirSync, readFileSync, statSync } from "node:fs";

import { ConfigError, type ConfigIssue, configIssue, messageOf } from "../model/errors.ts";
import { agentNotes, type RunningAgent, withAgent } from "./agent.ts";
import { type Config, configOf } from "./config.ts";
import { fromKubelet } from "./kubelet/kubelet.ts";
import {
  type Environment,
  environmentLayer,
  flagLayer,
  type FlagText,
} from "./source/arguments.ts";
import { parseDocument } from "./source/document.ts";
import { fileLayer } from "./source/file-layer.ts";
import { bareValues, merged, type Sourced } from "./source/merge.ts";
import { emptyLayer, joined, type Layer } from "./source/setting.ts";
import { validated } from "./validate.ts";
import type { Written } from "./written.ts";

export interface ConfigReader {
  /** `null`: not found. Throws with the system's message, also for files that are too large or not regular. */
  readonly file: (path: string) => string | null;
  /** The names in a directory; `null`: not found. */
  readonly names: (path: string) => readonly string[] | null;
}

export interface ConfigInput {
  /** For a command alongside a running agent: the agent's values, which only flags override. */
  readonly agent?: RunningAgent | null;
  readonly flags: readonly FlagText[];
  readonly env: Environment;
  readonly reader: ConfigReader;
}

export const DEFAULT_FILE = "/etc/crigc/crigc.yaml";
export const DEFAULT_DIRECTORY = "/etc/crigc/conf.d";

/** For a node without a kubelet, or a configuration that is not about this node. */
export const loadConfig = (input: ConfigInput): Config => configOf(readWritten(input), null);

/** Throws `ConfigError` with all errors, not only the first one. */
export function readWritten(input: ConfigInput): Written {
  const { environment, flags, file, directory } = placesOf(input);
  const base = readFile(input.reader, file);
  const dropIns = readDirectory(input.reader, directory);
  const own = joined([base.layer, ...dropIns.map(({ layer }) => layer), environment]);
  const agent = input.agent ?? null;
  const beside = agent === null ? own : withAgent(own, agent);
  const isOfAgent = agent !== null && "settings" in beside;
  const all = joined([isOfAgent ? beside : own, flags]);
  if (all.issues.length > 0) throw new ConfigError(all.issues);

  const written = merged(all.settings);
  const { issues } = validated(written);
  if (issues.length > 0) throw new ConfigError(issues);
  const notes = isOfAgent
    ? agentNotes(written, agent)
    : "message" in beside
      ? [unread(beside)]
      : [];
  return {
    merged: written,
    files: [base, ...dropIns].filter(({ present }) => present).map(({ path }) => path),
    warnings: [...all.warnings, ...notes],
    waiting: [],
    isOfAgent,
  };
}

/** From an agent of another version. */
const unread = ({ message }: ConfigIssue): string =>
  `using the configuration of this command, because that of the running agent is invalid in this version: ${message}`;

interface Places {
  readonly environment: Layer;
  readonly flags: Layer;
  readonly file: ConfigPath;
  readonly directory: ConfigDirectory;
}

/** The file and the directory that flags and variables name. */
function placesOf(input: ConfigInput): Places {
  const environment = environmentLayer(input.env);
  const flags = flagLayer(input.flags);
  const naming = merged([...environment.settings, ...flags.settings]);
  const { config: file, configDir: directory } = bareValues(naming);
  return {
    environment,
    flags,
    file: {
      path: file ?? DEFAULT_FILE,
      kind: "file",
      required: file !== null,
      namedBy: namedByOf(naming.config),
    },
    directory: {
      path: directory ?? DEFAULT_DIRECTORY,
      required: directory !== null,
      namedBy: namedByOf(naming.configDir),
    },
  };
}

interface FileRead {
  readonly path: string;
  readonly present: boolean;
  readonly layer: Layer;
}

interface ConfigDirectory {
  readonly path: string;
  readonly required: boolean;
  /** " named by --config": where the path was set; "" for the default. */
  readonly namedBy: string;
}

interface ConfigPath extends ConfigDirectory {
  readonly kind: "file" | "drop-in";
}

const namedByOf = ({ from }: Sourced): string => {
  const last = from.at(-1);
  return last === undefined ? "" : ` named by ${last}`;
};

function readFile(reader: ConfigReader, { path, kind, required, namedBy }: ConfigPath): FileRead {
  const failed = (message: string): FileRead => ({
    path,
    present: true,
    layer: issueLayer(path, message),
  });
  let text: string | null;
  try {
    text = reader.file(path);
  } catch (thrown) {
    return failed(`cannot read the configuration file${namedBy}: ${messageOf(thrown)}`);
  }
  if (text === null) {
    if (required) return failed(`cannot read the configuration file${namedBy}: it does not exist`);
    return { path, present: false, layer: emptyLayer };
  }
  const document = parseDocument(path, text);
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

/** Ignores hidden files: an editor's copy, or the internals of a mounted ConfigMap. */
const isDropIn = (name: string): boolean =>
  /\.(?:yaml|yml|json|conf)$/.test(name) && !name.startsWith(".");

function readDirectory(
  reader: ConfigReader,
  { path, required, namedBy }: ConfigDirectory,
): readonly FileRead[] {
  const failed = (message: string): readonly FileRead[] => [
    { path, present: false, layer: issueLayer(path, message) },
  ];
  try {
    const names = reader.names(path);
    if (names === null)
      return required
        ? failed(`cannot read the directory of drop-ins${namedBy}: it does not exist`)
        : [];
    return names
      .filter(isDropIn)
      .toSorted()
      .map((name) =>
        readFile(reader, { path: `${path}/${name}`, kind: "drop-in", required: true, namedBy: "" }),
      );
  } catch (thrown) {
    return failed(`cannot read the directory of drop-ins${namedBy}: ${messageOf(thrown)}`);
  }
}

const issueLayer = (source: string, message: string): Layer => ({
  ...emptyLayer,
  issues: [configIssue(source, "", message)],
});

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
    return decoded(bytes);
  },
  names: (path) =>
    statSync(path, { throwIfNoEntry: false }) === undefined ? null : readdirSync(path),
};

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error("it is not UTF-8 text");
  }
}
