// How values of the model are written as JSON and read back. Each field is declared once, for the ledger, the history
// and the snapshot.

import { type ChainId, chainId } from "../model/ids.ts";
import {
  type Duration,
  duration,
  fromRfc3339,
  type Instant,
  toRfc3339,
  type Watched,
  watched,
} from "../model/time.ts";

export interface Codec<Value> {
  /** Reads what `write` returned; throws `FieldError`. */
  read(document: unknown): Value;
  write(value: Value): unknown;
  /** Suffix of the field's name in the document, if the model's type has a unit. */
  readonly unit?: "Ns";
}

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
function at<Value>(step: string, read: () => Value): Value {
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

/** Read as another type, written unchanged. */
const brand = <Plain, Value extends Plain>(
  codec: Codec<Plain>,
  make: (plain: Plain) => Value,
): Codec<Value> => ({ ...codec, read: (document) => make(codec.read(document)) });

export const text = scalar((it): it is string => typeof it === "string", "a string");
export const flag = scalar((it): it is boolean => typeof it === "boolean", "true or false");
export const count = scalar(
  (it): it is number => Number.isSafeInteger(it) && Number(it) >= 0,
  "a whole number of 0 or more",
);
/** One of a closed set of words; rejects others. */
export const oneOf = <const Word extends string>(...words: readonly Word[]): Codec<Word> =>
  scalar((it): it is Word => words.some((word) => word === it), `one of ${words.join(", ")}`);
/** A word that no decision depends on, so that one added by a later version is shown as it is. */
export const word = <Word extends string>(): Codec<Word> =>
  scalar((it): it is Word => typeof it === "string", "a string");
export const branded = <Value extends string>(make: (value: string) => Value): Codec<Value> =>
  brand(text, make);

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
export const durationNs: Codec<Duration> = { ...brand(nanoseconds, duration), unit: "Ns" };
export const watchedNs: Codec<Watched> = { ...brand(nanoseconds, watched), unit: "Ns" };

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
  read: (document) => (document === null ? null : codec.read(document)),
  write: (value) => (value === null ? null : codec.write(value)),
});

/** A field that few records have: `null` is not written. */
export const rare = <Value>(codec: Codec<Value>): Codec<Value | null> => ({
  ...codec,
  read: (document) => (document === undefined ? null : codec.read(document)),
  write: (value) => (value === null ? undefined : codec.write(value)),
});

/** A field that may be absent, in the model as in the document. */
export const optional = <Value>(codec: Codec<Value>): Codec<Value> => ({
  ...codec,
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `record` leaves out what is undefined
  read: (document) => (document === undefined ? (undefined as Value) : codec.read(document)),
  write: (value) => (value === undefined ? undefined : codec.write(value)),
});

/** A field that older documents lack, as every field added after a release. */
export const added = <Value>(codec: Codec<Value>, missing: Value): Codec<Value> => ({
  ...codec,
  read: (document) => (document === undefined ? missing : codec.read(document)),
});

/** Most records have lists of nothing: one for all of them. */
const NOTHING: readonly never[] = [];

export const list = <Value>(codec: Codec<Value>): Codec<readonly Value[]> => ({
  read: (document) => {
    if (!Array.isArray(document)) throw new FieldError("expected a list");
    if (document.length === 0) return NOTHING;
    return document.map((item: unknown, index) => at(`${index}`, () => codec.read(item)));
  },
  write: (values) => values.map((value) => codec.write(value)),
});

export const texts = list(text);

const DIGEST_BYTES = 32;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** Layer chains, packed: a node has many, and each is a digest. */
export const chains: Codec<readonly ChainId[]> = {
  read: (document) => {
    const packed = typeof document === "string" ? Buffer.from(document, "base64") : null;
    if (packed === null || packed.length === 0 || packed.length % DIGEST_BYTES !== 0)
      throw new FieldError("expected digests in base64");
    return Array.from({ length: packed.length / DIGEST_BYTES }, (_, index) => {
      const from = index * DIGEST_BYTES;
      return chainId(`sha256:${packed.toString("hex", from, from + DIGEST_BYTES)}`);
    });
  },
  write: (values) => {
    if (!values.every((chain) => DIGEST.test(chain)))
      throw new FieldError("expected SHA-256 digests");
    return Buffer.from(values.map((chain) => chain.slice(7)).join(""), "hex").toString("base64");
  },
};

export type Fields<Value> = { readonly [Name in keyof Value]-?: Codec<Value[Name]> };

/** A record by its fields. Skips unknown fields. */
export function record<Value extends object>(fields: Fields<Value>): Codec<Value> {
  const declared = Object.entries<Codec<unknown>>(fields).map(([name, codec]) => ({
    name,
    inDocument: `${name}${codec.unit ?? ""}`,
    codec,
  }));
  return {
    read: (document) => {
      if (typeof document !== "object" || document === null)
        throw new FieldError("expected a record");
      const value: Record<string, unknown> = {};
      for (const { name, inDocument, codec } of declared) {
        const held = at(inDocument, () => codec.read(Reflect.get(document, inDocument)));
        if (held !== undefined) value[name] = held;
      }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `Fields` ties each field to its codec
      return value as Value;
    },
    write: (value) => {
      const document: Record<string, unknown> = {};
      for (const { name, inDocument, codec } of declared)
        document[inDocument] = codec.write(Reflect.get(value, name));
      return document;
    },
  };
}

type Variants<Value extends { readonly kind: string }> = {
  readonly [Kind in Value["kind"]]: Fields<Omit<Extract<Value, { readonly kind: Kind }>, "kind">>;
};

/** A union by `kind`; `older` is the kind of documents without one. */
export function byKind<Value extends { readonly kind: string }>(
  variants: Variants<Value>,
  older?: Value["kind"],
): Codec<Value> {
  const codecs = new Map(
    Object.entries<Fields<object>>(variants).map(([kind, fields]) => [kind, record(fields)]),
  );
  const kinds = under("kind", added(oneOf(...codecs.keys()), older ?? ""));
  const codecOf = (kind: string): Codec<object> => {
    const codec = codecs.get(kind);
    if (codec === undefined) throw new FieldError("unknown kind", ["kind"]);
    return codec;
  };
  return {
    read: (document) => {
      const kind = kinds.read(document);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `Variants` ties each kind to its fields
      return { kind, ...codecOf(kind).read(document) } as Value;
    },
    write: (value) => ({ kind: value.kind, ...Object(codecOf(value.kind).write(value)) }),
  };
}

export const under = <Value>(name: string, codec: Codec<Value>): Codec<Value> => {
  const whole = record<Readonly<Record<string, Value>>>({ [name]: codec });
  return {
    read: (document) => {
      const { [name]: value } = whole.read(document);
      if (value === undefined) throw new FieldError(`missing ${name}`);
      return value;
    },
    write: (value) => whole.write({ [name]: value }),
  };
};

export interface MapCodec<Key extends string, Value> extends Codec<ReadonlyMap<Key, Value>> {
  readonly value: Codec<Value>;
}

/** A map as a list in which each key occurs once, among the fields of its value. */
export function mapBy<Key extends string, Value>(
  keyName: string,
  key: (text: string) => Key,
  value: Codec<Value>,
): MapCodec<Key, Value> {
  const entries = list<readonly [Key, Value]>({
    read: (document) => [key(under(keyName, text).read(document)), value.read(document)],
    write: ([id, held]) => ({ [keyName]: id, ...Object(value.write(held)) }),
  });
  return {
    value,
    read: (document) => {
      const read = entries.read(document);
      const map = new Map(read);
      if (map.size === read.length) return map;
      throw new FieldError("duplicate key");
    },
    write: (map) => entries.write([...map]),
  };
}
