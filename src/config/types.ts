/** The types of the flag table: one schema each, what is expected, and how values are parsed and printed. */
import * as v from "valibot";

import type { Duration } from "../model/time.ts";
import { isMap } from "../model/values.ts";
import {
  operatorOf,
  splitStatements,
  statementFault,
  type StatementKind,
  type Statements,
} from "./eviction.ts";
import { formatDuration, formatQuantity, parseDuration, parseSize } from "./units.ts";
import { described, quoted } from "./words.ts";

export type FieldValue = number | bigint | boolean | string | readonly string[] | Statements | null;

export interface FieldType<Value extends FieldValue = FieldValue> {
  readonly kind:
    | "integer"
    | "duration"
    | "size"
    | "boolean"
    | "choice"
    | "endpoint"
    | "url"
    | "address"
    | "path"
    /** Texts that add up over all sources, so that no keep pattern is lost. */
    | "list"
    | "statements";
  /** What is valid, for messages and documentation: `a whole number from 0 to 100`. */
  readonly expected: string;
  /** Of the value in help. */
  readonly placeholder: string;
  /** In a file, where that differs. */
  readonly expectedInFile?: string;
  /** Of the value in a file. */
  readonly schema: v.GenericSchema<unknown, Value>;
  /** `off` and an empty text mean none. */
  readonly optional?: true;
  readonly choices?: readonly string[];
  readonly pathOf?: "file" | "directory";
  readonly statements?: StatementKind;
}

/** An entry of the flag table. */
export interface FieldEntry {
  /** Without dashes. Determines the environment variable. Absent: the field's name in lower case with dashes. */
  readonly flag?: string;
  readonly aliases?: readonly string[];
  /** Environment variables after `CRIGC_…`. */
  readonly variables?: readonly string[];
  readonly type: FieldType;
  /** In the syntax of the flag; absent: none. */
  readonly default?: string;
  /** Description of a missing default; absent: "none". */
  readonly defaultWords?: string;
  /** Placeholder of the value in help, if not that of its type. */
  readonly placeholder?: string;
  /** One line without a full stop. */
  readonly help: string;
  /** Full sentences: meaning, consequences, related settings. */
  readonly doc: string;
  /** About the process, so that a command which an agent runs cannot change it. */
  readonly ofProcess?: true;
  /** A `KubeletConfiguration` has this field under the same name, and crigc adopts it. */
  readonly kubelet?: true;
  /** For a value: what other fields then have. It also turns off the defaults beside a kubelet. */
  readonly implies?: Readonly<Record<string, Readonly<Record<string, FieldValue>>>>;
  /** Invalid in configuration files. */
  readonly outsideFiles?: true;
}

export const optional = <Value extends FieldValue>(
  type: FieldType<Value>,
): FieldType<Value | null> => ({
  ...type,
  optional: true,
  expected: ["path", "endpoint"].includes(type.kind) ? type.expected : `${type.expected}, or off`,
  schema: v.nullable(type.schema),
});

const INT32_MAX = 2_147_483_647;

export const integer = (minimum: number, maximum = INT32_MAX): FieldType<number> => ({
  kind: "integer",
  placeholder: "N",
  expected: `a whole number from ${minimum} to ${maximum}`,
  schema: v.pipe(v.number(), v.integer(), v.minValue(minimum), v.maxValue(maximum)),
});

export const percent = (minimum: number, maximum: number): FieldType<number> => ({
  ...integer(minimum, maximum),
  placeholder: "PERCENT",
});

export function duration(minimum: string): FieldType<Duration> {
  const least = parseDuration(minimum) ?? 0n;
  return {
    kind: "duration",
    placeholder: "DURATION",
    expected: `a duration of ${minimum} or more, such as 30s, 5m, 1h30m or 7d`,
    schema: v.pipe(
      v.union([v.string(), v.literal(0)]),
      v.transform((input) => parseDuration(String(input))),
      v.custom<Duration>((span) => typeof span === "bigint" && span >= least),
    ),
  };
}

/** A bare 20 means 20 GiB to its writer; as 20 bytes it would make every unused image removable. */
const SIZE_MIN = 1024n ** 2n;

export const size: FieldType<bigint> = {
  kind: "size",
  placeholder: "SIZE",
  expected: "a size of 1Mi or more, such as 500Mi, 20Gi or 20G",
  schema: v.pipe(
    v.union([v.string(), v.pipe(v.number(), v.safeInteger())]),
    v.transform((input) => parseSize(String(input))),
    v.bigint(),
    v.minValue(SIZE_MIN),
  ),
};

export const boolean: FieldType<boolean> = {
  kind: "boolean",
  placeholder: "BOOL",
  expected: "true or false",
  schema: v.boolean(),
};

export const choice = <const Choice extends string>(...choices: Choice[]): FieldType<Choice> => ({
  kind: "choice",
  placeholder: choices.join("|"),
  expected: `one of ${choices.join(", ")}`,
  choices,
  schema: v.picklist(choices),
});

// oxlint-disable-next-line no-control-regex -- they are what is looked for
const isPlain = (text: string): boolean => text !== "" && !/[\u0000-\u001f\u007f]/.test(text);
const plainText = v.pipe(v.string(), v.check(isPlain));

/** The kernel's limit for the path of a socket, in bytes. */
const SOCKET_PATH_BYTES_MAX = 107;

/** `unix:///PATH`, or the bare path, which means the same. */
export const endpoint: FieldType<string> = {
  kind: "endpoint",
  placeholder: "ENDPOINT",
  expected: `a unix socket, as unix:///PATH or an absolute path of at most ${SOCKET_PATH_BYTES_MAX} bytes`,
  schema: v.pipe(
    plainText,
    v.transform((text) => text.replace(/^unix:\/\//, "")),
    v.regex(/^\/[^/]/),
    v.maxBytes(SOCKET_PATH_BYTES_MAX),
    v.transform((path) => `unix://${path}`),
  ),
};

export const url: FieldType<string> = {
  kind: "url",
  placeholder: "URL",
  expected: "a URL such as https://127.0.0.1:10250",
  schema: v.pipe(
    plainText,
    v.url(),
    v.regex(/^https?:\/\/[^/?#@]+\/?$/),
    v.transform((text) => text.replace(/\/$/, "")),
  ),
};

/** `HOST:PORT`. */
export const address: FieldType<string> = {
  kind: "address",
  placeholder: "HOST:PORT",
  expected: "an address such as 127.0.0.1:9419",
  schema: v.pipe(
    plainText,
    v.regex(/^(?:\[[\da-fA-F:.]+\]|[^\s:[\]/]*):\d{1,5}$/),
    v.check((text) => {
      const port = Number(text.slice(text.lastIndexOf(":") + 1));
      return port >= 1 && port <= 65_535;
    }),
  ),
};

/** Absolute, without empty and `.` components; `..` is rejected, because it is ambiguous after a link. */
export const path = (pathOf: "file" | "directory"): FieldType<string> => ({
  kind: "path",
  placeholder: pathOf === "file" ? "FILE" : "DIR",
  pathOf,
  expected: `an absolute path of a ${pathOf} without .. in it`,
  schema: v.pipe(
    plainText,
    v.startsWith("/"),
    v.transform((text) => text.split("/").filter((part) => part !== "" && part !== ".")),
    v.excludes(".."),
    v.transform((parts) => `/${parts.join("/")}`),
  ),
});

export const relativePath = (pathOf: "file" | "directory"): FieldType<string> => ({
  ...path(pathOf),
  expected: `the path of a ${pathOf}`,
  schema: plainText,
});

/** YAML reads `1.0` as a number; a template or script with an unset variable leaves an empty item. */
const itemFault = ({ input }: { readonly input: unknown }): string => {
  if (input === "" || input === null) return " is empty; expected a string";
  const quotes = ["number", "boolean"].includes(typeof input) ? "; put it in quotes" : "";
  return `: ${described(input)} is not a string${quotes}`;
};

export const list: FieldType<readonly string[]> = {
  kind: "list",
  placeholder: "TEXT",
  expected: "a string or a list of strings",
  schema: v.pipe(
    v.custom<string | readonly unknown[]>((it) => typeof it === "string" || Array.isArray(it)),
    v.transform((it) => (typeof it === "string" ? [it] : it)),
    v.array(v.pipe(v.string(itemFault), v.nonEmpty(itemFault))),
  ),
};

const STATEMENT_EXAMPLES = {
  threshold: ["nodefs.available<10%,imagefs.available<5Gi", "10%"],
  grace: ["nodefs.available=1m30s,imagefs.available=2m", "1m30s"],
  reclaim: ["nodefs.available=500Mi,imagefs.available=5%", "500Mi"],
} as const;

export const statements = (kind: StatementKind): FieldType<Statements> => ({
  kind: "statements",
  placeholder: `SIGNAL${operatorOf(kind)}${kind === "grace" ? "DURATION" : "VALUE"},...`,
  statements: kind,
  expected: `a list such as ${STATEMENT_EXAMPLES[kind][0]}, or off`,
  expectedInFile: `a map of signals to strings, such as {nodefs.available: ${STATEMENT_EXAMPLES[kind][1]}}`,
  schema: v.pipe(
    // A list is a record too, and an empty one would turn off every threshold.
    v.custom<Readonly<Record<string, unknown>>>(isMap),
    v.record(
      v.string(),
      // Requires quotes, because `15` would be 15 bytes where 15 percent is meant.
      v.string(({ input }) => `${described(input)} is not a string such as "10%" or "1Gi"`),
    ),
    v.rawCheck(({ dataset, addIssue }) => {
      if (!dataset.typed) return;
      const faults = Object.entries(dataset.value)
        .map(([signal, text]) => statementFault(kind, signal, text))
        .filter((fault) => fault !== null);
      if (faults.length > 0) addIssue({ message: faults.join("; ") });
    }),
  ),
});

export type Parsed =
  | { readonly kind: "value"; readonly value: FieldValue }
  /** What is invalid, and what was expected. */
  | { readonly kind: "fault"; readonly message: string };

const OFF = "off";

/** Parses the text of a flag or a variable. */
export function parseText(type: FieldType, text: string): Parsed {
  const read = parsed(type, fileForm(type, text), `${quoted(text)} is not ${type.expected}`);
  // A file may be named `off`, and an unset variable of a script must not drop one; otherwise the default one would be read.
  const isNone = (text === OFF && read.kind === "fault") || (text === "" && type.kind !== "path");
  return type.optional === true && isNone ? { kind: "value", value: null } : read;
}

/** Parses a value of a configuration file. */
export function parseValue(type: FieldType, value: unknown): Parsed {
  const isNone = value === OFF || (value === "" && type.kind !== "integer");
  if (type.optional === true && isNone) return { kind: "value", value: null };
  return parsed(type, value, `${described(value)} is not ${type.expectedInFile ?? type.expected}`);
}

function parsed({ schema }: FieldType, input: unknown, message: string): Parsed {
  const result = v.safeParse(schema, input, { message });
  if (result.success) return { kind: "value", value: result.output };
  const [issue] = result.issues;
  const [outer] = issue.path ?? [];
  const item = outer?.type === "array" ? `item ${outer.key + 1}` : "";
  return { kind: "fault", message: `${item}${issue.message}` };
}

/** The value that a file has for the text of a flag; the text itself if it is invalid. */
function fileForm({ kind, statements: of }: FieldType, text: string): unknown {
  if (kind === "integer") return /^[+-]?\d{1,15}$/.test(text) ? Number(text) : text;
  if (kind === "boolean") {
    // Booleans of Go's flags.
    if (["1", "t", "T", "true", "TRUE", "True"].includes(text)) return true;
    return ["0", "f", "F", "false", "FALSE", "False"].includes(text) ? false : text;
  }
  if (of === undefined) return text;
  // A variable cannot be empty: that counts as unset.
  return text === OFF ? {} : (splitStatements(text, operatorOf(of)) ?? text);
}

/** As in a configuration file: durations and sizes as text, the rest unchanged. */
export type Printed =
  null | number | boolean | string | readonly string[] | Readonly<Record<string, string>>;

export function printed({ kind }: FieldType, value: FieldValue): Printed {
  if (typeof value !== "bigint") return value;
  return kind === "duration" ? formatDuration(value) : formatQuantity(value);
}

/** For messages and tables, in the syntax of flags. */
export function shownText(type: FieldType, value: FieldValue): string {
  const words = printed(type, value);
  if (words === null) return OFF;
  if (isList(words)) return words.join(", ") || "none";
  if (typeof words !== "object") return String(words) || "none";
  const operator = operatorOf(type.statements ?? "grace");
  const items = Object.entries(words).map((statement) => statement.join(operator));
  return items.join(",") || OFF;
}

export const isList = (value: FieldValue): value is readonly string[] => Array.isArray(value);

export const isStatements = (value: FieldValue): value is Statements =>
  typeof value === "object" && value !== null && !isList(value);
