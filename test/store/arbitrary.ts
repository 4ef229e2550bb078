// Values as fast-check makes them: every one that the codec of a record allows.

import fc from "fast-check";

import {
  amount,
  bytes,
  chains,
  type Codec,
  count,
  durationNs,
  flag,
  text,
  time,
} from "../../src/model/codec.ts";
import { chainId } from "../../src/model/ids.ts";
import { ledgerCodec } from "../../src/model/ledger.ts";

const int64Max = 2n ** 63n - 1n;
const someText = fc.string({ unit: "binary" });
const aChain = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((digest) => chainId(`sha256:${digest.toHex()}`));

const SINGLE: ReadonlyMap<unknown, fc.Arbitrary<unknown>> = new Map<unknown, fc.Arbitrary<unknown>>(
  [
    [text.schema, someText],
    [flag.schema, fc.boolean()],
    [count.schema, fc.nat()],
    [bytes.schema, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })],
    [amount.schema, fc.bigInt({ min: 0n, max: 2n ** 96n - 1n })],
    [durationNs.schema, fc.bigInt({ min: -int64Max - 1n, max: int64Max })],
    [time.schema, fc.bigInt({ min: -int64Max - 1n, max: int64Max })],
    [chains.schema, fc.array(aChain, { minLength: 1 })],
  ],
);

/** Few different keys, so that two maps share some. */
const key = fc.oneof(fc.constantFrom("a", "b", "c", "d"), someText);

/** What the codec's schemas have, each of them only some. */
interface Schema {
  readonly type: string;
  readonly wrapped: Schema;
  readonly item: Schema;
  readonly options: readonly never[];
  readonly entries: Readonly<Record<string, Schema>>;
  /** Of `record`, if fields have units, `inField` and `mapBy`. */
  readonly pipe?: readonly Schema[];
}

function valueOf(schema: Schema): fc.Arbitrary<unknown> {
  const single = SINGLE.get(schema);
  if (single !== undefined) return single;
  const { type, wrapped, item, options, entries, pipe } = schema;
  switch (type) {
    case "picklist":
      return fc.constantFrom(...options);
    case "nullable":
    case "nullish":
      return fc.option(valueOf(wrapped));
    case "optional":
    case "exact_optional":
      return valueOf(wrapped);
    case "array": {
      const value = pipe === undefined ? undefined : item.pipe?.[2]?.entries[""];
      if (value === undefined) return fc.array(valueOf(item), { maxLength: 5 });
      return fc
        .array(fc.tuple(key, valueOf(value)), { maxLength: 8 })
        .map((pairs) => new Map(pairs));
    }
    case "object": {
      const [only, ...others] = Object.values(entries);
      const isField = pipe !== undefined && only !== undefined && others.length === 0;
      return isField ? valueOf(only) : recordOf(entries);
    }
    case "variant":
      return fc.oneof(...options.map(valueOf));
    default:
      throw new Error(`no values of ${type}`);
  }
}

const recordOf = (entries: Schema["entries"]) =>
  fc.record(
    Object.fromEntries(
      Object.entries(entries).map(([name, it]) => [name.replace(/Ns$/, ""), valueOf(it)]),
    ),
    {
      requiredKeys: Object.keys(entries)
        .filter((it) => entries[it]?.type !== "exact_optional")
        .map((it) => it.replace(/Ns$/, "")),
    },
  );

const arbitrary = <Value>({ schema }: Codec<Value>) =>
  valueOf(schema as unknown as Schema) as fc.Arbitrary<Value>;

export const aLedger = arbitrary(ledgerCodec);
