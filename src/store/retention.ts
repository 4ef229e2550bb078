// Keeps the history within bounds of age and count, a small step at a time.

import type { Database } from "bun:sqlite";

import { hours, type Instant } from "../model/time.ts";

interface Bound {
  readonly table: string;
  readonly timeColumn: string;
  readonly rowsMax: number;
}

// About 40 MB at most: a removal takes some 300 bytes, the others less.
const bounds: readonly Bound[] = [
  { table: "removal", timeColumn: "at", rowsMax: 100_000 },
  { table: "pass", timeColumn: "started_at", rowsMax: 50_000 },
  { table: "event", timeColumn: "at", rowsMax: 20_000 },
  { table: "disk_sample", timeColumn: "at", rowsMax: 100_000 },
];

const ageMax = hours(24 * 90);
const stepRows = 500;

/** Deletes at most `stepRows` rows of each table that are too old or too many; returns how many went. */
export function prune(db: Database, now: Instant, rowsMax?: number): number {
  let deleted = 0;
  for (const bound of bounds) {
    const { table, timeColumn } = bound;
    const kept = rowsMax ?? bound.rowsMax;
    // Row IDs only grow, so that the difference of two bounds the rows between them; only the oldest rows are looked at.
    deleted += db
      .query(
        `DELETE FROM ${table} WHERE rowid IN (
           SELECT rowid FROM (SELECT rowid, ${timeColumn} AS at FROM ${table} ORDER BY rowid LIMIT ?)
           WHERE rowid <= (SELECT max(rowid) FROM ${table}) - ? OR at < ?)`,
      )
      .run(BigInt(stepRows), BigInt(kept), now - ageMax).changes;
  }
  return deleted;
}
