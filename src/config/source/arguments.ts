/** The layers of flags and of environment variables. */
import type { ConfigIssue } from "../../model/errors.ts";
import { type FieldValue, isList, isStatements, placeholderOf, variablesOf } from "../field.ts";
import { fieldByVariable, type FieldName, fieldNames, fieldOf } from "../fields.ts";
import { parseText } from "../value/value.ts";
import { suggestion } from "./nearest.ts";
import { type Layer, type Place, type Setting, settingOf, valueIssue } from "./setting.ts";

export interface FlagText {
  readonly name: FieldName;
  /** `--image-minimum-gc-age`: the name used, with dashes. */
  readonly written: string;
  readonly text: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

interface Written {
  readonly name: FieldName;
  readonly place: Place;
  readonly text: string;
}

/** The last of repeated flags wins; lists and maps of signals add up. */
export function flagLayer(flags: readonly FlagText[]): Layer {
  const written = flags.map((flag): Written => ({
    name: flag.name,
    place: { kind: "flag", at: flag.written },
    text: flag.text,
  }));
  const layer = layerOf(written.filter((flag) => !isForgotten(flag)));
  return { ...layer, issues: [...layer.issues, ...written.filter(isForgotten).map(forgotten)] };
}

/** Otherwise an unset variable of a script would silently drop a keep pattern, or a whole file of settings. */
const NEVER_EMPTY: readonly FieldName[] = ["keep", "config", "configDir"];

const isForgotten = ({ name, text }: Written): boolean => text === "" && NEVER_EMPTY.includes(name);

const forgotten = ({ name, place, text }: Written): ConfigIssue =>
  valueIssue({
    name,
    place,
    text,
    message: `the value is empty; expected ${placeholderOf(fieldOf(name))}, or leave the flag out`,
  });

/** An empty variable counts as unset. Unknown `CRIGC_` variables only give a warning. */
export function environmentLayer(environment: Environment): Layer {
  const layer = layerOf(fieldNames.flatMap((name) => writtenIn(environment, name)));
  const unknown = Object.keys(environment).filter(
    (variable) => variable.startsWith("CRIGC_") && !fieldByVariable.has(variable),
  );
  return {
    ...layer,
    warnings: unknown.map(
      (variable) =>
        `unknown environment variable ${variable}${suggestion(variable, fieldByVariable.keys())}`,
    ),
  };
}

function writtenIn(environment: Environment, name: FieldName): readonly Written[] {
  const field = fieldOf(name);
  const variable = variablesOf(field).find((it) => (environment[it] ?? "") !== "");
  const text = variable === undefined ? undefined : environment[variable];
  if (variable === undefined || text === undefined) return [];
  const texts =
    field.type.kind === "list" ? text.split(/[,\s]+/).filter((it) => it !== "") : [text];
  return texts.map((each) => ({ name, place: { kind: "environment", at: variable }, text: each }));
}

function layerOf(written: readonly Written[]): Layer {
  const settings = new Map<FieldName, Setting>();
  const issues: ConfigIssue[] = [];
  for (const { name, place, text } of written) {
    const parsed = parseText(fieldOf(name).type, text);
    if (parsed.kind === "fault") {
      issues.push(valueIssue({ name, place, text, message: parsed.message }));
      continue;
    }
    const before = settings.get(name)?.change;
    const value = before?.kind === "set" ? added(before.value, parsed.value) : parsed.value;
    settings.set(name, settingOf(name, place, value));
  }
  return { settings: [...settings.values()], issues, warnings: [] };
}

function added(before: FieldValue, value: FieldValue): FieldValue {
  if (isList(before) && isList(value)) return [...before, ...value];
  if (isStatements(before) && isStatements(value)) return { ...before, ...value };
  return value;
}
