/** Parses a configuration document, YAML or JSON: its kind, and its entries with their lines. */
import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  parseAllDocuments,
  type YAMLMap,
} from "yaml";

import { type ConfigIssue, configIssue, messageOf } from "../model/errors.ts";
import { fieldNames, fieldOf, isFieldName } from "./fields.ts";
import { described } from "./words.ts";

export type DocumentKind = "CrigcConfiguration" | "KubeletConfiguration";

export interface Entry {
  /** `imageMinimumGCAge`, `logging.format`. */
  readonly name: string;
  readonly value: unknown;
  readonly line: number;
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
  "expected YAML or JSON with kind: CrigcConfiguration and apiVersion: crigc/v1, or kind: KubeletConfiguration and apiVersion: kubelet.config.k8s.io/v1beta1";

/** Maps that are names with a dot in the table. */
const GROUPED: ReadonlySet<string> = new Set(
  fieldNames.filter((name) => name.includes(".")).map((name) => name.split(".")[0] ?? name),
);

// oxlint-disable-next-line no-control-regex -- they are what is looked for
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/;

export function parseDocument(path: string, text: string): ConfigDocument {
  try {
    // The library needs seconds for the errors of a large text, Bun's parser milliseconds.
    if (text.length > LOCATED_LENGTH_MAX) Bun.YAML.parse(text);
    const lines = new LineCounter();
    // Equal keys are judged here, because those of a kubelet's other fields do not matter.
    const options = { lineCounter: lines, uniqueKeys: false, prettyErrors: false } as const;
    const documents = [...parseAllDocuments(withoutComments(text), options)];
    const line = (offset: number): number => lines.linePos(offset).line;
    const lineAt: LineAt = (node) => line(node?.range?.[0] ?? 0);
    const control = text.search(CONTROL);
    if (control >= 0)
      return broken(`${path}:${line(control)}`, "invalid YAML or JSON: a control character");
    const [error] = documents.flatMap(({ errors }) => errors);
    if (error !== undefined)
      return broken(`${path}:${line(error.pos[0])}`, `invalid YAML or JSON: ${error.message}`);
    if (documents.length > 1) return notAMap(path, "it has several documents (---)");
    const [document] = documents;
    return document === undefined ? notAMap(path, "it is empty") : read(document, path, lineAt);
  } catch (thrown) {
    if (!(thrown instanceof RangeError))
      return broken(path, `invalid YAML or JSON: ${messageOf(thrown)}`);
    return broken(path, "the file is nested too deeply; expected a map of settings");
  }
}

const LOCATED_LENGTH_MAX = 32 * 1024;

type LineAt = (node: Node | null) => number;

/**
 * The installed file is 15 kB of comments, which cost 10 ms. A line that starts with # is a comment unless it is inside
 * quotes.
 */
function withoutComments(text: string): string {
  const rest = text.replaceAll(/(^|\n)#[^\n]*/g, "$1");
  return /["']/.test(rest) ? text : rest;
}

function read(document: Document.Parsed, path: string, lineAt: LineAt): ConfigDocument {
  const refused = refusedNotation(document, path, lineAt);
  if (refused.length > 0) return { kind: null, entries: [], issues: refused };
  const { contents } = document;
  if (!isMap(contents)) {
    const value: unknown = isCollection(contents) ? [] : (document.toJS() ?? null);
    return notAMap(path, value === null ? "it is empty" : `it is ${described(value)}`);
  }
  const entries = new Map<string, Entry>();
  const issues: ConfigIssue[] = [];
  const lines = new Map<string, number>();
  const visit = (map: YAMLMap, outer: string): void => {
    for (const { key, value } of map.items) {
      const name = outer + (isScalar(key) ? String(key.value) : "");
      const line = lineAt(isNode(key) ? key : null);
      const node = isNode(value) ? value : null;
      const before = lines.get(name);
      if (before === undefined) lines.set(name, line);
      else if (isOurs(name)) {
        // The parser lets the last one win.
        const message = `${name} is set twice, first on line ${before}; remove one of them`;
        issues.push(configIssue(`${path}:${line}`, name, message));
      }
      if (isSetting(name, outer, node))
        entries.set(name, { name, value: (node?.toJS(document) as unknown) ?? null, line });
      if (outer === "" && isMap(node)) visit(node, `${name}.`);
    }
  };
  visit(contents, "");
  const [kindValue, version] = ["kind", "apiVersion"].map((name) => contents.get(name) ?? null);
  const kind = kindOf(kindValue, version);
  if (kind !== null) return { kind, entries: [...entries.values()], issues };
  const line = lines.get("kind") ?? lines.get("apiVersion");
  const message = `kind is ${described(kindValue)} and apiVersion is ${described(version)}; ${EXPECTED_KINDS}`;
  return broken(line === undefined ? path : `${path}:${line}`, message, described(kindValue));
}

/** A group's fields are settings, and what is in its place if it is not a map; one with only comments is empty. */
function isSetting(name: string, outer: string, value: Node | null): boolean {
  if (name === "kind" || name === "apiVersion") return false;
  if (GROUPED.has(name)) return !isMap(value) && !(isScalar(value) && value.value === null);
  return outer === "" || GROUPED.has(outer.slice(0, -1));
}

const broken = (source: string, message: string, text = ""): ConfigDocument => ({
  kind: null,
  entries: [],
  issues: [configIssue(source, text, message)],
});

const notAMap = (path: string, found: string): ConfigDocument =>
  broken(path, `the file is not a map of settings: ${found}; ${EXPECTED_KINDS}`);

function kindOf(kind: unknown, version: unknown): DocumentKind | null {
  if (kind !== "CrigcConfiguration" && kind !== "KubeletConfiguration") return null;
  return version === KINDS[kind] ? kind : null;
}

/** Configurations, the kubelet's too, nest five levels at most; other functions of the library are quadratic in depth. */
const DEPTH_MAX = 100;

/** Notation by which a value can come from elsewhere, or be something else than it looks like. */
function refusedNotation(
  document: Document.Parsed,
  path: string,
  lineAt: LineAt,
): readonly ConfigIssue[] {
  // The first of each: a list may name one alias a million times.
  const issues = new Map<string, ConfigIssue>();
  const refuse = (node: Node, what: string): void => {
    const message = `${what} is not accepted, because it can override a setting written elsewhere; write each value in place`;
    if (!issues.has(what)) issues.set(what, configIssue(`${path}:${lineAt(node)}`, what, message));
  };
  const walk = (node: unknown, depth: number): void => {
    if (depth > DEPTH_MAX) throw new RangeError("nested too deeply");
    if (isPair(node)) {
      if (isScalar(node.key) && node.key.value === "<<") refuse(node.key, "a merge key (<<)");
      walk(node.key, depth);
      walk(node.value, depth);
    } else if (isNode(node)) {
      if (isAlias(node) || node.anchor !== undefined) refuse(node, "an anchor or alias (& or *)");
      else if (node.tag !== undefined) refuse(node, "a tag (!)");
      if (isCollection(node)) for (const item of node.items) walk(item, depth + 1);
    }
  };
  walk(document.contents, 0);
  return [...issues.values()];
}

const isOurs = (key: string): boolean => {
  const outer = key.split(".")[0] ?? key;
  if (isFieldName(key) || GROUPED.has(key) || key === "kind" || key === "apiVersion") return true;
  return isFieldName(outer) && fieldOf(outer).type.kind === "statements";
};
