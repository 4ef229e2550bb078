/** Documents: one envelope for every kind, the parts and reasons that several of them share, and their JSON and YAML text. */

import { parse, stringify } from "yaml";

import { escaped, exactJson } from "../model/exact-json.ts";
import type { ImageRecord } from "../model/ledger.ts";
import type { Event } from "../model/pass.ts";
import type {
  Container,
  Filesystem,
  Image,
  RuntimeInfo,
  Sandbox,
  Snapshot,
} from "../model/snapshot.ts";
import { type Duration, duration, type Instant, instant, toMs, toRfc3339 } from "../model/time.ts";
import { isMap } from "../model/values.ts";
import { imageName, usedPercent } from "./words.ts";

/** A JSON value: a bigint becomes an integer literal, and an undefined field is omitted. */
export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [field: string]: Json | undefined;
}

/** A document of `kind`. New versions only add fields. The text of a command is rendered from it. */
export const document = <Body extends JsonObject>(kind: string, body: Body) => ({
  apiVersion: "crigc/v1",
  kind,
  ...body,
});

/** What a document says of the node itself. */
export type SeenNode = Pick<Snapshot, "runtime" | "observedAt">;

export const timeOf = (at: Instant | null): string | null => (at === null ? null : toRfc3339(at));

/** The type of `jsonOf`. */
export type JsonOf<Value, Name extends PropertyKey = PropertyKey> = {
  readonly [
    Field in keyof Value as Field extends Name & string
      ? Duration extends Extract<Value[Field], Duration>
        ? `${Field}Ms`
        : Field
      : never
  ]: Plain<Value[Field]>;
};

type Plain<Value> = Value extends Instant
  ? string
  : Value extends Duration
    ? number
    : Value extends Exclude<Json, object> | undefined
      ? Value
      : Value extends readonly (infer Item)[]
        ? readonly Plain<Item>[]
        : JsonOf<Value>;

/** Durations of the model; documents have them in milliseconds: `took` is `tookMs`. */
const DURATIONS = new Set([
  "took",
  "age",
  "minimumAge",
  "remaining",
  "unusedFor",
  "after",
  "bootGrace",
  "uptime",
]);
const INSTANTS = /(?:^a|A)t$|^(?:since|until|now|wall)$/;

/** The named fields of a value of the model, or all: instants as RFC 3339, durations in milliseconds. */
export function jsonOf<Value extends object>(value: Value): JsonOf<Value>;
export function jsonOf<Value extends object, Name extends keyof Value & string>(
  value: Value,
  ...names: readonly Name[]
): JsonOf<Value, Name>;
export function jsonOf(value: object, ...names: readonly string[]): JsonObject {
  const made: Record<string, Json | undefined> = {};
  for (const name of names.length === 0 ? Object.keys(value) : names) {
    const held: unknown = Reflect.get(value, name);
    if (typeof held !== "bigint" && held !== null) made[name] = plain(held);
    else if (DURATIONS.has(name)) made[`${name}Ms`] = held === null ? null : toMs(duration(held));
    else made[name] = held !== null && INSTANTS.test(name) ? timeOf(instant(held)) : held;
  }
  return made;
}

function plain(held: unknown): Json {
  if (Array.isArray(held)) return held.map(plain);
  if (isMap(held) && Object.getPrototypeOf(held) === Object.prototype) return jsonOf(held);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the writer rejects everything else
  return held as Json;
}

export const imageJson = (image: Image) => ({
  id: image.id,
  name: imageName(image),
  ...jsonOf(image, "repoTags", "repoDigests", "sizeBytes", "pinned"),
});

export const recordJson = (record: ImageRecord) => jsonOf(record, "firstSeenAt", "lastUsedAt");

export const containerJson = (container: Container) => ({
  ...jsonOf(container, "id", "sandboxId", "name", "attempt", "podUid", "podName", "podNamespace"),
  ...jsonOf(container, "imageName", "state", "createdAt"),
});

export const sandboxJson = (sandbox: Sandbox) =>
  jsonOf(sandbox, "id", "podUid", "name", "namespace", "attempt", "state", "createdAt");

export const filesystemJson = (filesystem: Filesystem) => ({
  ...jsonOf(filesystem, "roles", "path", "mountpoint", "device"),
  ...jsonOf(filesystem, "capacityBytes", "availableBytes"),
  usedPercent: usedPercent(filesystem.capacityBytes, filesystem.availableBytes),
  ...jsonOf(filesystem, "inodes", "inodesFree", "imageUsedBytes"),
  imageInodesUsed: filesystem.imageInodesUsed ?? null,
  containerUsedBytes: filesystem.containerUsedBytes,
  /** Why the figures above are none. */
  ...(filesystem.unmeasured !== undefined && { unmeasured: filesystem.unmeasured }),
});

export const eventJson = (event: Event) =>
  document("Event", jsonOf(event, "reason", "message", "at", "passId"));

export const runtimeJson = (runtime: RuntimeInfo) =>
  jsonOf(runtime, "name", "version", "apiVersion", "endpoint", "imageEndpoint");

/** JSON text; one line if `indent` is 0. */
export const toJson = (value: Json, indent = 0): string => exactJson(value, indent);

/** A document as a command prints it: indented, with a final newline. */
export const printedJson = (value: Json): string => `${toJson(value, 2)}\n`;

/** The same text in pieces, since that of a large node has tens of megabytes: each item of a list is one. */
export function* jsonPieces(value: unknown): Generator<string> {
  yield* piecesOfJson(value, "");
  yield "\n";
}

function* piecesOfJson(value: unknown, indent: string): Generator<string> {
  const inner = `${indent}  `;
  if (Array.isArray(value) && value.length > 0) {
    for (const [at, item] of value.entries())
      yield `${at > 0 ? "," : "["}\n${inner}${indented(item, inner)}`;
    yield `\n${indent}]`;
  } else if (isMap(value)) {
    let before = "{";
    for (const name of Object.keys(value)) {
      const field = value[name];
      if (field === undefined) continue;
      yield `${before}\n${inner}${toJson(name)}: `;
      yield* piecesOfJson(field, inner);
      before = ",";
    }
    yield before === "{" ? "{}" : `\n${indent}}`;
  } else yield indented(value, indent);
}

const indented = (value: unknown, indent: string): string =>
  exactJson(value, 2).replaceAll("\n", `\n${indent}`);

/** A document as YAML that YAML 1.1 and 1.2 read alike: `254:0`, `no` and times are strings, integers exact. */
export const printedYaml = (value: unknown): string =>
  // Every text is quoted, so that what is escaped is in quotes.
  escaped(
    stringify(value, {
      defaultStringType: "QUOTE_DOUBLE",
      defaultKeyType: "PLAIN",
      compat: "yaml-1.1",
      lineWidth: 0,
      aliasDuplicateObjects: false,
    }),
  );

/** The same text in pieces: at once, the library takes forty times its memory. */
export function* yamlPieces(value: unknown, indent = ""): Generator<string> {
  if (Array.isArray(value) && value.length > 0) {
    for (const item of value) yield `${indent}- ${nested(item, indent)}`;
  } else if (isMap(value) && Object.keys(value).length > 0) {
    for (const name of Object.keys(value)) {
      const field = value[name];
      if (field === undefined) continue;
      const key = printedYaml({ [name]: null }).replace(/ null\n$/, "");
      const isLarge = typeof field === "object" && field !== null && Object.keys(field).length > 0;
      yield `${indent}${key}${isLarge ? "\n" : " "}`;
      if (isLarge) yield* yamlPieces(field, `${indent}  `);
      else yield printedYaml(field);
    }
  } else yield printedYaml(value);
}

const nested = (value: unknown, indent: string): string =>
  printedYaml(value).replaceAll(/\n(?!$)/g, `\n${indent}  `);

/** JSON text as YAML, integers exact. */
export const yamlOfJson = (json: string): string => printedYaml(parse(json, { intAsBigInt: true }));
