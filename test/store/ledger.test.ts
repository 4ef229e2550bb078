import type { Database } from "bun:sqlite";
import { expect, test } from "bun:test";

import fc from "fast-check";

import { type ImageId, imageId } from "../../src/model/ids.ts";
import { emptyLedger, type ImageRecord, type Ledger } from "../../src/model/ledger.ts";
import { duration, instant, watched } from "../../src/model/time.ts";
import { openInMemory } from "../../src/store/connection.ts";
import {
  ledgerChanges,
  ledgerOf,
  readLedgerRows,
  writeLedgerRows,
} from "../../src/store/ledger-rows.ts";
import { aRecord } from "../support/build/values.ts";
import { aLedger } from "./arbitrary.ts";

const record = aRecord({ firstSeenAt: instant(1n), firstSeenWatched: watched(2n), names: "a" });

const ledgerWith = (count: number): Ledger => ({
  ...emptyLedger,
  bootId: "boot",
  uptime: duration(5n),
  images: new Map(Array.from({ length: count }, (_, at) => [imageId(`sha256:${at}`), record])),
});

const byId = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number =>
  a < b ? -1 : 1;

const readLedger = (db: Database): Ledger => ledgerOf(readLedgerRows(db));

/** How many rows it took. */
function writeLedger(
  db: Database,
  next: Ledger,
  previous: Ledger,
  changed?: ReadonlySet<ImageId>,
): number {
  const changes = ledgerChanges(next, previous, changed);
  writeLedgerRows(db, changes, crypto.randomUUID());
  return changes.length;
}

test("a ledger is read as written, over any earlier one", () => {
  fc.assert(
    fc.property(fc.array(aLedger, { minLength: 1, maxLength: 3 }), (ledgers) => {
      const db = openInMemory();
      let previous = emptyLedger;
      for (const next of ledgers) {
        writeLedger(db, next, previous);
        const read = readLedger(db);
        expect(sorted(read)).toEqual(sorted(next));
        previous = read;
      }
      db.close();
    }),
    { numRuns: 100 },
  );
});

test("only rows that differ are written: where every image is in use and nothing else changes, one", () => {
  const db = openInMemory();
  const looked = (turn: bigint): Ledger => ({
    ...ledgerWith(0),
    observedAt: instant(turn),
    watched: watched(turn),
    images: new Map(
      Array.from({ length: 100 }, (_, at) => [
        imageId(`sha256:${at}`),
        { ...record, lastUsedAt: instant(turn + 5n), lastUsedWatched: watched(turn) },
      ]),
    ),
  });
  expect(writeLedger(db, looked(1n), emptyLedger)).toBe(101);
  expect(writeLedger(db, looked(1n), looked(1n))).toBe(0);
  expect(writeLedger(db, looked(2n), looked(1n))).toBe(1);
  // One is not in use at the next look, one has other names, one is gone.
  const images = new Map(looked(3n).images);
  images.set(imageId("sha256:7"), looked(2n).images.get(imageId("sha256:7")) ?? record);
  images.set(imageId("sha256:8"), { ...record, names: "other" });
  images.delete(imageId("sha256:9"));
  expect(writeLedger(db, { ...looked(3n), images }, looked(2n))).toBe(4);
  expect(readLedger(db).images).toEqual(new Map([...images].toSorted(byId)));
});

test("versions that differ in one image each are read as written, including which images were in use", () => {
  const step = fc.record({
    id: fc.integer({ min: 0, max: 6 }).map((at) => imageId(`sha256:${at}`)),
    lastUsed: fc.option(fc.bigInt({ min: 0n, max: 3n }), { nil: null }),
    goes: fc.boolean(),
    isTold: fc.boolean(),
  });
  const images = Array.from({ length: 7 }, () => fc.bigInt({ min: 0n, max: 3n }));
  const imageOf = (lastUsed: bigint | null): ImageRecord =>
    lastUsed === null
      ? record
      : { ...record, lastUsedAt: instant(lastUsed), lastUsedWatched: watched(lastUsed) };
  fc.assert(
    fc.property(fc.tuple(...images), fc.array(step, { maxLength: 12 }), (first, steps) => {
      const db = openInMemory();
      let previous: Ledger = {
        ...ledgerWith(0),
        images: new Map(first.map((use, at) => [imageId(`sha256:${at}`), imageOf(use)])),
      };
      writeLedger(db, previous, emptyLedger);
      for (const { id, lastUsed, goes, isTold } of steps) {
        const changed = new Map(previous.images).set(id, imageOf(lastUsed));
        if (goes) changed.delete(id);
        const next: Ledger = { ...previous, images: changed };
        writeLedger(db, next, previous, isTold ? new Set([id]) : undefined);
        const written = readLedger(db);
        expect(new Map(written.images)).toEqual(new Map([...next.images].toSorted(byId)));
        // Another process goes on with what it has read.
        expect(ledgerChanges(next, written)).toEqual([]);
        previous = next;
      }
    }),
  );
});

test("unknown fields and kinds of rows are ignored", () => {
  const db = openInMemory();
  writeLedger(db, ledgerWith(2), emptyLedger);
  db.run("UPDATE ledger SET document = json_set(document, '$.novelty', 1)");
  db.run("INSERT INTO ledger VALUES ('novelties', 'x', '{}')");
  expect(readLedger(db)).toEqual(ledgerWith(2));
  writeLedger(db, { ...ledgerWith(3), bootId: "next" }, readLedger(db));
  expect(readLedger(db)).toEqual({ ...ledgerWith(3), bootId: "next" });
  expect(db.query("SELECT id FROM ledger WHERE kind = 'novelties'").all()).toHaveLength(1);
});

test.each([
  "UPDATE ledger SET document = json_set(document, '$.ghost', json('{\"attempts\":1}')) WHERE id = 'sha256:1'",
  "UPDATE ledger SET document = json_set(document, '$.inUse', json('true')) WHERE id = 'sha256:1'",
  "UPDATE ledger SET document = json_remove(document, '$.sizeBytes') WHERE id = 'sha256:1'",
  "UPDATE ledger SET document = json_set(document, '$.graceReason', 'whim') WHERE kind = 'state'",
  "UPDATE ledger SET document = 'x' WHERE kind = 'state'",
  "UPDATE ledger SET document = json_set(document, '$.hadContainers', 7) WHERE kind = 'state'",
  "INSERT INTO ledger VALUES ('pods', 'u', '{\"deadSinceWatchedNs\":-0.5}')",
  "DELETE FROM ledger WHERE kind = 'state'",
])("an impossible row is refused: %s", (sql) => {
  const db = openInMemory();
  writeLedger(db, ledgerWith(2), emptyLedger);
  readLedger(db);
  db.run(sql);
  expect(() => readLedger(db)).toThrow();
});

/** Maps keep the order in which they were filled; tables the one of their keys. */
const sorted = (ledger: Ledger): unknown =>
  Object.fromEntries(
    Object.entries(ledger).map(([name, value]: [string, unknown]) => [
      name,
      value instanceof Map ? [...(value as Map<string, unknown>)].toSorted(byId) : value,
    ]),
  );
