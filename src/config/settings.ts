/** The values of all sources added up, from defaults to flags, with the place where each was set. */
import { type ConfigIssue, configIssue } from "../model/errors.ts";
import type { Entry } from "./document.ts";
import {
  dashed,
  defaultWords,
  fieldByVariable,
  type FieldName,
  fieldNames,
  fieldOf,
  type Values,
  variablesOf,
} from "./fields.ts";
import {
  type FieldValue,
  isList,
  isStatements,
  type Parsed,
  parseText,
  parseValue,
  printed,
  shownText,
} from "./types.ts";
import { described, suggestion } from "./words.ts";

export interface Settings {
  readonly values: Values;
  readonly sources: Readonly<Record<FieldName, Source>>;
}

export interface Source {
  /** From the lowest to the highest; `kubelet`: a default derived from this node's kubelet. */
  readonly kind: "default" | "kubelet" | "file" | "drop-in" | "environment" | "flag";
  /** Where it was set: for lists and maps that add up, every place; empty for a default. */
  readonly from: readonly string[];
}

interface Place {
  readonly kind: Exclude<Source["kind"], "default" | "kubelet">;
  /** `/etc/crigc/crigc.yaml:12`, `CRIGC_KEEP_PER_REPOSITORY`, `--keep-per-repository`. */
  readonly at: string;
}

export interface FlagText {
  readonly name: FieldName;
  /** `--image-minimum-gc-age`: the name used, with dashes. */
  readonly written: string;
  readonly text: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** By configuration-file names, for the documents `Config` and `Status`. */
export const valuesOf = ({ values, sources }: Settings) =>
  fieldNames.map((field) => {
    const { kind: source, from } = sources[field];
    const { type } = fieldOf(field);
    const text =
      source === "default" ? defaultWords(fieldOf(field)) : shownText(type, values[field]);
    return { field, value: printed(type, values[field]), text, source, from };
  });

/** For messages and tables. */
export const shown = ({ values }: Settings, name: FieldName): string =>
  shownText(fieldOf(name).type, values[name]);

/** The table's default, parsed like a flag. */
export function defaultOf(name: FieldName): FieldValue {
  const { type, default: text = "" } = fieldOf(name);
  if (type.kind === "list") return [];
  const parsed = parseText(type, text);
  return parsed.kind === "value" ? parsed.value : null;
}

/** More issues do not help, and each may search for a suggestion. */
const FILE_ISSUES_MAX = 50;

/** Takes the sources in their order; each method adds what is wrong in one to `issues`. */
export class SettingsBuilder {
  readonly issues: ConfigIssue[] = [];
  readonly warnings: string[] = [];
  readonly #values = new Map<FieldName, FieldValue>();
  readonly #sources = new Map<FieldName, Source>();

  constructor() {
    for (const name of fieldNames) this.#reset(name);
  }

  settings(): Settings {
    // Every name has a value, parsed by its own type.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- so the table's types hold
    const values = Object.fromEntries(this.#values) as unknown as Values;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the constructor set every name
    const sources = Object.fromEntries(this.#sources) as Settings["sources"];
    return { values, sources };
  }

  /** `null` drops the sources below it. Stops after many issues. */
  addFile(path: string, kind: "file" | "drop-in", entries: readonly Entry[]): void {
    const before = this.issues.length;
    for (const [index, { name, value, line }] of entries.entries()) {
      if (this.issues.length - before === FILE_ISSUES_MAX) {
        const rest = entries.length - index;
        const message = `${FILE_ISSUES_MAX} invalid fields, ${rest} more not checked; is this a configuration file?`;
        this.issues.push(configIssue(path, "", message));
        return;
      }
      const at = `${path}:${line}`;
      const known = fieldNames.find((it) => it === name && fieldOf(it).outsideFiles !== true);
      if (known === undefined) this.issues.push(unknownField(name, value, at));
      else if (value === null) this.#reset(known);
      else {
        const parsed = parseValue(fieldOf(known).type, value);
        this.#add(known, { kind, at }, { text: described(value), parsed });
      }
    }
  }

  /** An empty variable counts as unset. Unknown `CRIGC_` variables only give a warning. */
  addEnvironment(environment: Environment): void {
    for (const name of fieldNames) {
      const { type } = fieldOf(name);
      const at = variablesOf(fieldOf(name)).find((it) => (environment[it] ?? "") !== "");
      const text = at === undefined ? undefined : environment[at];
      if (at === undefined || text === undefined) continue;
      const texts = type.kind === "list" ? text.split(/[,\s]+/).filter((it) => it !== "") : [text];
      for (const each of texts) this.#addText(name, { kind: "environment", at }, each);
    }
    for (const variable of Object.keys(environment)) {
      if (!variable.startsWith("CRIGC_") || fieldByVariable.has(variable)) continue;
      const near = suggestion(variable, fieldByVariable.keys());
      this.warnings.push(`unknown environment variable ${variable}${near}`);
    }
  }

  /** The last of repeated flags wins; lists and maps of signals add up. */
  addFlags(flags: readonly FlagText[]): void {
    for (const { name, written, text } of flags)
      this.#addText(name, { kind: "flag", at: written }, text);
  }

  #addText(name: FieldName, place: Place, text: string): void {
    this.#add(name, place, { text, parsed: parseText(fieldOf(name).type, text) });
  }

  /** A message names both field and flag, whichever was used. */
  #add(
    name: FieldName,
    place: Place,
    { text, parsed }: { readonly text: string; readonly parsed: Parsed },
  ): void {
    if (parsed.kind === "value") {
      this.#set(name, place, parsed.value);
      return;
    }
    const { message } = parsed;
    const { kind, at } = place;
    const flag = `flag ${dashed(fieldOf(name).flag)}`;
    const words = {
      flag: `${message} (${name})`,
      environment: `${message} (${name}, ${flag})`,
      file: `${name}: ${message} (${flag})`,
    };
    this.issues.push(configIssue(at, text, words[kind === "drop-in" ? "file" : kind]));
  }

  #reset(name: FieldName): void {
    this.#values.set(name, defaultOf(name));
    this.#sources.set(name, { kind: "default", from: [] });
  }

  /** Lists of all sources add up; maps of signals only those of drop-ins, and of flags. */
  #set(name: FieldName, { kind, at }: Place, value: FieldValue): void {
    const before = this.#values.get(name) ?? null;
    const source = this.#sources.get(name);
    const patches = kind === "drop-in" || (kind === "flag" && source?.kind === "flag");
    const from = new Set([...(source?.from ?? []), at]);
    if (isList(value) && isList(before)) {
      this.#values.set(name, [...new Set([...before, ...value])]);
      this.#sources.set(name, { kind, from: [...from] });
    } else if (patches && isStatements(value) && isStatements(before)) {
      this.#values.set(name, { ...before, ...value });
      this.#sources.set(name, { kind, from: [...from] });
    } else {
      this.#values.set(name, value);
      this.#sources.set(name, { kind, from: [at] });
    }
  }
}

function unknownField(name: string, value: unknown, at: string): ConfigIssue {
  const inner = fieldNames.filter((it) => it.startsWith(`${name}.`));
  if (inner.length > 0) {
    const text = described(value);
    const message = `${name}: ${text} is not a map; expected one of ${inner.join(", ")} in it`;
    return configIssue(at, text, message);
  }
  const known = fieldNames.filter((it) => fieldOf(it).outsideFiles !== true);
  const message = fieldNames.some((it) => it === name)
    ? `${name} cannot be set in a configuration file; use the flag or the environment variable`
    : `unknown field ${described(name)}${suggestion(name, known) || "; crigc config lists the fields"}`;
  return configIssue(at, name, message);
}
