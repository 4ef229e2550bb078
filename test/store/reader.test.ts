import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { emptyLedger } from "../../src/model/ledger.ts";
import { scratch } from "../support/scratch.ts";
import { ledgerOf, listing, read, said, write } from "./fixture.ts";

/** The ledger that a reader sees, after proof that it left the directory as it was. */
function seen(directory: string) {
  const before = listing(directory);
  const { reader, notices } = read(directory);
  const ledger = reader.ledger();
  const removals = reader.removals({ limit: 10 });
  reader[Symbol.dispose]();
  expect(listing(directory)).toEqual(before);
  expect(removals).toEqual([]);
  return { ledger, notices };
}

/** What a killed writer leaves: the files as they are while it runs. */
async function crashed(
  names: readonly string[] = ["crigc.db", "crigc.db-wal", "crigc.db-shm"],
): Promise<string> {
  const live = scratch();
  const directory = scratch();
  const { store } = await write(live);
  store.saveLedger(ledgerOf(3, 4));
  await store.flush();
  for (const name of names) copyFileSync(join(live, name), join(directory, name));
  await store.close();
  return directory;
}

const copies = () => readdirSync(tmpdir()).filter((name) => /^crigc-\w{6}$/.test(name));

describe("openStoreReader", () => {
  test("reads nothing without a state directory, and creates none", () => {
    const directory = join(scratch(), "absent");
    const { reader, notices } = read(directory);
    expect(reader.ledger()).toBe(emptyLedger);
    expect(reader.removals({ limit: 1 })).toEqual([]);
    reader[Symbol.dispose]();
    expect(notices).toEqual([]);
    expect(readdirSync(join(directory, ".."))).toEqual([]);
  });

  test("reads a log with nothing but its header after a power cut, at once", async () => {
    const directory = await crashed();
    truncateSync(join(directory, "crigc.db-wal"), 32);
    const startMs = performance.now();
    expect(seen(directory)).toEqual({ ledger: emptyLedger, notices: [] });
    expect(performance.now() - startMs).toBeLessThan(5_000);
  });

  test("reads what a killed writer left in its log, and changes no file", async () => {
    expect(seen(await crashed())).toEqual({ ledger: ledgerOf(3, 4), notices: [] });
  });

  test("reads a log without its index from a copy, and leaves no copy", async () => {
    const before = copies();
    expect(seen(await crashed(["crigc.db", "crigc.db-wal"]))).toEqual({
      ledger: ledgerOf(3, 4),
      notices: [],
    });
    expect(copies()).toEqual(before);
  });

  test("leaves nothing behind if it cannot be copied", async () => {
    const directory = await crashed(["crigc.db"]);
    mkdirSync(join(directory, "crigc.db-wal"));
    const before = copies();
    expect(said(read(directory).notices)).toEqual(["every image counts as new"]);
    expect(copies()).toEqual(before);
  });

  test("takes special characters of a URL in a name literally", async () => {
    const directory = join(scratch(), "a ?b#c%20&mode=memory");
    mkdirSync(directory);
    const { store } = await write(directory);
    store.saveLedger(ledgerOf(3, 4));
    await store.close();
    expect(seen(directory).ledger).toEqual(ledgerOf(3, 4));
  });

  test.each([
    ["broken", "cannot read", (path: string) => writeFileSync(path, "garbage".repeat(1000))],
    [
      "of another version",
      "its schema version is 99",
      (path: string) => {
        using db = new Database(path);
        db.run("PRAGMA user_version = 99");
        db.run("PRAGMA wal_checkpoint(TRUNCATE)");
      },
    ],
  ])("reports a file that is %s by its path, and leaves it in place", async (_, what, spoil) => {
    const directory = scratch();
    await (await write(directory)).store.close();
    spoil(join(directory, "crigc.db"));
    const { ledger, notices } = seen(directory);
    expect(ledger).toBe(emptyLedger);
    expect(said(notices)).toEqual(["every image counts as new"]);
    expect(notices[0]).toContain(join(directory, "crigc.db"));
    expect(notices[0]).toContain(what);
  });

  test.skipIf(process.getuid?.() !== 0).each([
    ["after a killed writer", crashed],
    ["after one that ended", () => crashed(["crigc.db"])],
  ])("reads a read-only mount %s, and so does a writer (needs root)", async (_, make) => {
    const directory = await make();
    expect(Bun.spawnSync(["mount", "--bind", directory, directory]).exitCode).toBe(0);
    try {
      Bun.spawnSync(["mount", "-o", "remount,bind,ro", directory]);
      expect(() => chmodSync(join(directory, "crigc.db"), 0o600)).toThrow();
      expect(seen(directory).notices).toEqual([]);
      const { store, notices } = await write(directory);
      expect(said(notices)).toEqual(["new ones stay in memory"]);
      expect(store.ledger()).toEqual(read(directory).reader.ledger());
      await store.close();
    } finally {
      Bun.spawnSync(["umount", "-l", directory]);
    }
  });
});

test("readers next to a restarting writer always see a complete ledger", async () => {
  const directory = scratch();
  for (let turn = 0; turn < 30; turn += 1) {
    const { store } = await write(directory);
    store.saveLedger(ledgerOf(20, turn));
    if (turn % 3 === 0) await store.flush();
    expect(seen(directory).notices).toEqual([]);
    await store.close();
    expect(seen(directory).ledger).toEqual(ledgerOf(20, turn));
  }
  rmSync(directory, { recursive: true });
});
