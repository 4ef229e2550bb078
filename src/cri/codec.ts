/**
 * Protobuf, as far as CRI needs it: a message is a table of fields, which know how to read themselves. Rejects whatever leaves
 * something to guess, because what a list lacks may be removed. Fields that are not declared are skipped.
 */
import { isUtf8 } from "node:buffer";

/** A response that is not the expected message, or leaves something to guess. */
export class MalformedError extends Error {
  override readonly name = "MalformedError";
}

interface Field<Value> {
  readonly number: number;
  readonly wireType: number;
  /** The value of a field that is not there. */
  readonly absent: Value;
  /** `before`: what the field has so far. A method, so that a field of any value is one of `unknown`. */
  read(this: void, bytes: Buffer, content: Span, before: Value): Value;
  /** Of a message. */
  readonly fields?: Fields;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

export type Fields = Readonly<Record<string, Field<unknown>>>;

export type Values<F extends Fields> = {
  readonly [Name in keyof F]: F[Name] extends Field<infer Value> ? Value : never;
};

export interface Message<Value> {
  readonly fields: Fields;
  /** Throws `MalformedError`. */
  readonly decode: (bytes: Buffer, content?: Span) => Value;
}

export type Decoded<M> = M extends Message<infer Value> ? Value : never;

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

export function message<const F extends Fields>(fields: F): Message<Values<F>> {
  const declared: (readonly [name: string, field: Field<unknown>])[] = [];
  for (const [name, one] of Object.entries(fields)) declared[one.number] = [name, one];
  const absent = Object.fromEntries(Object.entries(fields).map(([name, it]) => [name, it.absent]));
  const decode = (bytes: Buffer, content: Span = { start: 0, end: bytes.length }): Values<F> => {
    const { start, end } = content;
    const values: Record<string, unknown> = { ...absent };
    for (let at = start; at < end;) {
      readField(bytes, at, end);
      at = field.end;
      const found = declared[field.number];
      if (found === undefined) continue;
      const [name, { wireType, read }] = found;
      if (field.wireType !== wireType)
        throw new MalformedError(`${name} has wire type ${field.wireType} instead of ${wireType}`);
      values[name] = read(bytes, field, values[name]);
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each field reads its own value
    return values as Values<F>;
  };
  return { fields, decode };
}

const content = <Value>(
  number: number,
  absent: Value,
  read: Field<Value>["read"],
): Field<Value> => ({ number, wireType: BYTES, absent, read });

const textIn = (bytes: Buffer, { start, end }: Span): string => {
  const decoded = bytes.toString("utf8", start, end);
  // What decoding puts in place of bytes that are not UTF-8.
  if (decoded.includes("\uFFFD") && !isUtf8(bytes.subarray(start, end)))
    throw new MalformedError("a text is not UTF-8");
  return decoded;
};

export const text = (number: number): Field<string> => content(number, "", textIn);

export const one = <Value>(
  number: number,
  { fields, decode }: Message<Value>,
): Field<Value | null> => ({
  ...content<Value | null>(number, null, (bytes, span, before) => {
    if (before !== null) throw new MalformedError("a message is there twice");
    return decode(bytes, span);
  }),
  fields,
});

const repeated = <Value>(
  number: number,
  read: (bytes: Buffer, span: Span) => Value,
): Field<readonly Value[]> => {
  const none: Value[] = [];
  return content(number, none, (bytes, span, before) => {
    const values = before === none ? [] : before;
    values.push(read(bytes, span));
    return values;
  });
};

export const texts = (number: number): Field<readonly string[]> => repeated(number, textIn);

export const many = <Value>(
  number: number,
  { fields, decode }: Message<Value>,
): Field<readonly Value[]> => ({ ...repeated(number, decode), fields });

/** A map of texts. */
export function strings(number: number): Field<Readonly<Record<string, string>>> {
  const none = {};
  const pair = message({ key: text(1), value: text(2) });
  return content(number, none, (bytes, span, before) => {
    const { key, value } = pair.decode(bytes, span);
    const all = { value, enumerable: true, configurable: true, writable: true };
    // An assignment to `__proto__` would be lost.
    return Object.defineProperty(before === none ? {} : before, key, all);
  });
}

const integer =
  <Value>(absent: Value, valueOf: (integer: bigint) => Value) =>
  (number: number): Field<Value> => ({
    number,
    wireType: VARINT,
    absent,
    read: (bytes, span) => valueOf(integerIn(bytes, span)),
  });

export const bool = integer(false, (it) => it !== 0n);
export const int32 = integer(0, (it) => Number(BigInt.asIntN(32, it)));
export const uint32 = integer(0, (it) => Number(BigInt.asUintN(32, it)));
export const int64 = integer(0n, (it) => BigInt.asIntN(64, it));
export const uint64 = integer(0n, (it) => it);

/** Seven bits a byte, lowest first. */
function integerIn(bytes: Buffer, { start, end }: Span): bigint {
  let value = 0n;
  for (let at = end - 1; at >= start; at -= 1)
    value = (value << 7n) | BigInt((bytes[at] ?? 0) & 0x7f);
  return BigInt.asUintN(64, value);
}

/** Every list has its entries in the field with this number, and no other field. */
export const ENTRIES_FIELD = 1;

/** Calls `onEntry` with each entry of a list, which shares the memory of `list`. */
export function cutEntries(list: Buffer, onEntry: (entry: Buffer) => void): void {
  for (let at = 0; at < list.length;) {
    readField(list, at, list.length);
    at = field.end;
    if (field.number !== ENTRIES_FIELD) continue;
    if (field.wireType !== BYTES)
      throw new MalformedError(`an entry of a list has wire type ${field.wireType}`);
    onEntry(list.subarray(field.start, field.end));
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
  field.start = at;
  let value = 0;
  for (let factor = 1; factor < 2 ** 35; factor *= 128) {
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
