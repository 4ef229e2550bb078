/** Encodes requests and decodes responses by the schema, with `@grpc/proto-loader`. */
import { isUtf8 } from "node:buffer";

import { type AnyDefinition, fromJSON, type MessageTypeDefinition } from "@grpc/proto-loader";

import { assert } from "../model/errors.ts";
import { once } from "../model/values.ts";
import type { Answer, Method } from "./messages.ts";
import { readSchema, type Schema } from "./schema.ts" with { type: "macro" };

const { messages, methods }: Schema = readSchema();

/** The HTTP/2 path of a call: `/runtime.v1.ImageService/ListImages`. */
export const pathOf = (method: Method): string => declared(method).path;

/** The response is any number of messages. */
export const isStream = (method: Method): boolean => declared(method).responseStream;

const NO_FIELDS = Buffer.alloc(0);

export const encodeRequest = (method: Method, request: object): Buffer =>
  Object.keys(request).length === 0
    ? NO_FIELDS
    : messageOf(declared(method).requestType).serialize(request);

/** Throws `MalformedError`. */
export function decodeAnswer<M extends Method>(method: M, bytes: Buffer): Answer<M> {
  const { responseType } = declared(method);
  checkFields(bytes, shapeOf(responseType), { start: 0, end: bytes.length });
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- tests compare the types with the proto
    return messageOf(responseType).deserialize(bytes) as Answer<M>;
  } catch (thrown) {
    throw new MalformedError(thrown instanceof Error ? thrown.message : String(thrown), {
      cause: thrown,
    });
  }
}

function declared(method: Method): Schema["methods"][string] {
  const found = methods[method];
  assert(found !== undefined, `the proto declares no method ${method}`);
  return found;
}

/** Absent messages are `null`, other absent fields have their default, and integers of 64 bits are exact. */
const OPTIONS = { keepCase: true, longs: BigInt, defaults: true };

type Codec = MessageTypeDefinition<object, object>;

const codecs = once(() => fromJSON({ nested: messages }, OPTIONS));

function messageOf(name: string): Codec {
  const codec = codecs()[name];
  assert(codec !== undefined && isMessage(codec), `the proto declares no message ${name}`);
  return codec;
}

const isMessage = (definition: AnyDefinition): definition is Codec =>
  definition["format"] === "Protocol Buffer 3 DescriptorProto";

const shapes = new Map<string, Shape>();

function shapeOf(name: string): Shape {
  const known = shapes.get(name);
  if (known !== undefined) return known;
  const shape: FieldShape[] = [];
  for (const { id, type, keyType, rule } of Object.values(messages[name]?.fields ?? {}))
    shape[id] =
      keyType === undefined
        ? fieldShape(type, rule === "repeated")
        : {
            type: "map",
            fields: [undefined, fieldShape(keyType), fieldShape(type)],
            isRepeated: true,
          };
  shapes.set(name, shape);
  return shape;
}

const fieldShape = (type: string, isRepeated = false): FieldShape => ({
  type,
  fields: messages[type] === undefined ? null : shapeOf(type),
  isRepeated,
});

/*
 * What crigc checks in protobuf's wire format before the library decodes it. The library truncates a string whose length
 * exceeds its message, ignores wire types of known fields, skips groups and field number 0, replaces what is not UTF-8,
 * takes a bool of more than 32 bits for false, and of two parts of a message only the later one.
 */

/** A response that is not the expected message, or leaves something to guess. */
export class MalformedError extends Error {
  override readonly name = "MalformedError";
}

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** By number. Undeclared fields are skipped. */
type Shape = readonly (FieldShape | undefined)[];

interface FieldShape {
  readonly type: string;
  /** Of a message. */
  readonly fields: Shape | null;
  readonly isRepeated: boolean;
}

/** Throws `MalformedError` if the bytes are not a message of this shape. */
function checkFields(bytes: Buffer, shape: Shape, { start, end }: Span): void {
  /** A bit for each message that may come only once. */
  let met = 0;
  for (let at = start; at < end;) {
    readField(bytes, at, end);
    at = field.end;
    const declaration = shape[field.number];
    if (declaration === undefined) continue;
    const { type, fields, isRepeated } = declaration;
    const expected = fields !== null || type === "string" ? BYTES : VARINT;
    if (field.wireType !== expected)
      throw new MalformedError(`a field has wire type ${field.wireType} instead of ${expected}`);
    if (type === "string" && !isUtf8(bytes.subarray(field.start, at)))
      throw new MalformedError("a text is not UTF-8");
    if (type === "bool" && at - field.start > 1)
      throw new MalformedError("a bool is longer than one byte");
    if (fields === null) continue;
    const bit = isRepeated ? 0 : 1 << field.number;
    if ((met & bit) !== 0) throw new MalformedError("a message is there twice");
    met |= bit;
    // Its start and end are read before the next field is.
    checkFields(bytes, fields, field);
  }
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Every list has its entries in the field with this number, and no other field. */
export const ENTRIES_FIELD = 1;

/** Calls `onEntry` with each entry of a list, as a list with this entry alone, which shares the memory of `list`. */
export function cutEntries(list: Buffer, onEntry: (entry: Buffer) => void): void {
  for (let at = 0; at < list.length;) {
    readField(list, at, list.length);
    const { number, wireType, end } = field;
    if (number === ENTRIES_FIELD && wireType !== BYTES)
      throw new MalformedError(`an entry of a list has wire type ${wireType}`);
    if (number === ENTRIES_FIELD) onEntry(list.subarray(at, end));
    at = end;
  }
}

/** The field read last; one object, because lists have hundreds of thousands of fields. */
const field = { number: 0, wireType: VARINT, /** After a length. */ start: 0, end: 0 };

/** Nothing may pass the end of the message that holds it. */
function readField(bytes: Buffer, at: number, messageEnd: number): void {
  const tag = readLength(bytes, at, messageEnd);
  field.number = tag >>> 3;
  field.wireType = tag & 7;
  if (field.number === 0) throw new MalformedError("a field has the number 0");
  if (field.wireType === BYTES) {
    const length = readLength(bytes, field.start, messageEnd);
    field.end = field.start + length;
  } else if (field.wireType === VARINT) field.end = endOfInteger(bytes, field.start, messageEnd);
  else if (field.wireType === FIXED64) field.end = field.start + 8;
  else if (field.wireType === FIXED32) field.end = field.start + 4;
  // Groups predate proto3, in which CRI is written.
  else throw new MalformedError(`a field has wire type ${field.wireType}`);
  if (field.end > messageEnd)
    throw new MalformedError("a field is longer than the message that holds it");
}

/** A tag or a length, at most 32 bits; `field.start` is then after it. */
function readLength(bytes: Buffer, at: number, messageEnd: number): number {
  const first = byteAt(bytes, at, messageEnd);
  field.start = at + 1;
  if (first < 0x80) return first;
  let value = first & 0x7f;
  for (let factor = 128; factor < 2 ** 35; factor *= 128) {
    const byte = byteAt(bytes, field.start, messageEnd);
    field.start += 1;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80 && value < 2 ** 32) return value;
  }
  throw new MalformedError("a length is too large");
}

const INTEGER_BYTES_MAX = 10;

function endOfInteger(bytes: Buffer, start: number, messageEnd: number): number {
  for (let at = start; at < start + INTEGER_BYTES_MAX; at += 1)
    if (byteAt(bytes, at, messageEnd) < 0x80) return at + 1;
  throw new MalformedError("an integer is longer than ten bytes");
}

function byteAt(bytes: Buffer, at: number, messageEnd: number): number {
  const byte = at < messageEnd ? bytes[at] : undefined;
  if (byte === undefined) throw new MalformedError("an integer is truncated");
  return byte;
}
