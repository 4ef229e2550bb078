// SEE src/cri/000-READ-ME-FIRST.txt (from the lead): replace this by @grpc/proto-loader.
/** Writes the protobuf wire format: plain records to bytes, by the tables of the schema. */
import { assert } from "../model/assert.ts";
import type { Field, MessageType } from "./schema.ts";

/** Fields by name; what is absent, `null` or the default of proto3 is not written. */
export type Fields = Readonly<Record<string, unknown>>;

/** A field that is not declared, or of another type than declared, is a bug: it asserts. */
export function encodeMessage(type: MessageType, fields: Fields): Buffer {
  for (const name of Object.keys(fields))
    assert(
      type.fields.some((field) => field.name === name),
      `${type.name} has no field ${name}`,
    );
  return Buffer.concat(
    type.fields.flatMap((field) => {
      const value = fields[field.name];
      if (value === undefined || value === null) return [];
      if (!field.repeated) return encodeField(field, value, false);
      assert(Array.isArray(value), `${field.name} is a list`);
      return value.flatMap((item: unknown) => encodeField(field, item, true));
    }),
  );
}

/** An item of a list is written even where it is the default. */
function encodeField(field: Field, value: unknown, isItem: boolean): readonly Buffer[] {
  const { number, name, type } = field;
  if (type.kind === "message") {
    assert(isFields(value), `${name} is a message`);
    return delimited(number, encodeMessage(type.message, value));
  }
  assert(type.kind !== "strings", `no request has a map: ${name}`);
  if (type.kind === "scalar" && type.scalar === "string") {
    assert(typeof value === "string", `${name} is a string`);
    return value === "" && !isItem ? [] : delimited(number, Buffer.from(value));
  }
  const integer = integerOf(value, name);
  return integer === 0n && !isItem ? [] : [varint(BigInt(number * 8)), varint(integer)];
}

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null;

function integerOf(value: unknown, name: string): bigint {
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value === "number") return BigInt(value);
  assert(typeof value === "bigint", `${name} is an integer`);
  return value;
}

function delimited(number: number, bytes: Buffer): readonly Buffer[] {
  return [varint(BigInt(number * 8 + 2)), varint(BigInt(bytes.length)), bytes];
}

/** Negative integers take ten bytes, as proto3 has them. */
function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}
