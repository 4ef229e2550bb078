/** The types of the flag table: how each is written in a flag and in a file, what is expected, and how it is printed. */
import * as v from "valibot";

import { type Duration, duration } from "../../model/time.ts";
import { type FieldType, type FieldValue } from "../field.ts";
import { described, quoted } from "./described.ts";
import { formatDuration, parseDuration } from "./duration.ts";
import {
  splitStatements,
  statementFault,
  type StatementKind,
  type Statements,
} from "./eviction.ts";
import { parseSize } from "./quantity.ts";

export type Parsed =
  | { readonly kind: "value"; readonly value: FieldValue }
  /** What is invalid, and what was expected. */
  | { readonly kind: "fault"; readonly message: string };

type Fault = Extract<Parsed, { kind: "fault" }>;
type FileSchema = v.GenericSchema<unknown, FieldValue>;
/** Describes what a file has instead of a value. */
type Mismatch = (issue: { readonly input: unknown }) => string;

interface Rules<T extends FieldType> {
  /** What is valid, for messages and documentation. */
  expected(type: T): string;
  /** Parses the text of a flag or a variable; `null`: invalid. */
  read(type: T, text: string): FieldValue | Fault;
  /** In a file: numbers, booleans, lists and maps; absent: the text of the flag. */
  inFile?(type: T, mismatch: Mismatch): FileSchema;
}

type TypeRules = {
  readonly [Kind in FieldType["kind"]]: Rules<Extract<FieldType, { kind: Kind }>>;
};

const INT32_MAX = 2_147_483_647;
/** A bare 20 means 20 GiB to its writer; as 20 bytes it would make every unused image removable. */
const SIZE_MIN = 1024n ** 2n;
/** The kernel's limit for the path of a socket, in bytes. */
const SOCKET_PATH_BYTES_MAX = 107;

const RULES: TypeRules = {
  integer: {
    expected: ({ minimum, maximum }) => {
      if (maximum < INT32_MAX) return `a whole number from ${minimum} to ${maximum}`;
      return minimum < 0 ? "a whole number" : `a whole number of ${minimum} or more`;
    },
    read: (type, text) =>
      /^[+-]?\d{1,15}$/.test(text) ? integerIn(type, Number(text), quoted(text)) : null,
    inFile: (type, mismatch) => {
      const number = v.pipe(
        v.number(mismatch),
        step((input) => judged(type, integerIn(type, input, String(input)), String(input))),
      );
      const off = v.pipe(
        v.literal(OFF),
        v.transform(() => null),
      );
      return isOptional(type) ? v.union([number, off], innermost(mismatch)) : number;
    },
  },
  duration: {
    expected: (type) =>
      `a duration of ${formatDuration(minimumOf(type))} or more, such as 30s, 5m, 1h30m or 7d`,
    read: (type, text) => {
      const span = parseDuration(text);
      return span === null || span < minimumOf(type) ? null : span;
    },
    inFile: (type, mismatch) => {
      const zero = v.pipe(
        v.literal(0),
        step(() => parseText(type, "0")),
      );
      return v.union([textSchema(type, mismatch), zero], innermost(mismatch));
    },
  },
  size: {
    expected: () => "a size of 1Mi or more, such as 500Mi, 20Gi or 20G",
    read: (_, text) => {
      const bytes = parseSize(text);
      return bytes === null || bytes < SIZE_MIN ? null : bytes;
    },
    inFile: (type, mismatch) => {
      const bytes = v.pipe(
        v.number(),
        v.safeInteger(),
        step((input) => parseText(type, String(input))),
      );
      return v.union([textSchema(type, mismatch), bytes], innermost(mismatch));
    },
  },
  boolean: {
    expected: () => "true or false",
    // Booleans of Go's flags.
    read: (_, text) => {
      if (["1", "t", "T", "true", "TRUE", "True"].includes(text)) return true;
      return ["0", "f", "F", "false", "FALSE", "False"].includes(text) ? false : null;
    },
    inFile: (_, mismatch) => v.boolean(mismatch),
  },
  choice: {
    expected: ({ choices }) => `one of ${choices.join(", ")}`,
    read: ({ choices }, text) => (choices.includes(text) ? text : null),
  },
  endpoint: {
    expected: () =>
      `a unix socket, as unix:///PATH or an absolute path of at most ${SOCKET_PATH_BYTES_MAX} bytes`,
    read: (_, text) => {
      const path = text.replace(/^unix:\/\//, "");
      const fits = new TextEncoder().encode(path).length <= SOCKET_PATH_BYTES_MAX;
      return fits && isPlain(path) && /^\/[^/]/.test(path) ? `unix://${path}` : null;
    },
  },
  url: {
    expected: () => "a URL such as https://127.0.0.1:10250",
    read: (_, text) =>
      isPlain(text) && URL.canParse(text) && /^https?:\/\/[^/?#@]+\/?$/.test(text)
        ? text.replace(/\/$/, "")
        : null,
  },
  address: {
    expected: () => "an address such as 127.0.0.1:9419",
    read: (_, text) => {
      const port = /^(?:\[[\da-fA-F:.]+\]|[^\s:[\]/]*):(\d{1,5})$/.exec(text)?.[1];
      const isPort = Number(port) >= 1 && Number(port) <= 65_535;
      return isPort && isPlain(text) ? text : null;
    },
  },
  path: {
    expected: ({ of, relative }) =>
      relative === true ? `the path of a ${of}` : `an absolute path of a ${of} without .. in it`,
    // Normalised, without empty and `.` components; `..` is rejected, because it is ambiguous after a link.
    read: ({ relative }, text) => {
      if (!isPlain(text)) return null;
      if (relative === true) return text;
      const parts = text.split("/").filter((part) => part !== "" && part !== ".");
      return text.startsWith("/") && !parts.includes("..") ? `/${parts.join("/")}` : null;
    },
  },
  list: {
    expected: () => "a string or a list of strings",
    read: (_, text) => (text === "" ? [] : [text]),
    inFile: (type, mismatch) =>
      v.union(
        [
          v.pipe(
            v.array(v.unknown()),
            step((items: unknown[]) => textsIn(items)),
          ),
          textSchema(type, mismatch),
        ],
        innermost(mismatch),
      ),
  },
  statements: {
    expected: ({ of }) => `a list such as ${STATEMENT_EXAMPLES[of]}, or off`,
    read: ({ of }, text) => {
      // A variable cannot be empty: that counts as unset.
      if (text === OFF) return {};
      const statements = splitStatements(text, operatorOf(of));
      return statements === null ? null : checked(of, statements);
    },
    inFile: (type, mismatch) =>
      v.pipe(
        // A list is a record too, and an empty one would turn off every threshold.
        v.custom((input) => !Array.isArray(input), mismatch),
        v.record(v.string(), v.string(notAString), mismatch),
        step((input) => judged(type, checked(type.of, input), "")),
      ),
  },
};

const rulesOf = ({ kind }: FieldType): Rules<FieldType> => RULES[kind];

const STATEMENT_EXAMPLES = {
  threshold: "nodefs.available<10%,imagefs.available<5Gi",
  grace: "nodefs.available=1m30s,imagefs.available=2m",
  reclaim: "nodefs.available=500Mi,imagefs.available=5%",
} as const;
const FILE_EXAMPLES = { threshold: "10%", grace: "1m30s", reclaim: "500Mi" } as const;

/** The text of a flag or a variable. */
export function parseText(type: FieldType, text: string): Parsed {
  if (isOptional(type) && (text === "" || text === OFF)) return { kind: "value", value: null };
  return judged(type, rulesOf(type).read(type, text), quoted(text));
}

/** The schema of a value in a configuration file. */
export function fileSchema(type: FieldType): FileSchema {
  const mismatch: Mismatch = ({ input }) => `${described(input)} is not ${expectedInFile(type)}`;
  return rulesOf(type).inFile?.(type, mismatch) ?? textSchema(type, mismatch);
}

/** What is valid, for messages and documentation: `a whole number from 0 to 100`. */
export function expected(type: FieldType): string {
  const isNamed = type.kind === "path" || type.kind === "endpoint";
  return `${rulesOf(type).expected(type)}${isOptional(type) && !isNamed ? ", or off" : ""}`;
}

export const expectedInFile = (type: FieldType): string =>
  type.kind === "statements"
    ? `a map of signals to strings, such as {nodefs.available: ${FILE_EXAMPLES[type.of]}}`
    : expected(type);

export const isOptional = (type: FieldType): boolean => "optional" in type && type.optional;

export const OFF = "off";

function judged(type: FieldType, found: FieldValue | Fault, shown: string): Parsed {
  if (found === null) return { kind: "fault", message: `${shown} is not ${expected(type)}` };
  return isFault(found) ? found : { kind: "value", value: found };
}

const isFault = (found: FieldValue | Fault): found is Fault =>
  typeof found === "object" && found !== null && "message" in found && found.kind === "fault";

function integerIn(
  type: Extract<FieldType, { kind: "integer" }>,
  value: number,
  shown: string,
): number | Fault | null {
  const { minimum, maximum } = type;
  if (!Number.isInteger(value)) return null;
  if (value >= minimum && value <= maximum) return value;
  // Name the limits only to whoever exceeds them.
  if (Math.abs(value) <= INT32_MAX) return null;
  const range = `it must be from ${minimum} to ${maximum}`;
  return { kind: "fault", message: `${shown} is not ${expected(type)}; ${range}` };
}

const minimumOf = (type: Extract<FieldType, { kind: "duration" }>): Duration =>
  parseDuration(type.minimum) ?? duration(0n);

// oxlint-disable-next-line no-control-regex -- they are what is looked for
const isPlain = (text: string): boolean => text !== "" && !/[\u0000-\u001f\u007f]/.test(text);

export const operatorOf = (of: StatementKind): "<" | "=" => (of === "threshold" ? "<" : "=");

function checked(of: StatementKind, statements: Statements): Statements | Fault {
  const faults = Object.entries(statements)
    .map(([signal, text]) => statementFault(of, signal, text))
    .filter((fault) => fault !== null);
  return faults.length === 0 ? statements : { kind: "fault", message: faults.join("; ") };
}

const textSchema = (type: FieldType, mismatch: Mismatch): FileSchema =>
  v.pipe(
    v.string(mismatch),
    step((input) => parseText(type, input)),
  );

/** YAML reads `1.0` as a number, and a template with an unset variable leaves an empty item. */
function textsIn(items: readonly unknown[]): Parsed {
  const at = items.findIndex((item) => typeof item !== "string" || item === "");
  if (at < 0) return { kind: "value", value: items.filter((item) => typeof item === "string") };
  const item = items[at] ?? "";
  const quotes = typeof item === "number" || typeof item === "boolean" ? "; put it in quotes" : "";
  const what =
    item === "" ? " is empty; expected a string" : `: ${described(item)} is not a string${quotes}`;
  return { kind: "fault", message: `item ${at + 1}${what}` };
}

/** Requires quotes, because `15` would be 15 bytes where 15 percent is meant. */
const notAString: Mismatch = ({ input }) =>
  `${described(input)} is not a string such as "10%" or "1Gi"`;

/** A step of a pipe that parses by our own rules, with its own message. */
const step = <Input>(reading: (input: Input) => Parsed): v.RawTransformAction<Input, FieldValue> =>
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const parsed = reading(dataset.value);
    if (parsed.kind === "value") return parsed.value;
    addIssue({ message: parsed.message });
    return NEVER;
  });

/** For a union: the message of the option that accepts the type but not the value. */
const innermost =
  (mismatch: Mismatch) =>
  (issue: v.UnionIssue<v.BaseIssue<unknown>>): string =>
    issue.issues?.find((inner) => inner.kind === "transformation")?.message ?? mismatch(issue);
