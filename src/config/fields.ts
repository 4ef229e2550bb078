/** The one table of flags: it drives parsing, help, completion, validation and documentation. */
import type { InferOutput } from "valibot";

import { assert } from "../model/errors.ts";
import { dashed, type Field, fieldFrom, variablesOf } from "./field.ts";
import { imageFields, keepFields, runtimeFields } from "./fields/images.ts";
import {
  agentFields,
  containerFields,
  directoryFields,
  outputFields,
  paceFields,
  pressureFields,
} from "./fields/node.ts";

/** By heading of help and documentation, in order. */
const GROUPS = {
  Runtime: runtimeFields,
  "Image garbage collection": imageFields,
  "Keep rules": keepFields,
  "Containers and pods": containerFields,
  "Disk pressure": pressureFields,
  Directories: directoryFields,
  Timing: paceFields,
  Agent: agentFields,
  "Configuration and output": outputFields,
};

/** By configuration-file name; a dot means a nested map. */
export const fields = {
  ...runtimeFields,
  ...imageFields,
  ...keepFields,
  ...containerFields,
  ...pressureFields,
  ...directoryFields,
  ...paceFields,
  ...agentFields,
  ...outputFields,
} as const;

export type FieldName = keyof typeof fields;

/** All values, typed by the table. */
export type Values = {
  readonly [Name in FieldName]: InferOutput<(typeof fields)[Name]["type"]["schema"]>;
};

export const isFieldName = (name: string): name is FieldName => Object.hasOwn(fields, name);

export const fieldNames: readonly FieldName[] = Object.keys(fields).filter(isFieldName);

const table = new Map(fieldNames.map((name) => [name, fieldFrom(name, fields[name])]));

export function fieldOf(name: FieldName): Field {
  const field = table.get(name);
  assert(field !== undefined, name);
  return field;
}

export const fieldGroups: readonly (readonly [heading: string, names: readonly FieldName[]])[] =
  Object.entries(GROUPS).map(([heading, members]) => [
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
