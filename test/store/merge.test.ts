import { expect, test } from "bun:test";

import fc from "fast-check";

import { creationId, imageId, podUid, sandboxId } from "../../src/model/ids.ts";
import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import { duration, instant, type ObservedTime, watched } from "../../src/model/time.ts";
import { mergeLedgers } from "../../src/store/merge.ts";
import { aRecord } from "../support/build/values.ts";
import { aLedger } from "./arbitrary.ts";

test("a change by only one of two processes wins", () => {
  fc.assert(
    fc.property(aLedger, aLedger, (base, changed) => {
      const later = {
        ...changed,
        bootId: base.bootId,
        observedAt: instant((base.observedAt ?? 0n) + 1n),
        uptime: duration(base.uptime + 1n),
        watched: watched(base.watched + 1n),
        graceUntil: base.graceUntil,
        graceReason: base.graceReason,
        ageRestartedWatched: base.ageRestartedWatched,
        ageRestartDue: base.ageRestartDue,
        agingTerm: base.agingTerm,
      };
      expect(mergeLedgers({ base, ours: later, theirs: base })).toEqual(later);
      expect(mergeLedgers({ base, ours: base, theirs: later })).toEqual(later);
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
          expect(isAsYoung(record.firstSeenWatched, one.firstSeenWatched)).toBe(true);
          expect(isAsYoung(record.lastUsedWatched, one.lastUsedWatched)).toBe(true);
        }
      }
    }),
    { numRuns: 200 },
  );
});

/** What a process saw at its first observation is as old as the other one knows. */
const isAsYoung = (merged: ObservedTime | null, one: ObservedTime | null): boolean =>
  one === 0n || (merged ?? -1n) >= (one ?? -1n);

test("images of a ledger that was read after the first observation wait the minimum age again", () => {
  const seen: Ledger = { ...emptyLedger, observedAt: instant(1n), watched: watched(1n) };
  const known = new Map([[imageId("a"), aRecord({})]]);
  const late = { ...seen, watched: watched(9n), images: known };
  expect(mergeLedgers({ base: emptyLedger, ours: seen, theirs: late }).ageRestartDue).toBe(true);
  expect(mergeLedgers({ base: seen, ours: { ...seen }, theirs: late }).ageRestartDue).toBe(false);
});

test("what a process saw before it could read the ledger is as old as it was, and what both know as old as there", () => {
  const at = (time: bigint) => ({ firstSeenWatched: watched(time), lastUsedWatched: null });
  const its = { sandboxId: sandboxId("s"), name: "web", markedAt: instant(1n), awaited: false };
  const pod = { absentSinceWatched: null, origin: null };
  const seen: Ledger = {
    ...emptyLedger,
    observedAt: instant(1n),
    watched: watched(5n),
    graceUntil: watched(8n),
    images: new Map([
      [imageId("new"), aRecord(at(3n))],
      [imageId("known"), aRecord(at(0n))],
      [imageId("back"), aRecord(at(4n))],
      [imageId("used"), aRecord({ ...at(0n), lastUsedWatched: watched(0n) })],
    ]),
    pods: new Map([[podUid("u"), { ...pod, deadSinceWatched: watched(2n) }]]),
    creations: new Map([[creationId(its), { ...its, firstSeenWatched: watched(1n) }]]),
  };
  const late: Ledger = {
    ...emptyLedger,
    observedAt: instant(1n),
    watched: watched(900n),
    images: new Map([
      [imageId("known"), aRecord(at(100n))],
      [imageId("back"), aRecord(at(100n))],
      [imageId("used"), aRecord({ ...at(100n), lastUsedWatched: watched(200n) })],
    ]),
  };
  const merged = mergeLedgers({ base: emptyLedger, ours: seen, theirs: late });
  const first = (id: string) => Number(merged.images.get(imageId(id))?.firstSeenWatched);
  expect([first("new"), first("known"), first("back")]).toEqual([898, 100, 899]);
  expect(merged.images.get(imageId("used"))).toMatchObject({
    firstSeenWatched: watched(100n),
    lastUsedWatched: watched(895n),
  });
  expect(merged.graceUntil).toBe(watched(903n));
  expect(merged.pods.get(podUid("u"))?.deadSinceWatched).toBe(watched(897n));
  expect(merged.creations.get(creationId(its))?.firstSeenWatched).toBe(watched(896n));
});

test("an image that only one process saw is no older after a merge if that process missed observations", () => {
  const base: Ledger = { ...emptyLedger, observedAt: instant(1n), watched: watched(100n) };
  const image = aRecord({ firstSeenWatched: watched(110n) });
  const looked = { watched: watched(110n), observedAt: instant(70n), uptime: duration(70n) };
  const ours = { ...base, ...looked, images: new Map([[imageId("a"), image]]) };
  const theirs = {
    ...base,
    watched: watched(160n),
    observedAt: instant(60n),
    uptime: duration(60n),
  };
  const merged = mergeLedgers({ base, ours, theirs });
  expect(merged).toMatchObject({ ...looked, watched: watched(160n) });
  expect(merged.images.get(imageId("a"))?.firstSeenWatched).toBe(watched(160n));
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
