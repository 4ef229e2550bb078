// SEE src/cri/000-READ-ME-FIRST.txt (from the lead): replace this by @grpc/proto-loader.
/** Reads the protobuf wire format: bytes to plain records, by the tables of the schema. */
import type { Field, MessageType, Scalar } from "./schema.ts";

export type Value =
  string | number | bigint | boolean | null | Map<string, string> | Value[] | Message;
export interface Message {
  [field: string]: Value;
}

/** The bytes are no such message. */
export class WireError extends Error {
  override readonly name = "WireError";
}

/**
 * Every declared field is set in the result: absent ones to the default of proto3, absent messages to `null`.
 * 64-bit fields are exact bigints, enums are their numbers, undeclared fields are skipped without a look inside.
 */
export function decodeMessage(type: MessageType, bytes: Uint8Array): Message {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return readMessage(type, { buffer, at: 0 }, buffer.length);
}

/** Where reading stands. */
interface Cursor {
  readonly buffer: Buffer;
  at: number;
}

function readMessage(type: MessageType, cursor: Cursor, end: number): Message {
  const message: Message = {};
  for (const field of type.fields) message[field.name] = emptyValue(field);
  while (cursor.at < end) {
    const tag = readSmall(cursor);
    if (tag >>> 3 === 0) throw new WireError(`${type.name} has a field of number 0`);
    const field = type.byNumber.get(tag >>> 3);
    if (field === undefined) skip(cursor, tag & 7);
    else if ((tag & 7) !== wireTypeOf(field)) throw new WireError(`${field.name} has another type`);
    else readField(field, message, cursor);
  }
  if (cursor.at !== end) throw new WireError(`a field runs past the end of ${type.name}`);
  return message;
}

function emptyValue(field: Field): Value {
  if (field.repeated) return [];
  switch (field.type.kind) {
    case "scalar":
      return emptyScalars[field.type.scalar];
    case "enum":
      return 0;
    case "message":
      return null;
    case "strings":
      return new Map();
  }
}

const emptyScalars: Readonly<Record<Scalar, Value>> = {
  string: "",
  bool: false,
  int32: 0,
  uint32: 0,
  int64: 0n,
  uint64: 0n,
};

const VARINT = 0;
const FIXED64 = 1;
const DELIMITED = 2;
const FIXED32 = 5;

function wireTypeOf({ type }: Field): number {
  if (type.kind === "enum") return VARINT;
  return type.kind === "scalar" && type.scalar !== "string" ? VARINT : DELIMITED;
}

function readField(field: Field, message: Message, cursor: Cursor): void {
  const slot = message[field.name];
  if (slot instanceof Map) readEntry(cursor, slot);
  else if (Array.isArray(slot)) slot.push(readValue(field, cursor));
  // A field that is sent twice counts as sent last.
  else message[field.name] = readValue(field, cursor);
}

function readValue({ type }: Field, cursor: Cursor): Value {
  if (type.kind === "message") return readMessage(type.message, cursor, readEnd(cursor));
  const scalar = type.kind === "scalar" ? type.scalar : "int32";
  switch (scalar) {
    case "string":
      return readString(cursor);
    case "bool":
      return readVarint(cursor) !== 0n;
    case "int32":
      return Number(BigInt.asIntN(32, readVarint(cursor)));
    case "uint32":
      return Number(BigInt.asUintN(32, readVarint(cursor)));
    case "int64":
      return BigInt.asIntN(64, readVarint(cursor));
    case "uint64":
      return BigInt.asUintN(64, readVarint(cursor));
  }
}

/** A map is a list of messages with the key as field 1 and the value as field 2. */
function readEntry(cursor: Cursor, into: Map<string, string>): void {
  const end = readEnd(cursor);
  let key = "";
  let value = "";
  while (cursor.at < end) {
    const tag = readSmall(cursor);
    if (tag === 0x0a) key = readString(cursor);
    else if (tag === 0x12) value = readString(cursor);
    else skip(cursor, tag & 7);
  }
  if (cursor.at !== end) throw new WireError("a map's entry runs past its end");
  into.set(key, value);
}

function readString(cursor: Cursor): string {
  const end = readEnd(cursor);
  const text = cursor.buffer.toString("utf8", cursor.at, end);
  cursor.at = end;
  return text;
}

/** The length that stands at the cursor, as the position where what follows it ends. */
function readEnd(cursor: Cursor): number {
  const end = readSmall(cursor) + cursor.at;
  if (end > cursor.buffer.length) throw new WireError("a length runs past the end of the message");
  return end;
}

/** Tags and lengths, which fit in 32 bits; most take one byte. */
function readSmall(cursor: Cursor): number {
  let value = 0;
  for (let factor = 1; factor <= 2 ** 28; factor *= 128) {
    const byte = readByte(cursor);
    value += (byte & 0x7f) * factor;
    if (byte < 0x80 && value <= 0xffff_ffff) return value;
  }
  throw new WireError("a tag or a length exceeds 32 bits");
}

function readVarint(cursor: Cursor): bigint {
  let value = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = readByte(cursor);
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw new WireError("an integer exceeds 64 bits");
}

function readByte(cursor: Cursor): number {
  const byte = cursor.buffer[cursor.at];
  if (byte === undefined) throw new WireError("the message ends inside a field");
  cursor.at += 1;
  return byte;
}

function skip(cursor: Cursor, wireType: number): void {
  if (wireType === VARINT) readVarint(cursor);
  else if (wireType === FIXED64) cursor.at += 8;
  else if (wireType === DELIMITED) cursor.at = readEnd(cursor);
  else if (wireType === FIXED32) cursor.at += 4;
  else throw new WireError(`a field of wire type ${wireType} is not known to proto3`);
}
