// Ledgers and parts of them as fast-check makes them: every value that the model allows.

import fc from "fast-check";

import {
  chainId,
  containerId,
  creationId,
  imageId,
  podUid,
  sandboxId,
} from "../../src/model/ids.ts";
import type { Ledger } from "../../src/model/ledger.ts";
import { duration, instant, watched } from "../../src/model/time.ts";

const int64Max = 2n ** 63n - 1n;
const signed = fc.bigInt({ min: -int64Max - 1n, max: int64Max });

export const anInstant = signed.map(instant);
export const aDuration = signed.map(duration);
export const aWatched = fc.bigInt({ min: 0n, max: int64Max }).map(watched);
export const someBytes = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
/** Sums and estimates of sizes. */
const someAmount = fc.bigInt({ min: 0n, max: 2n ** 96n - 1n });
const text = fc.string({ unit: "binary" });
const count = fc.nat();
const nullable = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(of, { nil: null });
const mapOf = <K, V>(keys: fc.Arbitrary<K>, values: fc.Arbitrary<V>): fc.Arbitrary<Map<K, V>> =>
  fc.array(fc.tuple(keys, values), { maxLength: 8 }).map((entries) => new Map(entries));

/** Few different keys, so that two ledgers share some. */
const key = fc.oneof(fc.constantFrom("a", "b", "c", "d"), text);

const imageRecord = fc.record({
  firstSeenAt: anInstant,
  firstSeenWatched: aWatched,
  lastUsedAt: nullable(anInstant),
  lastUsedWatched: nullable(aWatched),
  ageRestartedWatched: nullable(aWatched),
  names: text,
  earlierNames: fc.array(text),
  sizeBytes: someBytes,
  ghost: nullable(
    fc.record({
      since: anInstant,
      attempts: count,
      retryWatched: aWatched,
      answeredWatched: nullable(aWatched),
      isFinal: fc.boolean(),
      names: nullable(text),
      runtime: text,
      instance: text,
      retriedAtOnce: fc.boolean(),
    }),
  ),
});

const aChain = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => chainId(`sha256:${bytes.toHex()}`));

export const aLedger: fc.Arbitrary<Ledger> = fc.record({
  bootId: text,
  observedAt: nullable(anInstant),
  uptime: aDuration,
  watched: aWatched,
  graceUntil: nullable(aWatched),
  graceReason: nullable(fc.constantFrom("boot" as const, "containers-vanished" as const)),
  ageRestartedWatched: nullable(aWatched),
  ageRestartDue: fc.boolean(),
  hadContainers: fc.boolean(),
  images: mapOf(key.map(imageId), imageRecord),
  containers: mapOf(
    key.map(containerId),
    fc.record({ imageVolumes: nullable(fc.array(text)), finishedAt: nullable(anInstant) }),
  ),
  pods: mapOf(
    key.map(podUid),
    fc.record({
      absentSinceWatched: nullable(aWatched),
      deadSinceWatched: nullable(aWatched),
      origin: fc.constantFrom("api" as const, "pending" as const, "static" as const, null),
    }),
  ),
  creations: mapOf(
    fc.tuple(key, key).map(([id, name]) => creationId({ sandboxId: sandboxId(id), name })),
    fc.record({
      sandboxId: key.map(sandboxId),
      name: text,
      markedAt: anInstant,
      firstSeenWatched: aWatched,
      awaited: fc.boolean(),
    }),
  ),
  heldUpPasses: count,
  sandboxImages: mapOf(key.map(sandboxId), text),
  gains: mapOf(
    key,
    fc.record({
      removals: count,
      estimatedBytes: someAmount,
      measuredBytes: someAmount,
      recentRemovals: count,
      largestPerMille: someAmount,
      measuredWatched: aWatched,
    }),
  ),
  origins: mapOf(
    key.map(imageId),
    fc.record({ chain: nullable(aChain), builtAt: nullable(anInstant) }),
  ),
  layers: mapOf(
    aChain,
    fc.record({ below: nullable(aChain), chain: fc.array(aChain, { minLength: 1 }) }),
  ),
  nothingFreed: mapOf(
    key,
    fc.record({
      knownSharers: count,
      removals: count,
      availableBytes: someBytes,
      capacityBytes: someBytes,
      pauses: count,
      retryWatched: aWatched,
    }),
  ),
  keepDirectories: fc.array(text),
});
