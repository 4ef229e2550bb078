/** One entry of the flag table: names, type, default, help and documentation. */
import type { Duration } from "../model/time.ts";
import type { StatementKind, Statements } from "./value/eviction.ts";

/** The syntax and range of a value. `optional`: `off` and an empty string mean none. */
export type FieldType =
  | {
      readonly kind: "integer";
      readonly minimum: number;
      readonly maximum: number;
      readonly optional?: true;
    }
  | { readonly kind: "duration"; readonly minimum: string }
  | { readonly kind: "size"; readonly optional: true }
  | { readonly kind: "boolean" }
  | { readonly kind: "choice"; readonly choices: readonly string[] }
  /** `unix:///PATH`, or the bare path, which means the same. */
  | { readonly kind: "endpoint"; readonly optional: true }
  | { readonly kind: "url" }
  /** `HOST:PORT`. */
  | { readonly kind: "address"; readonly optional: true }
  /** An absolute path in its shortest form, or any path where `relative`. */
  | {
      readonly kind: "path";
      readonly of: "file" | "directory";
      readonly relative?: true;
      readonly optional?: true;
    }
  /** Texts that add up over all sources, so that no keep pattern is lost. */
  | { readonly kind: "list" }
  | { readonly kind: "statements"; readonly of: StatementKind };

type Optional<T extends FieldType, V> = T extends { readonly optional: true } ? V | null : V;

export type ValueOf<T extends FieldType> = T extends { readonly kind: "integer" }
  ? Optional<T, number>
  : T extends { readonly kind: "duration" }
    ? Duration
    : T extends { readonly kind: "size" }
      ? Optional<T, bigint>
      : T extends { readonly kind: "boolean" }
        ? boolean
        : T extends { readonly kind: "choice"; readonly choices: readonly (infer C)[] }
          ? C
          : T extends { readonly kind: "list" }
            ? readonly string[]
            : T extends { readonly kind: "statements" }
              ? Statements
              : Optional<T, string>;

export type FieldValue = number | bigint | boolean | string | readonly string[] | Statements | null;

export const isList = (value: FieldValue): value is readonly string[] => Array.isArray(value);

export const isStatements = (value: FieldValue): value is Statements =>
  typeof value === "object" && value !== null && !isList(value);

export interface Field {
  /** Without dashes. Determines the environment variable. */
  readonly flag: string;
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
  /** Unit of a bare number: percent, bytes, … */
  readonly unit?: string;
  /** Commands that use it. */
  readonly commands: readonly string[];
  /** A `KubeletConfiguration` has this field under the same name, and crigc adopts it. */
  readonly kubelet?: true;
  /** Invalid in configuration files. */
  readonly outsideFiles?: true;
}

/** `CRIGC_IMAGE_GC_HIGH_THRESHOLD` and its alternatives, highest precedence first. */
export const variablesOf = (field: Field): readonly string[] => [
  ...[field.flag, ...(field.aliases ?? [])].map(
    (flag) => `CRIGC_${flag.toUpperCase().replaceAll("-", "_")}`,
  ),
  ...(field.variables ?? []),
];

/** The default as shown in help: its text, or its words if it has none. */
export const defaultWords = (field: Field): string => field.default ?? field.defaultWords ?? "none";

/** Placeholder of the value in help: `PERCENT`, `none|kubelet`. */
export function placeholderOf({ type, unit, placeholder }: Field): string {
  if (placeholder !== undefined) return placeholder;
  switch (type.kind) {
    case "integer":
      return unit === "percent" ? "PERCENT" : "N";
    case "boolean":
      return "BOOL";
    case "choice":
      return type.choices.join("|");
    case "address":
      return "HOST:PORT";
    case "path":
      return type.of === "file" ? "FILE" : "DIR";
    case "list":
      return "TEXT";
    case "statements":
      return STATEMENTS[type.of];
    case "duration":
    case "endpoint":
    case "size":
    case "url":
      return type.kind.toUpperCase();
  }
}

const STATEMENTS: Readonly<Record<StatementKind, string>> = {
  threshold: "SIGNAL<VALUE,…",
  grace: "SIGNAL=DURATION,…",
  reclaim: "SIGNAL=VALUE,…",
};

/** `--image-gc-high-threshold`, `-v`. */
export const dashed = (flag: string): string => (flag.length === 1 ? `-${flag}` : `--${flag}`);
