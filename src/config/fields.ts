/** Looks up the table of flags, which drives parsing, help, completion, validation and documentation. */
import type { InferOutput } from "valibot";

import { assert } from "../model/errors.ts";
import { FLAG_TABLE } from "./table.ts";
import type { FieldEntry } from "./types.ts";

export interface Field extends FieldEntry {
  readonly flag: string;
}

/** `image-gc-high-threshold` for `imageGCHighThresholdPercent`. */
const flagOf = (name: string): string =>
  name
    .replace(/Percent$/, "")
    .replace(".", "-")
    .replaceAll(/([a-z])([A-Z])/g, "$1-$2")
    .replaceAll(/([A-Z])([A-Z][a-z])/g, "$1-$2")
    .toLowerCase();

/** `CRIGC_IMAGE_GC_HIGH_THRESHOLD` and its alternatives, highest precedence first. */
export const variablesOf = (field: Field): readonly string[] => [
  ...[field.flag, ...(field.aliases ?? [])].map(
    (flag) => `CRIGC_${flag.toUpperCase().replaceAll("-", "_")}`,
  ),
  ...(field.variables ?? []),
];

/** The default as shown in help: its text, or its words if it has none. */
export const defaultWords = (field: Field): string => field.default ?? field.defaultWords ?? "none";

/** Placeholder of the value in help: `PERCENT`, `auto|cri|none`. */
export const placeholderOf = ({ type, placeholder }: Field): string =>
  placeholder ?? type.placeholder;

/** `--image-gc-high-threshold`, `-v`. */
export const dashed = (flag: string): string => (flag.length === 1 ? `-${flag}` : `--${flag}`);

/** By configuration-file name. */
const fields = {
  ...FLAG_TABLE.Runtime,
  ...FLAG_TABLE["Image garbage collection"],
  ...FLAG_TABLE["Keep rules"],
  ...FLAG_TABLE["Containers and pods"],
  ...FLAG_TABLE["Disk pressure"],
  ...FLAG_TABLE.Directories,
  ...FLAG_TABLE.Timing,
  ...FLAG_TABLE.Agent,
  ...FLAG_TABLE["Configuration and output"],
};

export type FieldName = keyof typeof fields;

/** All values, typed by the table. */
export type Values = {
  readonly [Name in FieldName]: InferOutput<(typeof fields)[Name]["type"]["schema"]>;
};

export const isFieldName = (name: string): name is FieldName => Object.hasOwn(fields, name);

export const fieldNames: readonly FieldName[] = Object.keys(fields).filter(isFieldName);

const table = new Map<FieldName, Field>(
  fieldNames.map((name) => [name, { flag: flagOf(name), ...fields[name] }]),
);

export function fieldOf(name: FieldName): Field {
  const field = table.get(name);
  assert(field !== undefined, name);
  return field;
}

export const fieldGroups: readonly (readonly [heading: string, names: readonly FieldName[]])[] =
  Object.entries(FLAG_TABLE).map(([heading, members]) => [
    heading,
    Object.keys(members).filter(isFieldName),
  ]);

/** By flag without dashes, including aliases. */
export const fieldByFlag: ReadonlyMap<string, FieldName> = new Map(
  fieldNames.flatMap((name) =>
    [fieldOf(name).flag, ...(fieldOf(name).aliases ?? [])].map((flag) => [flag, name] as const),
  ),
);

export const fieldByVariable: ReadonlyMap<string, FieldName> = new Map(
  fieldNames.flatMap((name) =>
    variablesOf(fieldOf(name)).map((variable) => [variable, name] as const),
  ),
);

/** `imageMinimumGCAge (--minimum-image-ttl-duration)`: a field in messages. */
export const namedInFull = (name: FieldName): string => `${name} (${dashed(fieldOf(name).flag)})`;
