/** Parses a configuration document: its kind, and its entries with their lines. */
import { type ConfigIssue, configIssue } from "../../model/errors.ts";
import { isMap } from "../../model/values.ts";
import { fieldNames, fieldOf, isFieldName } from "../fields.ts";
import { described } from "../value/described.ts";
import { type KeyLine, keysIn } from "./lines.ts";

export type DocumentKind = "CrigcConfiguration" | "KubeletConfiguration";

export interface Entry {
  /** `imageMinimumGCAge`, `logging.format`. */
  readonly name: string;
  readonly value: unknown;
  /** `null` if unknown. */
  readonly line: number | null;
}

export interface ConfigDocument {
  readonly kind: DocumentKind | null;
  readonly entries: readonly Entry[];
  readonly issues: readonly ConfigIssue[];
}

const KINDS: Readonly<Record<DocumentKind, string>> = {
  CrigcConfiguration: "crigc/v1",
  KubeletConfiguration: "kubelet.config.k8s.io/v1beta1",
};
const EXPECTED_KINDS =
  "expected kind: CrigcConfiguration with apiVersion: crigc/v1, or kind: KubeletConfiguration with apiVersion: kubelet.config.k8s.io/v1beta1";

/** Maps that are names with a dot in the table. */
const GROUPED: ReadonlySet<string> = new Set(
  fieldNames.filter((name) => name.includes(".")).map((name) => name.split(".")[0] ?? name),
);

export interface ParsedText {
  readonly path: string;
  readonly text: string;
  /** The parsed text. */
  readonly content: unknown;
}

export function parseDocument({ path, text, content }: ParsedText): ConfigDocument {
  if (!isMap(content)) {
    const message = `the file is not a map of settings: ${foundIn(content, text)}; ${EXPECTED_KINDS}`;
    return broken(configIssue(path, "", message));
  }
  const { found: keys, refused } = keysIn(text);
  const lineOf = new Map(keys.map(({ path: key, line }) => [key, line]));
  const kind = kindOf(content);
  if (kind === null) {
    const line = lineOf.get("kind") ?? lineOf.get("apiVersion");
    const message = `kind is ${described(content["kind"] ?? null)} and apiVersion is ${described(content["apiVersion"] ?? null)}; ${EXPECTED_KINDS}`;
    return broken(configIssue(at(path, line ?? null), described(content["kind"] ?? null), message));
  }
  const entries = Object.entries(content)
    .filter(([name]) => name !== "kind" && name !== "apiVersion")
    .flatMap(([name, value]) =>
      ungrouped(name, value).map((entry) => ({
        ...entry,
        line: lineOf.get(entry.name) ?? lineOf.get(name) ?? null,
      })),
    );
  const notation = refused.map(({ line, what }) =>
    configIssue(
      at(path, line),
      what,
      `${what} is not accepted, because it can override a setting written elsewhere; write each value in place`,
    ),
  );
  if (notation.length > 0) return { kind: null, entries: [], issues: notation };
  return { kind, entries, issues: [...hiddenKeys(path, content, keys), ...repeated(path, keys)] };
}

function foundIn(content: unknown, text: string): string {
  if (content === null || content === undefined) return "it is empty";
  // The parser makes a list of several documents.
  const isSeveral = Array.isArray(content) && /\n---\s/.test(`${text}\n`);
  return isSeveral ? "it has several documents (---)" : `it is ${described(content)}`;
}

/** A key that the parser found but the line search did not may occur twice. */
function hiddenKeys(
  path: string,
  content: Readonly<Record<string, unknown>>,
  keys: readonly KeyLine[],
): readonly ConfigIssue[] {
  const shown = new Set(keys.map((key) => key.path));
  return Object.entries(content)
    .flatMap(([name, value]) => [
      name,
      ...(isMap(value) ? Object.keys(value).map((inner) => `${name}.${inner}`) : []),
    ])
    .filter((name) => isOurs(name) && !shown.has(name))
    .map((name) =>
      configIssue(
        path,
        name,
        `cannot find where ${name} is written; write it as a plain key on a line of its own`,
      ),
    );
}

/** Flattens a map in the file to names of the table; one with only comments is empty. */
function ungrouped(name: string, value: unknown): readonly Omit<Entry, "line">[] {
  if (!GROUPED.has(name) || (value !== null && !isMap(value))) return [{ name, value }];
  return Object.entries(value ?? {}).map(([inner, held]) => ({
    name: `${name}.${inner}`,
    value: held,
  }));
}

const broken = (issue: ConfigIssue): ConfigDocument => ({
  kind: null,
  entries: [],
  issues: [issue],
});

function kindOf(content: Readonly<Record<string, unknown>>): DocumentKind | null {
  const kind = content["kind"];
  if (kind !== "CrigcConfiguration" && kind !== "KubeletConfiguration") return null;
  return content["apiVersion"] === KINDS[kind] ? kind : null;
}

/** For equal keys the parser silently lets the last one win. */
function repeated(path: string, keys: readonly KeyLine[]): readonly ConfigIssue[] {
  const first = new Map<string, number>();
  const issues: ConfigIssue[] = [];
  for (const { path: key, line } of keys) {
    const before = first.get(key);
    if (before === undefined) first.set(key, line);
    else if (isOurs(key)) {
      const message = `${key} is set twice, first on line ${before}; remove one of them`;
      issues.push(configIssue(at(path, line), key, message));
    }
  }
  return issues;
}

const isOurs = (key: string): boolean => {
  const outer = key.split(".")[0] ?? key;
  if (isFieldName(key) || GROUPED.has(key) || key === "kind" || key === "apiVersion") return true;
  return isFieldName(outer) && fieldOf(outer).type.kind === "statements";
};

export const at = (path: string, line: number | null): string =>
  line === null ? path : `${path}:${line}`;
