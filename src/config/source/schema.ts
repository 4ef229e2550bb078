/** The valibot schema of each type of the table, for values in configuration files. */
import * as v from "valibot";

import type { FieldType, FieldValue } from "../field.ts";
import {
  checkedStatements,
  expected,
  integerIn,
  isOptional,
  type Parsed,
  parseText,
  quoted,
} from "../value/value.ts";

export type FileSchema = v.GenericSchema<unknown, FieldValue>;

/** Numbers, booleans, lists and maps are those of the file's own syntax; everything else is the text of the flag. */
export function fileSchema(type: FieldType): FileSchema {
  const mismatch: Mismatch = (issue) => `${described(issue.input)} is not ${expectedInFile(type)}`;
  const text = v.pipe(
    v.string(mismatch),
    read((input: string) => parseText(type, input)),
  );
  const worded = innermost(mismatch);
  switch (type.kind) {
    case "integer": {
      const number = v.pipe(
        v.number(mismatch),
        read((input: number) => integerIn(type, input, String(input))),
      );
      return isOptional(type) ? v.union([number, off], worded) : number;
    }
    case "duration": {
      const zero = v.pipe(
        v.literal(0),
        read(() => parseText(type, "0")),
      );
      return v.union([text, zero], worded);
    }
    case "size": {
      const bytes = v.pipe(
        v.number(),
        v.safeInteger(),
        read((input: number) => parseText(type, String(input))),
      );
      return v.union([text, bytes], worded);
    }
    case "boolean":
      return v.boolean(mismatch);
    case "list":
      return v.union([v.array(v.string()), one], mismatch);
    case "statements":
      return v.pipe(
        // A list is a record too, and an empty one would switch every threshold off.
        v.custom((input) => !Array.isArray(input), mismatch),
        v.record(v.string(), v.string(notText), mismatch),
        read((input: Readonly<Record<string, string>>) => checkedStatements(type.of, input)),
      );
    case "choice":
    case "endpoint":
    case "url":
    case "address":
    case "path":
      return text;
  }
}

type Mismatch = (issue: { readonly input: unknown }) => string;

/** A list of one may be written as its text. */
const one = v.pipe(
  v.string(),
  v.transform((input) => (input === "" ? [] : [input])),
);

/** Quotes are asked for because `15` would be 15 bytes where 15 percent is meant. */
const notText = (issue: { readonly input: unknown }): string =>
  `${described(issue.input)} is not a string such as "10%" or "1Gi"`;

const off = v.pipe(
  v.literal("off"),
  v.transform(() => null),
);

/** A pipe's step that reads by our own rules and words the fault itself. */
const read = <Input>(reading: (input: Input) => Parsed): v.RawTransformAction<Input, FieldValue> =>
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const parsed = reading(dataset.value);
    if (parsed.kind === "value") return parsed.value;
    addIssue({ message: parsed.message });
    return NEVER;
  });

/** Of a union whose option took the type and refused the value, that option's message. */
const innermost =
  (mismatch: Mismatch) =>
  (issue: v.UnionIssue<v.BaseIssue<unknown>>): string =>
    issue.issues?.find((inner) => inner.kind === "transformation")?.message ?? mismatch(issue);

export function expectedInFile(type: FieldType): string {
  if (type.kind !== "statements") return expected(type);
  return "a map of signals to strings, such as {nodefs.available: 10%}";
}

/** A value of a file in a few words. */
export function described(value: unknown): string {
  if (typeof value === "string") return quoted(value);
  if (value === null || typeof value === "number" || typeof value === "boolean")
    return String(value);
  return Array.isArray(value) ? "a list" : "a map";
}
