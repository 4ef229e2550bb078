import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";

import { migrate } from "../../src/store/file/schema.ts";
import { readLedgerRows } from "../../src/store/file/state-rows.ts";
import { ledgerOf } from "../../src/store/ledger/ledger.ts";
import { makeColumns } from "./columns-fixture.ts";

test("a runtime that an earlier version took for delayed is learned again, an immediate one is not", () => {
  const db = new Database(":memory:");
  makeColumns(db, 2);
  db.run(
    "INSERT INTO ledger_release VALUES ('containerd/2.1.9', 0, 7), ('containerd/1.7.24', 3, 0)",
  );
  db.run("INSERT INTO ledger_state VALUES (1, 'boot', 1, 1, 1, NULL, NULL, 0, '[]')");
  migrate(db);
  expect([...ledgerOf(readLedgerRows(db)).releases]).toEqual([
    ["containerd/1.7.24", { promptRemovals: 3, lateRemovals: 0 }],
  ]);
});
