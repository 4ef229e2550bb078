// Rows of the ledger and settings in the state file, read and written unchanged.

import type { Database } from "bun:sqlite";

import { rowJson } from "../model/exact-json.ts";
import { instant, watched as asWatched } from "../model/time.ts";
import { text, under } from "./codec.ts";
import { imageRow } from "./ledger-document.ts";
import { type LedgerChanges, type LedgerRow, STATE_KIND } from "./ledger-rows.ts";
import { REMOVED_IMAGE } from "./schema.ts";

/** The row of the ledger's state comes first. No image was first seen before its last removal in the history. */
export function* readLedgerRows(db: Database): Iterable<LedgerRow> {
  const removals = new Map(removalsOfKnown(db).map((it) => [it.id, it]));
  // Two queries, because ordering by kind would sort what its key already orders.
  for (const comparison of ["=", "<>"]) {
    const sql = `SELECT kind, id, document FROM ledger WHERE kind ${comparison} '${STATE_KIND}'`;
    for (const { kind, id, document } of db.query<Row, []>(sql).iterate()) {
      const removal = kind === "images" ? removals.get(id) : undefined;
      yield [kind, id, removal === undefined ? document : firstSeenAfter(document, removal)];
    }
  }
}

interface Row {
  readonly kind: string;
  readonly id: string;
  readonly document: string;
}

interface LastRemoval {
  readonly id: string;
  readonly watched: bigint;
  readonly at: bigint;
}

/** Of images that the ledger has again. */
const removalsOfKnown = (db: Database): readonly LastRemoval[] =>
  db
    .query<LastRemoval, []>(
      `SELECT id, watched, at FROM ledger JOIN (
         SELECT document ->> '$.subject' AS subject, max(watched) AS watched, at
         FROM history INDEXED BY removed_images WHERE ${REMOVED_IMAGE} GROUP BY 1
       ) ON subject = id WHERE ledger.kind = 'images'`,
    )
    .safeIntegers(true)
    .all();

function firstSeenAfter(document: string, { watched, at }: LastRemoval): string {
  const image = imageRow.read(JSON.parse(document));
  if (image.firstSeenWatched >= watched) return document;
  const first = { firstSeenWatched: asWatched(watched), firstSeenAt: instant(at) };
  return rowJson(imageRow.write({ ...image, ...first }));
}

/** Within the caller's transaction. */
export function writeLedgerRows(db: Database, { puts, drops }: LedgerChanges): void {
  if (puts.length + drops.length === 0) return;
  const put = db.query("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?)");
  const drop = db.query("DELETE FROM ledger WHERE kind = ? AND id = ?");
  for (const [kind, id, document] of puts) put.run(kind, id, document);
  for (const [kind, id] of drops) drop.run(kind, id);
  // Random, so that a file restored from elsewhere is not taken for the known one.
  db.run(`INSERT OR REPLACE INTO setting VALUES ('${REVISION}', lower(hex(randomblob(8))))`);
}

const REVISION = "ledger-revision";

/** Changes with each change of the ledger; "" before the first. */
export const revisionOf = (db: Database): string => readSetting(db, REVISION) ?? "";

/** Small facts by name, such as the stamp of `keep baseline --once`. */
export function readSetting(db: Database, key: string): string | null {
  const row: unknown = db.query("SELECT value FROM setting WHERE key = ?").get(key);
  return row === null ? null : settingRow.read(row);
}

const settingRow = under("value", text);

export function writeSetting(db: Database, key: string, value: string): void {
  db.query("INSERT OR REPLACE INTO setting VALUES (?, ?)").run(key, value);
}
