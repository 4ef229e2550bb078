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
  type Pair,
  parseAllDocuments,
  type YAMLMap,
} from "yaml";

import { type ConfigIssue, configIssue, messageOf } from "../../model/errors.ts";
import { fieldNames, fieldOf, isFieldName } from "../fields.ts";
import { described } from "../value/described.ts";

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
  "expected kind: CrigcConfiguration with apiVersion: crigc/v1, or kind: KubeletConfiguration with apiVersion: kubelet.config.k8s.io/v1beta1";

/** Maps that are names with a dot in the table. */
const GROUPED: ReadonlySet<string> = new Set(
  fieldNames.filter((name) => name.includes(".")).map((name) => name.split(".")[0] ?? name),
);

// oxlint-disable-next-line no-control-regex -- they are what is looked for
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/;

export function parseDocument(path: string, text: string): ConfigDocument {
  try {
    requireLikely(text);
    const lines = new LineCounter();
    // Equal keys are judged here, because those of a kubelet's other fields do not matter.
    const options = { lineCounter: lines, uniqueKeys: false, prettyErrors: false } as const;
    const documents = [...parseAllDocuments(withoutComments(text), options)];
    const at = (offset: number): string => `${path}:${lines.linePos(offset).line}`;
    const control = text.search(CONTROL);
    if (control >= 0) return broken(at(control), "invalid YAML or JSON: a control character");
    const [error] = documents.flatMap(({ errors }) => errors);
    if (error !== undefined)
      return broken(at(error.pos[0]), `invalid YAML or JSON: ${error.message}`);
    if (documents.length > 1) return notAMap(path, "it has several documents (---)");
    const [document] = documents;
    return document === undefined ? notAMap(path, "it is empty") : read(document, path, at);
  } catch (thrown) {
    if (!(thrown instanceof RangeError))
      return broken(path, `invalid YAML or JSON: ${messageOf(thrown)}`);
    return broken(path, "the file is nested too deeply; expected a map of settings");
  }
}

/** The library reports each error of a text, and needs seconds for those of a large one. */
const LOCATED_BYTES_MAX = 32 * 1024;

/** Bun's parser needs milliseconds for anything. Throws `RangeError` for endless nesting. */
function requireLikely(text: string): void {
  try {
    Bun.YAML.parse(text);
  } catch (thrown) {
    if (thrown instanceof RangeError || text.length > LOCATED_BYTES_MAX) throw thrown;
  }
}

/**
 * The installed file is 15 kB of comments, which cost 10 ms. A line that starts with # is a comment unless it is inside
 * quotes.
 */
function withoutComments(text: string): string {
  const rest = text.replaceAll(/(^|\n)#[^\n]*/g, "$1");
  return /["']/.test(rest) ? text : rest;
}

type At = (offset: number) => string;

function read(document: Document.Parsed, path: string, at: At): ConfigDocument {
  const refused = refusedNotation(document, at);
  if (refused.length > 0) return { kind: null, entries: [], issues: refused };
  const { contents } = document;
  if (contents === null || !isMap(contents)) {
    const value: unknown = isCollection(contents) ? [] : (document.toJS() ?? null);
    return notAMap(path, value === null ? "it is empty" : `it is ${described(value)}`);
  }
  const pairs = pairsOf(contents);
  const lineOf = (name: string): string | undefined =>
    pairs
      .filter((pair) => pair.name === name)
      .map(({ offset }) => at(offset))
      .at(-1);
  const [kindValue, version] = ["kind", "apiVersion"].map((name) => contents.get(name) ?? null);
  const kind = kindOf(kindValue, version);
  if (kind === null) {
    const message = `kind is ${described(kindValue)} and apiVersion is ${described(version)}; ${EXPECTED_KINDS}`;
    return broken(lineOf("kind") ?? lineOf("apiVersion") ?? path, message, described(kindValue));
  }
  const settings = pairs.filter(({ name }) => name !== "kind" && name !== "apiVersion");
  const entries = new Map(
    settings.flatMap(ungrouped).map(({ name, value, offset }) => {
      const js: unknown = value === null ? null : value.toJS(document);
      return [name, { name, value: js ?? null, line: Number(at(offset).slice(path.length + 1)) }];
    }),
  );
  return { kind, entries: [...entries.values()], issues: repeated(pairs, at) };
}

interface KeyValue {
  readonly name: string;
  readonly value: Node | null;
  readonly offset: number;
}

const pairsOf = (map: YAMLMap.Parsed | YAMLMap): readonly KeyValue[] =>
  map.items.map(({ key, value }: Pair) => ({
    name: isScalar(key) ? String(key.value) : "",
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parser makes nodes only
    value: (value ?? null) as Node | null,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parser makes nodes only
    offset: (key as Node).range?.[0] ?? 0,
  }));

/** Flattens a map in the file to names of the table; one with only comments is empty. */
function ungrouped(pair: KeyValue): readonly KeyValue[] {
  const { name, value } = pair;
  if (!GROUPED.has(name)) return [pair];
  if (isMap(value))
    return pairsOf(value).map((inner) => ({ ...inner, name: `${name}.${inner.name}` }));
  return value === null || (isScalar(value) && value.value === null) ? [] : [pair];
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
function refusedNotation(document: Document.Parsed, at: At): readonly ConfigIssue[] {
  // The first of each: a list may name one alias a million times.
  const issues = new Map<string, ConfigIssue>();
  const refuse = (offset: number, what: string): void => {
    const source = at(offset);
    const message = `${what} is not accepted, because it can override a setting written elsewhere; write each value in place`;
    if (!issues.has(what)) issues.set(what, configIssue(source, what, message));
  };
  const walk = (node: unknown, depth: number): void => {
    if (depth > DEPTH_MAX) throw new RangeError("nested too deeply");
    if (isPair(node)) {
      const { key, value } = node;
      if (isScalar(key) && key.value === "<<") refuse(key.range?.[0] ?? 0, "a merge key (<<)");
      walk(key, depth);
      walk(value, depth);
    } else if (isNode(node)) {
      const offset = node.range?.[0] ?? 0;
      if (isAlias(node) || node.anchor !== undefined) refuse(offset, "an anchor or alias (& or *)");
      else if (node.tag !== undefined) refuse(offset, "a tag (!)");
      if (isCollection(node)) for (const item of node.items) walk(item, depth + 1);
    }
  };
  walk(document.contents, 0);
  return [...issues.values()];
}

/** For equal keys the parser lets the last one win. */
function repeated(pairs: readonly KeyValue[], at: At): readonly ConfigIssue[] {
  const all = pairs.flatMap((pair) =>
    isMap(pair.value)
      ? [pair, ...pairsOf(pair.value).map((it) => ({ ...it, name: `${pair.name}.${it.name}` }))]
      : [pair],
  );
  const first = new Map<string, string>();
  return all.flatMap(({ name, offset }) => {
    const before = first.get(name);
    if (before === undefined) first.set(name, at(offset));
    if (before === undefined || !isOurs(name)) return [];
    const line = before.slice(before.lastIndexOf(":") + 1);
    const message = `${name} is set twice, first on line ${line}; remove one of them`;
    return [configIssue(at(offset), name, message)];
  });
}

const isOurs = (key: string): boolean => {
  const outer = key.split(".")[0] ?? key;
  if (isFieldName(key) || GROUPED.has(key) || key === "kind" || key === "apiVersion") return true;
  return isFieldName(outer) && fieldOf(outer).type.kind === "statements";
};
