/** How messages are read (each field declared once, by number and type) and how requests are written. */
import { assert } from "../model/assert.ts";
import { BYTES, Cursor, MalformedError, VARINT } from "./wire.ts";

export interface Type<Value> {
  readonly wireType: number;
  /** The value of a field that was not sent. */
  readonly absent: Value;
  /** `before`: what was read of the field so far. */
  read(cursor: Cursor, before: Value): NonNullable<Value>;
}

type Table = Readonly<Record<string, readonly [number: number, type: Type<unknown>]>>;

export type Message<T extends Table> = {
  readonly [Name in keyof T]: T[Name][1] extends Type<infer Value> ? Value : never;
};

export type ValueOf<T> = T extends Type<infer Value> ? NonNullable<Value> : never;

export const text: Type<string> = { wireType: BYTES, absent: "", read: (it) => it.text() };
export const flag: Type<boolean> = {
  wireType: VARINT,
  absent: false,
  read: (it) => it.uint64() !== 0n,
};
export const uint32: Type<number> = { wireType: VARINT, absent: 0, read: (it) => it.uint32() };
/** Also for enums, as plain numbers, so that unknown values are noticed. */
export const int32: Type<number> = { wireType: VARINT, absent: 0, read: (it) => it.uint32() | 0 };
export const uint64: Type<bigint> = { wireType: VARINT, absent: 0n, read: (it) => it.uint64() };
export const int64: Type<bigint> = {
  wireType: VARINT,
  absent: 0n,
  read: (it) => BigInt.asIntN(64, it.uint64()),
};

/** For messages and strings. Lists of integers would be packed, and CRI has none. */
export function list<Value>(of: Type<Value>): Type<NonNullable<Value>[]> {
  const none: NonNullable<Value>[] = [];
  return {
    wireType: of.wireType,
    absent: none,
    read: (cursor, before) => {
      const items = before === none ? [] : before;
      items.push(of.read(cursor, of.absent));
      return items;
    },
  };
}

export type Strings = Readonly<Record<string, string>>;

/** A map of strings; with `wanted`, only those keys. */
export function strings(wanted?: readonly string[]): Type<Strings> {
  const none: Strings = {};
  const lengths = wanted && new Set(wanted.map((key) => key.length));
  return {
    wireType: BYTES,
    absent: none,
    read: (cursor, before) => {
      const around = cursor.enter();
      let [key, start, end] = ["", 0, 0];
      while (cursor.at < cursor.end) {
        const number = cursor.tag();
        if (number > 2) {
          cursor.skip();
          continue;
        }
        expectType(cursor, BYTES);
        const from = cursor.span();
        if (number === 2) [start, end] = [from, cursor.at];
        else if (lengths?.has(cursor.at - from) !== false) key = cursor.slice(from, cursor.at);
      }
      cursor.leave(around);
      if (wanted?.includes(key) === false) return before;
      const map: Record<string, string> = before === none ? {} : before;
      const value = cursor.slice(start, end);
      // A plain assignment would set the prototype, not a label.
      if (key === "__proto__") Object.defineProperty(map, key, { ...own, value });
      else map[key] = value;
      return map;
    },
  };
}

const own = { enumerable: true, writable: true, configurable: true };

function expectType({ wireType }: Cursor, expected: number): void {
  if (wireType !== expected)
    throw new MalformedError(`a field has wire type ${wireType} instead of ${expected}`);
}

/**
 * Sets every declared field and skips others. A message that was not sent is `null`; if it was sent twice, the last
 * counts.
 */
export function message<const T extends Table>(
  table: T,
): Type<Message<T> | null> & { whole(bytes: Buffer): Message<T> } {
  const absent: Record<string, unknown> = {};
  const fields: (readonly [name: string, type: Type<unknown>] | undefined)[] = [];
  for (const [name, [number, type]] of Object.entries(table)) {
    absent[name] = type.absent;
    fields[number] = [name, type];
  }
  const fill = (cursor: Cursor): Message<T> => {
    const fresh = { ...absent };
    while (cursor.at < cursor.end) {
      const field = fields[cursor.tag()];
      if (field === undefined) {
        cursor.skip();
        continue;
      }
      const [name, type] = field;
      expectType(cursor, type.wireType);
      fresh[name] = type.read(cursor, fresh[name]);
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each field was read by its own type
    return fresh as Message<T>;
  };
  return {
    wireType: BYTES,
    absent: null,
    read: (cursor) => {
      const around = cursor.enter();
      const inner = fill(cursor);
      cursor.leave(around);
      return inner;
    },
    whole: (bytes) => fill(new Cursor(bytes)),
  };
}

/** Fields of a request by name, with the numbers of nested fields. */
export interface RequestTable {
  readonly [name: string]: number | readonly [number: number, inside: RequestTable];
}

/** Omits absent fields. */
export function written(table: RequestTable, request: object): Buffer {
  const parts = Object.entries(request).flatMap(([name, value]): readonly Buffer[] => {
    const field = table[name];
    assert(field !== undefined, `a request declares no field ${name}`);
    const [number, inside] = typeof field === "number" ? [field, {}] : field;
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    return values.map((it) => writtenField(number, inside, it));
  });
  return Buffer.concat(parts);
}

function writtenField(number: number, inside: RequestTable, value: unknown): Buffer {
  if (typeof value === "number" || typeof value === "boolean")
    return Buffer.from([...varint(number * 8 + VARINT), ...varint(Number(value))]);
  const bytes =
    typeof value === "object" && value !== null
      ? written(inside, value)
      : Buffer.from(String(value));
  return Buffer.concat([
    Buffer.from([...varint(number * 8 + BYTES), ...varint(bytes.length)]),
    bytes,
  ]);
}

function varint(value: number): readonly number[] {
  assert(Number.isSafeInteger(value) && value >= 0, `invalid number ${value} in a request`);
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return [...bytes, rest];
}
