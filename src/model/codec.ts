/**
 * How values of the model are written as JSON and read back. A record is declared once, field by field: its type and
 * its text in the state files come from that.
 */

import * as v from "valibot";

import { type ChainId, chainId } from "./ids.ts";
import { type Duration, fromRfc3339, type Instant, toRfc3339, type TotalUptime } from "./time.ts";

export interface Codec<Value> {
  /** Of what `write` returned. */
  readonly schema: v.GenericSchema<unknown, Value>;
  /** Throws `FieldError`. */
  read(this: void, document: unknown): Value;
  write(this: void, value: Value): unknown;
  /** Suffix of the field's name in the document, if the model's type has a unit. */
  readonly unit?: "Ns";
}

/** The type of what a codec reads and writes. */
export type Of<C> = C extends Codec<infer Value> ? Value : never;

// oxlint-disable-next-line typescript/no-explicit-any -- the types of fields differ
type Fields = Readonly<Record<string, Codec<any>>>;
/** The record that these fields declare. */
export type RecordOf<F> = { readonly [Name in keyof F]: Of<F[Name]> };

/** A document that crigc cannot have written; the message begins with the path to the invalid field. */
export class FieldError extends Error {
  override readonly name = "FieldError";
}

const WORDS_MAX = 120;

function codec<Value>(
  schema: v.GenericSchema<unknown, Value>,
  write: (value: Value) => unknown = (value) => value,
): Codec<Value> {
  return {
    schema,
    read: (document) => {
      const result = v.safeParse(schema, document, { abortEarly: true });
      if (result.success) return result.output;
      const [{ message: whole, path = [] }] = result.issues;
      // It may quote a value of any length.
      const message = whole.length > WORDS_MAX ? `${whole.slice(0, WORDS_MAX)}…` : whole;
      throw new FieldError([...path.map(({ key }) => String(key)), message].join(": "));
    },
    write,
  };
}

export const text = codec(v.string());
export const flag = codec(v.boolean());
export const count = codec(v.pipe(v.number(), v.safeInteger(), v.minValue(0)));
/** One of a closed set of words; rejects others. */
export const oneOf = <const Word extends string>(...words: readonly Word[]): Codec<Word> =>
  codec(v.picklist(words));
/** A word that no decision depends on, so that one added by a later version is shown as it is. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is for display alone
export const openEnum = <Word extends string>(): Codec<Word> => text as unknown as Codec<Word>;
/** Branded text; `make` adds the brand and changes nothing. */
export const branded = <Value extends string>(make: (value: string) => Value): Codec<Value> =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a brand exists only for the compiler
  text as Codec<ReturnType<typeof make>>;

/** In a row, an integer that a JSON number cannot hold exactly is a string of digits. */
const integer = (minimum: bigint, maximum: bigint): Codec<bigint> =>
  codec(
    v.pipe(
      v.union(
        [
          v.pipe(v.number(), v.safeInteger()),
          v.bigint(),
          v.pipe(v.string(), v.regex(/^-?\d{1,30}$/)),
        ],
        `expected a whole number from ${minimum} to ${maximum}`,
      ),
      v.toBigint(),
      v.minValue(minimum, `expected a number of ${minimum} or more`),
      v.maxValue(maximum, `expected a number of ${maximum} or less`),
    ),
  );

export const bytes = integer(0n, 2n ** 64n - 1n);
/** A sum or an estimate of sizes, each of which a runtime may report as large as `bytes`. */
export const amount = integer(0n, 2n ** 96n - 1n);
/** By how much an amount changed, in either direction. */
export const change = integer(-(2n ** 96n), 2n ** 96n - 1n);
const nanoseconds = { ...integer(-(2n ** 63n), 2n ** 63n - 1n), unit: "Ns" } as const;
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a brand exists only for the compiler
export const durationNs = nanoseconds as Codec<Duration>;
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same
export const totalUptimeNs = nanoseconds as Codec<TotalUptime>;

/** Keeps nanoseconds, so that a plan from the document equals the plan of the node. */
export const time: Codec<Instant> = codec(
  v.pipe(
    v.string(),
    v.transform(fromRfc3339),
    v.custom<Instant>(
      (instant) => instant !== null,
      "expected a time such as 2026-01-31T12:00:00Z",
    ),
  ),
  toRfc3339,
);

export const nullable = <Value>(of: Codec<Value>): Codec<Value | null> => ({
  ...of,
  ...codec(v.nullable(of.schema), (value) => (value === null ? null : of.write(value))),
});

/** A field that few records have: `null` is not written. */
export const omitNull = <Value>(of: Codec<Value>): Codec<Value | null> => ({
  ...of,
  ...codec(v.nullish(of.schema, null), (value) => (value === null ? undefined : of.write(value))),
});

export const list = <Value>(of: Codec<Value>): Codec<readonly Value[]> =>
  codec<readonly Value[]>(v.array(of.schema), (values) => values.map((value) => of.write(value)));

export const texts = list(text);

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** Layer chains as the digits of their digests in one text: a node has many of them. */
export const chains: Codec<readonly ChainId[]> = codec(
  v.pipe(
    v.string(),
    v.regex(/^(?:[0-9a-f]{64})+$/, "expected digests"),
    v.transform((digits) => (digits.match(/.{64}/g) ?? []).map((it) => chainId(`sha256:${it}`))),
  ),
  (values) => {
    if (!values.every((chain) => DIGEST.test(chain)))
      throw new FieldError("expected SHA-256 digests");
    return values.map((chain) => chain.slice("sha256:".length)).join("");
  },
);

/** A record by its fields. Skips unknown fields. */
export function record<const F extends Fields>(fields: F): Codec<RecordOf<F>> {
  const declared = Object.entries<Codec<unknown>>(fields).map(([name, of]) => ({
    name,
    inDocument: `${name}${of.unit ?? ""}`,
    of,
  }));
  const written = v.object(
    Object.fromEntries(declared.map(({ inDocument, of }) => [inDocument, of.schema])),
  );
  const withoutUnits = (document: Readonly<Record<string, unknown>>) => {
    const value: Record<string, unknown> = {};
    for (const { name, inDocument } of declared)
      if (inDocument in document) value[name] = document[inDocument];
    return value;
  };
  const hasUnits = declared.some(({ of }) => of.unit !== undefined);
  const schema = hasUnits ? v.pipe(written, v.transform(withoutUnits)) : written;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema has the fields' own
  return codec(schema as v.GenericSchema<unknown, RecordOf<F>>, (value) => {
    const document: Record<string, unknown> = {};
    for (const { name, inDocument, of } of declared)
      document[inDocument] = of.write(Reflect.get(value, name));
    return document;
  });
}

/** A map as a list in which each key occurs once, among the fields of its value. */
export function mapBy<Key extends string, const F extends Fields>(
  keyName: string,
  key: (text: string) => Key,
  fields: F,
): Codec<ReadonlyMap<Key, RecordOf<F>>> {
  const { schema, write } = list<Readonly<Record<string, unknown>>>(
    record({ [keyName]: branded(key), ...fields }),
  );
  const entryOf = ({ [keyName]: id, ...held }: Readonly<Record<string, unknown>>) => [id, held];
  return codec<ReadonlyMap<Key, RecordOf<F>>>(
    v.pipe(
      schema,
      v.check((all) => new Set(all.map((it) => it[keyName])).size === all.length, "duplicate key"),
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as the schema declares
      v.transform((all) => new Map(all.map((it) => entryOf(it) as [Key, RecordOf<F>]))),
    ),
    (values) => write(Array.from(values, ([id, held]) => ({ ...held, [keyName]: id }))),
  );
}
