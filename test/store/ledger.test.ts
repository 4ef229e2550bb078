import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { imageId } from "../../src/model/ids.ts";
import { emptyLedger, type ImageRecord, type Ledger } from "../../src/model/ledger.ts";
import { duration, instant, watched } from "../../src/model/time.ts";
import { openInMemory } from "../../src/store/connection.ts";
import { readLedger, writeLedger } from "../../src/store/ledger.ts";
import { aLedger } from "./arbitrary.ts";

const record: ImageRecord = {
  firstSeenAt: instant(1n),
  firstSeenWatched: watched(2n),
  lastUsedAt: null,
  lastUsedWatched: null,
  names: "a",
  earlierNames: [],
  sizeBytes: 3n,
  ghost: null,
};

const ledgerWith = (count: number): Ledger => ({
  ...emptyLedger,
  bootId: "boot",
  uptime: duration(5n),
  images: new Map(Array.from({ length: count }, (_, at) => [imageId(`sha256:${at}`), record])),
});

describe("the ledger on disk", () => {
  test("a fresh file holds the empty ledger", () => {
    expect(readLedger(openInMemory())).toBe(emptyLedger);
  });

  test("every ledger is read as it was written, whatever was there before", () => {
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
      { numRuns: 300 },
    );
  });

  test("only rows that differ are written", () => {
    const db = openInMemory();
    const first = ledgerWith(100);
    expect(writeLedger(db, first, emptyLedger)).toBe(101);
    const copy = {
      ...first,
      images: new Map([...first.images].map(([id, it]) => [id, { ...it }])),
    };
    expect(writeLedger(db, copy, first)).toBe(0);
    const images = new Map(copy.images);
    images.delete(imageId("sha256:7"));
    images.set(imageId("sha256:8"), { ...record, names: "other" });
    expect(writeLedger(db, { ...copy, images }, copy)).toBe(2);
    expect(readLedger(db).images).toEqual(
      new Map([...images].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    );
  });

  test.each([
    "UPDATE ledger_image SET size_bytes = size_bytes, ghost_since = 1 WHERE id = 'sha256:1'",
    "UPDATE ledger_state SET grace_reason = 'whim'",
    "UPDATE ledger_state SET keep_directories = '[1]'",
    "UPDATE ledger_state SET keep_directories = 'x'",
    "UPDATE ledger_state SET had_containers = 7",
    "INSERT INTO ledger_pod VALUES ('u', -1, 0, NULL, NULL)",
    "DELETE FROM ledger_state",
  ])("what we cannot have written is refused: %s", (sql) => {
    const db = openInMemory();
    writeLedger(db, ledgerWith(2), emptyLedger);
    readLedger(db);
    db.run(sql);
    expect(() => readLedger(db)).toThrow();
  });
});

/** Maps keep the order in which they were filled; tables the one of their keys. */
function sorted(ledger: Ledger): unknown {
  return Object.fromEntries(
    Object.entries(ledger).map(([name, value]: [string, unknown]) => [
      name,
      value instanceof Map
        ? [...value].toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1))
        : value,
    ]),
  );
}
