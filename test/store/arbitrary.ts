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
  record,
  text,
  time,
  watchedNs,
} from "../../src/model/codec.ts";
import { chainId } from "../../src/model/ids.ts";
import { ledgerCodec } from "../../src/model/ledger.ts";
import { snapshotFields } from "../../src/model/snapshot.ts";

const int64Max = 2n ** 63n - 1n;
const someText = fc.string({ unit: "binary" });
const aChain = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((digest) => chainId(`sha256:${digest.toHex()}`));

const SINGLE: ReadonlyMap<unknown, fc.Arbitrary<unknown>> = new Map<unknown, fc.Arbitrary<unknown>>(
  [
    [text, someText],
    [flag, fc.boolean()],
    [count, fc.nat()],
    [bytes, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })],
    [amount, fc.bigInt({ min: 0n, max: 2n ** 96n - 1n })],
    [durationNs, fc.bigInt({ min: -int64Max - 1n, max: int64Max })],
    [time, fc.bigInt({ min: -int64Max - 1n, max: int64Max })],
    [watchedNs, fc.bigInt({ min: 0n, max: int64Max })],
    [chains, fc.array(aChain, { minLength: 1 })],
  ],
);

/** Few different keys, so that two maps share some. */
const key = fc.oneof(fc.constantFrom("a", "b", "c", "d"), someText);

function valueOf(codec: Codec<unknown>): fc.Arbitrary<unknown> {
  const { parts } = codec;
  if (parts === undefined) return SINGLE.get(codec) ?? fc.constant("a codec without values");
  switch (parts[0]) {
    case "words":
      return fc.constantFrom(...parts[1]);
    case "nullable":
      return fc.option(valueOf(parts[1]));
    case "list":
      return fc.array(valueOf(parts[1]), { maxLength: 5 });
    case "map":
      return fc
        .array(fc.tuple(key, valueOf(parts[1])), { maxLength: 8 })
        .map((entries) => new Map(entries));
    case "record":
      return recordOf(parts[1]);
    case "union":
      return fc.oneof(
        ...Object.entries(parts[1]).map(([kind, fields]) =>
          recordOf(fields).map((rest) => ({ kind, ...rest })),
        ),
      );
    case "optional":
    case "inField":
      return valueOf(parts[1]);
  }
}

const recordOf = (fields: Readonly<Record<string, Codec<unknown>>>) =>
  fc.record(Object.fromEntries(Object.entries(fields).map(([name, it]) => [name, valueOf(it)])), {
    requiredKeys: Object.keys(fields).filter((name) => fields[name]?.isOptional !== true),
  });

const arbitrary = <Value>(codec: Codec<Value>) => valueOf(codec) as fc.Arbitrary<Value>;

export const aLedger = arbitrary(ledgerCodec);
export const aSnapshot = arbitrary(record(snapshotFields));
