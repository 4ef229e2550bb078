import { expect, test } from "bun:test";

import fc from "fast-check";

import { creationId, imageId, podUid, sandboxId } from "../../src/model/ids.ts";
import { emptyLedger, type ImageRecord, type Ledger } from "../../src/model/ledger.ts";
import { instant, type ObservedTime, watched } from "../../src/model/time.ts";
import { mergeLedgers } from "../../src/store/merge.ts";
import { aRecord } from "../support/build/values.ts";
import { aLedger } from "./arbitrary.ts";

const sets = (ledger: Ledger) => ({ ...ledger, keepDirectories: new Set(ledger.keepDirectories) });

test("a change by only one of two processes wins", () => {
  fc.assert(
    fc.property(aLedger, aLedger, (base, changed) => {
      const later = {
        ...changed,
        watched: watched(base.watched + 1n),
        graceUntil: base.graceUntil,
        graceReason: base.graceReason,
        ageRestartedWatched: base.ageRestartedWatched,
        ageRestartDue: base.ageRestartDue,
        agingTerm: base.agingTerm,
        keepDirectories: [...new Set([...base.keepDirectories, ...changed.keepDirectories])],
      };
      expect(sets(mergeLedgers({ base, ours: later, theirs: base }))).toEqual(sets(later));
      expect(sets(mergeLedgers({ base, ours: base, theirs: later }))).toEqual(sets(later));
    }),
    { numRuns: 200 },
  );
});

test("a merge of two changed ledgers makes no image older, and drops images that one of them dropped", () => {
  fc.assert(
    fc.property(aLedger, aLedger, aLedger, (base, ours, theirs) => {
      const merged = mergeLedgers({ base, ours, theirs });
      for (const id of base.images.keys())
        if (!ours.images.has(id) || !theirs.images.has(id))
          expect(merged.images.has(id)).toBe(false);
      for (const [id, record] of merged.images) {
        const own = ours.images.get(id);
        const other = theirs.images.get(id);
        const before = base.images.get(id);
        if (own === undefined || other === undefined || before !== undefined) continue;
        for (const one of [own, other]) {
          expect(record.firstSeenWatched >= one.firstSeenWatched).toBe(true);
          expect((record.lastUsedWatched ?? -1n) >= (one.lastUsedWatched ?? -1n)).toBe(true);
        }
      }
    }),
    { numRuns: 200 },
  );
});

test("images of a ledger that was read after the first observation wait the minimum age again", () => {
  const seen: Ledger = { ...emptyLedger, observedAt: instant(1n), watched: watched(1n) };
  const known = new Map([[imageId("a"), aRecord({})]]);
  const late = { ...seen, watched: watched(9n), images: known };
  expect(mergeLedgers({ base: emptyLedger, ours: seen, theirs: late }).ageRestartDue).toBe(true);
  expect(mergeLedgers({ base: seen, ours: { ...seen }, theirs: late }).ageRestartDue).toBe(false);
});

test("a pod seen by one process is not absent for two passes because of another process", () => {
  const pods = (since: ObservedTime | null): Ledger => ({
    ...emptyLedger,
    pods: new Map([
      [podUid("u"), { absentSinceWatched: since, deadSinceWatched: since, origin: null }],
    ]),
  });
  const [early, late] = [watched(1n), watched(2n)];
  const merged = mergeLedgers({ base: pods(early), ours: pods(late), theirs: pods(null) });
  expect(merged.pods.get(podUid("u"))).toMatchObject({
    absentSinceWatched: null,
    deadSinceWatched: null,
  });
  expect(merged.images.has(imageId("a"))).toBe(false);
});

test.each([
  ["pulled", "no-record", "no-record"],
  ["no-record", "pulling", "no-record"],
  ["pulled", null, "pulled"],
  [null, "pulled", "pulled"],
] as const)("an image that one process found %p and another %p is %p", (one, other, merged) => {
  const found = (pull: ImageRecord["pull"], sizeBytes: bigint): Ledger => ({
    ...emptyLedger,
    images: new Map([[imageId("a"), aRecord({ pull, sizeBytes })]]),
  });
  const base = found(null, 0n);
  const both = mergeLedgers({ base, ours: found(one, 1n), theirs: found(other, 2n) });
  expect(both.images.get(imageId("a"))?.pull).toBe(merged);
});

test("a container being created counts from when either process first saw it, and is waited for once", () => {
  const its = { sandboxId: sandboxId("s"), name: "web", markedAt: instant(1n) };
  const ledger = (firstSeen: bigint, awaited: boolean, heldUpPasses: number): Ledger => ({
    ...emptyLedger,
    heldUpPasses,
    creations: new Map([
      [creationId(its), { ...its, firstSeenWatched: watched(firstSeen), awaited }],
    ]),
  });
  const [ours, theirs] = [ledger(2n, true, 0), ledger(1n, false, 1)];
  const merged = mergeLedgers({ base: emptyLedger, ours, theirs });
  expect(merged).toMatchObject(ledger(1n, true, 1));
});
