/** One entry of the flag table: names, type, default, help and documentation. */
import type { FieldType, FieldValue } from "./types.ts";

export interface Field extends FieldEntry {
  readonly flag: string;
  readonly commands: readonly string[];
}

/** As the table says it. */
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
  /** Commands that use it; absent: those that decide or show what is removed. */
  readonly commands?: readonly string[];
  /** A `KubeletConfiguration` has this field under the same name, and crigc adopts it. */
  readonly kubelet?: true;
  /** By its value: what other fields then have, and nothing else. */
  readonly implies?: Readonly<Record<string, Readonly<Record<string, FieldValue>>>>;
  /** Values with which a kubelet on the node changes no default. */
  readonly ownDefaults?: readonly string[];
  /** Invalid in configuration files. */
  readonly outsideFiles?: true;
}

export const fieldFrom = (name: string, entry: FieldEntry): Field => ({
  flag: flagOf(name),
  commands: DECIDING,
  ...entry,
});

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

/** Commands that decide or show what is removed. */
export const DECIDING = ["run", "gc", "rm", "plan", "explain", "images", "df", "report"] as const;
export const RUNTIME = [
  ...DECIDING,
  "snapshot",
  "keep list",
  "keep test",
  "keep baseline",
  "doctor",
] as const;
/** Commands that read pod logs and the pod source. */
export const PODS = [...DECIDING, "snapshot", "doctor"] as const;
export const REMOVING = ["run", "gc", "rm"] as const;
export const WITH_STATE = [...RUNTIME, "status", "history", "hold", "release"] as const;
/** Commands that read the configuration. */
export const CONFIGURED = [...WITH_STATE, "config"] as const;
