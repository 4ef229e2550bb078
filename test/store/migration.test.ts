import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { readHistory } from "../../src/cli/read/read-history.ts";
import { exactJson, parseExactJson } from "../../src/model/exact-json.ts";
import { emptyLedger } from "../../src/model/ledger.ts";
import { instant } from "../../src/model/time.ts";
import { historyDocument } from "../../src/report/document/history.ts";
import { openInMemory } from "../../src/store/file/connection.ts";
import { migrate } from "../../src/store/file/schema.ts";
import { readLedgerRows } from "../../src/store/file/state-rows.ts";
import { queryHistory } from "../../src/store/history/history.ts";
import { ledgerCodec } from "../../src/store/ledger/ledger-document.ts";
import { ledgerOf } from "../../src/store/ledger/ledger.ts";
import { scratch } from "../support/scratch.ts";
import { makeColumns } from "./columns-fixture.ts";
import { read, write } from "./fixture.ts";

// A state file as the executable of commit 321cd60 wrote it, and what it said of it.
const fixture = (name: string) => readFileSync(join(import.meta.dir, `fixture/321cd60.${name}`));
const said = (name: string): unknown => parseExactJson(fixture(name).toString());

function stateDirectory(): string {
  const directory = scratch();
  writeFileSync(join(directory, "crigc.db"), Bun.gunzipSync(Uint8Array.from(fixture("db.gz"))));
  return directory;
}

/** Words change; what they are made from does not. */
const withoutWords = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, held: unknown) => (key.endsWith("Text") ? undefined : held)),
  );

function expectAllKnown(directory: string): void {
  const { reader, notices } = read(directory);
  const ledger = parseExactJson(exactJson(ledgerCodec.write(reader.ledger())));
  // Fields were added since.
  expect(ledger).toMatchObject(Object(said("ledger.json")));
  const { report } = readHistory(reader, { limit: 100 });
  const document = withoutWords(parseExactJson(JSON.stringify(historyDocument(report), asText)));
  expect(document).toMatchObject(Object(withoutWords(said("history.json"))));
  expect(reader.setting("keep-baseline-written-at")).toMatch(/^2026-/);
  expect(notices).toEqual([]);
  reader[Symbol.dispose]();
}
const asText = (_: string, held: unknown): unknown =>
  typeof held === "bigint" ? Number(held) : held;

describe("a state file with a column for each field, written by commit 321cd60", () => {
  test("is read completely and left unchanged", () => {
    const directory = stateDirectory();
    const before = readFileSync(join(directory, "crigc.db"));
    expectAllKnown(directory);
    expect(readFileSync(join(directory, "crigc.db")).equals(before)).toBe(true);
  });

  test("is migrated completely by the first writer", async () => {
    const directory = stateDirectory();
    const first = await write(directory);
    await first.store.close();
    expectAllKnown(directory);
    const next = await write(directory);
    const images = new Map([...next.store.ledger().images].slice(1));
    next.store.saveLedger({ ...next.store.ledger(), images });
    await next.store.close();
    expect(read(directory).reader.ledger().images).toEqual(images);
    expect([...first.notices, ...next.notices]).toEqual([]);
  });
});

test("the migration keeps times before 1970 and sizes beyond 2^63 exactly", () => {
  const db = new Database(":memory:");
  makeColumns(db, 2);
  db.run("INSERT INTO ledger_state VALUES (1, 'b', -1, -5, 7, NULL, 'boot', 1, '[\"/a \\\"b\"]')");
  db.run(
    `INSERT INTO ledger_image VALUES ('a', -1000000001, ${2n ** 63n - 1n}, NULL, NULL, 'x"y', -1, NULL, NULL, NULL)`,
  );
  db.run(
    "INSERT INTO disk_sample VALUES (NULL, 3, 'd', 'p', 'm', '[\"imagefs\"]', -9223372036854775807, 1, 0, 0)",
  );
  migrate(db);
  const ledger = ledgerOf(readLedgerRows(db));
  expect(ledger).toMatchObject({
    observedAt: -1n,
    uptime: -5n,
    graceReason: "boot",
    hadContainers: true,
    keepDirectories: ['/a "b'],
  });
  expect([...ledger.images.values()]).toMatchObject([
    {
      firstSeenAt: -1_000_000_001n,
      firstSeenWatched: 2n ** 63n - 1n,
      sizeBytes: 2n ** 64n - 1n,
      names: 'x"y',
    },
  ]);
  expect(queryHistory(db, "sample", { limit: 9 })).toMatchObject([
    { at: instant(3n), capacityBytes: 2n ** 63n + 1n, roles: ["imagefs"] },
  ]);
});

test("the migration keeps the earlier names of images and the origins of pods", () => {
  const db = new Database(":memory:");
  makeColumns(db, 4);
  db.run("INSERT INTO ledger_state VALUES (1, 'b', 1, 1, 1, NULL, NULL, 0, '[]')");
  db.run(`INSERT INTO ledger_image VALUES ('a', 1, 1, 2, 2, 'x', 1, 3, 2, 4, '["y:1", "z:2"]')`);
  db.run("INSERT INTO ledger_pod VALUES ('p', 0, 0, NULL, 'static'), ('q', 0, 0, NULL, NULL)");
  migrate(db);
  const ledger = ledgerOf(readLedgerRows(db));
  expect([...ledger.images.values()]).toMatchObject([
    { earlierNames: ["y:1", "z:2"], ghost: { since: 3n, attempts: 2, retryWatched: 4n } },
  ]);
  expect([...ledger.pods.values()].map(({ origin }) => origin)).toEqual(["static", null]);
});

test("an empty state file is migrated to an empty one", () => {
  const db = new Database(":memory:");
  makeColumns(db, 2);
  migrate(db);
  expect(ledgerOf(readLedgerRows(db))).toBe(emptyLedger);
  const tables = (one: Database) =>
    one
      .query("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite%' ORDER BY name")
      .all();
  expect(tables(db)).toEqual(tables(openInMemory()));
});
