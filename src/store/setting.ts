// Small facts by name: the stamp of `keep baseline --once`, and the like.

import type { Database } from "bun:sqlite";

import * as v from "valibot";

import { rowsOf } from "./columns.ts";

const shape = v.object({ value: v.string() });

export function readSetting(db: Database, key: string): string | null {
  const [row] = rowsOf(
    db,
    { sql: "SELECT value FROM setting WHERE key = ?", values: [key] },
    shape,
  );
  return row?.value ?? null;
}

export function writeSetting(db: Database, key: string, value: string): void {
  db.query("INSERT OR REPLACE INTO setting VALUES (?, ?)").run(key, value);
}
