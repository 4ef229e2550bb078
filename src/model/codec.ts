/**
 * How values of the model are written as JSON and read back. A record is declared once, field by field: its type, its
 * row in the state file and its part of a recorded node all come from that.
 */

import { type ChainId, chainId } from "./ids.ts";
import { type Duration, fromRfc3339, type Instant, type ObservedTime, toRfc3339 } from "./time.ts";
import { once } from "./values.ts";

export interface Codec<Value> {
  /** Reads what `write` returned; throws `FieldError`. */
  read(document: unknown): Value;
  write(value: Value): unknown;
  /** Suffix of the field's name in the document, if the model's type has a unit. */
  readonly unit?: "Ns";
  /** The field may be absent, in the model as in the document. */
  readonly isOptional?: true;
  /** What it is made of, from which tests make every value; absent: it is one of the codecs of single values. */
  readonly parts?: Parts;
}

export type Parts =
  | readonly ["list" | "nullable" | "optional" | "inField" | "map", Codec<unknown>]
  | readonly ["words", readonly string[]]
  | readonly ["record", Fields]
  | readonly ["union", Variants];

/** The type of what a codec reads and writes. */
export type Of<C> = C extends Codec<infer Value> ? Value : never;

// oxlint-disable-next-line typescript/no-explicit-any -- the types of fields differ
type Fields = Readonly<Record<string, Codec<any>>>;
type OptionalName<F> = {
  [Name in keyof F]: F[Name] extends { readonly isOptional: true } ? Name : never;
}[keyof F];

type Flat<T> = { readonly [Name in keyof T]: T[Name] };

/** The record that these fields declare. */
export type RecordOf<F> = Flat<
  { [Name in keyof F as Exclude<Name, OptionalName<F>>]: Of<F[Name]> } & {
    [Name in keyof F as Extract<Name, OptionalName<F>>]?: Of<F[Name]>;
  }
>;

/** A document that crigc cannot have written, with the path to the invalid field. */
export class FieldError extends Error {
  override readonly name = "FieldError";
  readonly path: readonly string[];
  constructor(message: string, path: readonly string[] = []) {
    super(message);
    this.path = path;
  }
}

/** Adds the step to the path of an error. */
export function at<Value>(step: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (error instanceof FieldError) throw new FieldError(error.message, [step, ...error.path]);
    throw error;
  }
}

function scalar<Value>(
  isOne: (document: unknown) => document is Value,
  what: string,
): Codec<Value> {
  return {
    read: (document) => {
      if (isOne(document)) return document;
      throw new FieldError(`expected ${what}`);
    },
    write: (value) => value,
  };
}

export const text = scalar((it): it is string => typeof it === "string", "a string");
export const flag = scalar((it): it is boolean => typeof it === "boolean", "true or false");
export const count = scalar(
  (it): it is number => Number.isSafeInteger(it) && Number(it) >= 0,
  "a whole number of 0 or more",
);
/** One of a closed set of words; rejects others. */
export const oneOf = <const Word extends string>(...words: readonly Word[]): Codec<Word> => ({
  ...scalar((it): it is Word => words.some((word) => word === it), `one of ${words.join(", ")}`),
  parts: ["words", words],
});
/** A word that no decision depends on, so that one added by a later version is shown as it is. */
export const word = <Word extends string>(): Codec<Word> =>
  scalar((it): it is Word => typeof it === "string", "a string");
/** Branded text; `make` adds the brand and changes nothing. */
export const branded = <Value extends string>(make: (value: string) => Value): Codec<Value> =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a brand exists only for the compiler
  text as Codec<ReturnType<typeof make>>;

/** An integer of any size. In a row, one that a JSON number cannot hold exactly is a string of digits. */
function integer(isInside: (value: bigint) => boolean, what: string): Codec<bigint> {
  const parsed = (document: unknown): bigint | null => {
    if (typeof document === "number")
      return Number.isSafeInteger(document) ? BigInt(document) : null;
    if (typeof document === "bigint") return document;
    return typeof document === "string" && /^-?\d{1,30}$/.test(document) ? BigInt(document) : null;
  };
  return {
    read: (document) => {
      const value = parsed(document);
      if (value !== null && isInside(value)) return value;
      throw new FieldError(`expected ${what}`);
    },
    write: (value) => value,
  };
}

export const bytes = integer(
  (value) => value >= 0n && value < 2n ** 64n,
  "a size from 0 to 2^64-1",
);
/** A sum or an estimate of sizes, each of which a runtime may report as large as `bytes`. */
export const amount = integer((value) => value >= 0n && value < 2n ** 96n, "a size below 2^96");
const nanoseconds = integer(
  (value) => BigInt.asIntN(64, value) === value,
  "a number of nanoseconds within 64 bits",
);
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a brand exists only for the compiler
export const durationNs = { ...nanoseconds, unit: "Ns" } as Codec<Duration>;
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same
export const watchedNs = { ...nanoseconds, unit: "Ns" } as Codec<ObservedTime>;

/** Keeps nanoseconds, so that a plan from the document equals the plan of the node. */
export const time: Codec<Instant> = {
  read: (document) => {
    const instant = typeof document === "string" ? fromRfc3339(document) : null;
    if (instant !== null) return instant;
    throw new FieldError("expected a time such as 2026-01-31T12:00:00Z");
  },
  write: (instant) => toRfc3339(instant),
};

export const nullable = <Value>(codec: Codec<Value>): Codec<Value | null> => ({
  ...codec,
  parts: ["nullable", codec],
  read: (document) => (document === null ? null : codec.read(document)),
  write: (value) => (value === null ? null : codec.write(value)),
});

/** A field that few records have: `null` is not written. */
export const sparse = <Value>(codec: Codec<Value>): Codec<Value | null> => ({
  ...nullable(codec),
  read: (document) => (document === undefined ? null : codec.read(document)),
  write: (value) => (value === null ? undefined : codec.write(value)),
});

/** A field that may be absent, in the model as in the document. */
export const optional = <Value>(
  codec: Codec<Value>,
): Codec<Value> & { readonly isOptional: true } => ({
  ...codec,
  isOptional: true,
  parts: ["optional", codec],
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `record` leaves out what is undefined
  read: (document) => (document === undefined ? (undefined as Value) : codec.read(document)),
  write: (value) => (value === undefined ? undefined : codec.write(value)),
});

/** Most records have lists of nothing: one for all of them. */
const NOTHING: readonly never[] = [];

export const list = <Value>(codec: Codec<Value>): Codec<readonly Value[]> => ({
  parts: ["list", codec],
  read: (document) => {
    if (!Array.isArray(document)) throw new FieldError("expected a list");
    if (document.length === 0) return NOTHING;
    return document.map((item: unknown, index) => at(`${index}`, () => codec.read(item)));
  },
  write: (values) => values.map((value) => codec.write(value)),
});

export const texts = list(text);

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** Layer chains as the digits of their digests in one text: a node has many of them. */
export const chains: Codec<readonly ChainId[]> = {
  read: (document) => {
    if (typeof document !== "string" || !/^(?:[0-9a-f]{64})+$/.test(document))
      throw new FieldError("expected digests");
    return (document.match(/.{64}/g) ?? []).map((digits) => chainId(`sha256:${digits}`));
  },
  write: (values) => {
    if (!values.every((chain) => DIGEST.test(chain)))
      throw new FieldError("expected SHA-256 digests");
    return values.map((chain) => chain.slice("sha256:".length)).join("");
  },
};

/** A record by its fields. Skips unknown fields. */
export function record<const F extends Fields>(fields: F): Codec<RecordOf<F>> {
  // Most commands read and write few of the records.
  const declared = once(() =>
    Object.entries<Codec<unknown>>(fields).map(([name, codec]) => ({
      name,
      inDocument: `${name}${codec.unit ?? ""}`,
      codec,
    })),
  );
  return {
    parts: ["record", fields],
    read: (document) => {
      if (typeof document !== "object" || document === null)
        throw new FieldError("expected a record");
      const value: Record<string, unknown> = {};
      for (const { name, inDocument, codec } of declared()) {
        const held = at(inDocument, () => codec.read(Reflect.get(document, inDocument)));
        if (held !== undefined) value[name] = held;
      }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each field was read by its codec
      return value as RecordOf<F>;
    },
    write: (value) => {
      const document: Record<string, unknown> = {};
      for (const { name, inDocument, codec } of declared())
        document[inDocument] = codec.write(Reflect.get(value, name));
      return document;
    },
  };
}

type Variants = Readonly<Record<string, Fields>>;
type UnionOf<V> = { [Kind in keyof V]: Flat<{ kind: Kind } & RecordOf<V[Kind]>> }[keyof V];

/** A union of records by their `kind`. */
export function byKind<const V extends Variants>(variants: V): Codec<UnionOf<V>> {
  const codecs = new Map<unknown, Codec<object>>(
    Object.entries(variants).map(([kind, fields]) => [kind, record(fields)]),
  );
  const codecOf = (document: unknown) => {
    const kind: unknown = Object(document).kind;
    const codec = codecs.get(kind);
    if (codec === undefined)
      throw new FieldError(`expected one of ${[...codecs.keys()].join(", ")}`, ["kind"]);
    return { kind, codec };
  };
  return {
    parts: ["union", variants],
    read: (document) => {
      const { kind, codec } = codecOf(document);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `variants` ties each kind to its fields
      return { kind, ...codec.read(document) } as UnionOf<V>;
    },
    write: (value) => {
      const { kind, codec } = codecOf(value);
      return { kind, ...Object(codec.write(value)) };
    },
  };
}

/** A value as the only field of a record. */
export const inField = <Value>(name: string, codec: Codec<Value>): Codec<Value> => ({
  parts: ["inField", codec],
  read: (document) => at(name, () => codec.read(Object(document)[name])),
  write: (value) => ({ [name]: codec.write(value) }),
});

export interface MapCodec<Key extends string, Value> extends Codec<ReadonlyMap<Key, Value>> {
  readonly value: Codec<Value>;
}

/** A map as a list in which each key occurs once, among the fields of its value. */
export function mapBy<Key extends string, Value>(
  keyName: string,
  key: (text: string) => Key,
  value: Codec<Value>,
): MapCodec<Key, Value> {
  const keys = inField(keyName, branded(key));
  const entries = list<readonly [Key, Value]>({
    read: (document) => [keys.read(document), value.read(document)],
    write: ([id, held]) => ({ [keyName]: id, ...Object(value.write(held)) }),
  });
  return {
    value,
    parts: ["map", value],
    read: (document) => {
      const read = entries.read(document);
      const map = new Map(read);
      if (map.size === read.length) return map;
      throw new FieldError("duplicate key");
    },
    write: (map) => entries.write([...map]),
  };
}

/** A map that documents of earlier versions lack. */
export const addedMap = <Key extends string, Value>(
  codec: MapCodec<Key, Value>,
): MapCodec<Key, Value> => ({
  ...codec,
  read: (document) => (document === undefined ? new Map() : codec.read(document)),
});
