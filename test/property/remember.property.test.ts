import { expect, test } from "bun:test";

import fc from "fast-check";

import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { type Duration, duration, hours, instant } from "../../src/model/time.ts";
import { usageOf } from "../../src/policy/image/usage.ts";
import { remember } from "../../src/policy/remember.ts";
import {
  aContainer,
  anImage,
  aSnapshot,
  defaultLimits,
  idOf,
  NOW,
} from "../support/build/values.ts";

const WORDS = ["a", "b", "c"] as const;
const limits = defaultLimits.ledger;

interface Look {
  /** By which the wall clock moves, beyond all reason and in both directions. */
  readonly wall: Duration;
  /** By which time really passes. */
  readonly passed: Duration;
  readonly reboot: boolean;
  readonly listed: readonly string[];
  readonly used: readonly string[];
  readonly retagged: boolean;
}

const look: fc.Arbitrary<Look> = fc.record({
  wall: fc.bigInt({ min: hours(-100_000), max: hours(100_000) }).map(duration),
  passed: fc.bigInt({ min: 0n, max: hours(30) }).map(duration),
  reboot: fc.boolean(),
  listed: fc.subarray([...WORDS]),
  used: fc.subarray([...WORDS]),
  retagged: fc.boolean(),
});

/** The snapshots that a node shows, one after the other. */
function snapshots(looks: readonly Look[]): readonly Snapshot[] {
  let wall = NOW;
  let uptime = hours(1);
  let boot = 1;
  return looks.map(({ wall: jump, passed, reboot, listed, used, retagged }) => {
    wall = instant(wall + jump);
    uptime = reboot ? passed : duration(uptime + passed);
    boot += reboot ? 1 : 0;
    const containers = used
      .filter((word) => listed.includes(word))
      .map((word) => aContainer(word, { imageId: idOf(word) }));
    return aSnapshot({
      clocks: { wall, uptime, bootId: `boot-${boot}` },
      observedAt: wall,
      images: listed.map((word) =>
        anImage(word, retagged ? { repoTags: [`registry.example/${word}:v2`] } : {}),
      ),
      containers,
    });
  });
}

const next = (ledger: Ledger, snapshot: Snapshot): Ledger =>
  remember({ ledger, snapshot, usage: usageOf(snapshot), limits, pods: ledger.pods });

const looksOf = fc.array(look, { minLength: 1, maxLength: 12 });

test("recording the same snapshot twice changes nothing", () => {
  fc.assert(
    fc.property(looksOf, (looks) => {
      let ledger = emptyLedger;
      for (const snapshot of snapshots(looks)) {
        ledger = next(ledger, snapshot);
        expect(next(ledger, snapshot)).toEqual(ledger);
      }
    }),
    { numRuns: 500 },
  );
});

test("no jump of a clock makes anything older than its observed time", () => {
  fc.assert(
    fc.property(looksOf, (looks) => {
      const most = hours(24);
      let ledger = emptyLedger;
      let bound = 0n;
      for (const [at, snapshot] of snapshots(looks).entries()) {
        const before = ledger;
        ledger = next(ledger, snapshot);
        const { passed = 0n } = looks[at] ?? {};
        const step = ledger.watched - before.watched;
        expect(step).toBe(at === 0 ? 0n : passed > most ? most : passed);
        bound += step;
        for (const record of ledger.images.values()) {
          expect(record.firstSeenWatched).toBeGreaterThanOrEqual(0n);
          expect(ledger.watched - record.firstSeenWatched).toBeLessThanOrEqual(bound);
          if (record.lastUsedWatched !== null)
            expect(record.lastUsedWatched).toBeLessThanOrEqual(ledger.watched);
        }
      }
    }),
    { numRuns: 500 },
  );
});
