import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { emptyLedger } from "../../src/model/ledger.ts";
import { hours, instant, plus } from "../../src/model/time.ts";
import { scratch } from "../support/scratch.ts";
import { ledgerOf, now, read, said, write } from "./fixture.ts";

/** A state directory in which a process that ended well left this ledger. */
async function written(turn = 1): Promise<string> {
  const directory = join(scratch(), "state");
  const { store } = await write(directory);
  store.saveLedger(ledgerOf(3, turn));
  await store.close();
  return directory;
}

const pipes = (...paths: readonly string[]) => Bun.spawnSync(["mkfifo", ...paths]);

describe("openStore", () => {
  test("creates a private directory and file silently", async () => {
    const directory = join(scratch(), "a", "state");
    const { store, notices } = await write(directory);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(directory))
      expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
    await store.close();
    expect(readdirSync(directory)).toEqual(["crigc.db", "crigc.db-closed"]);
    expect(notices).toEqual([]);
  });

  test.each([
    ["garbage", (path: string) => writeFileSync(path, "x".repeat(8192))],
    ["cut to 0 bytes", (path: string) => truncateSync(path, 0)],
    ["cut in the middle", (path: string) => truncateSync(path, 5000)],
    ["a directory", (path: string) => (rmSync(path), mkdirSync(path))],
    [
      "a pipe, as is the one that tells its end",
      (path: string) => (rmSync(`${path}-closed`), rmSync(path), pipes(path, `${path}-closed`)),
    ],
    ["with a pipe as its index", (path: string) => pipes(`${path}-shm`)],
    [
      "another program's",
      (path: string) => (rmSync(path), new Database(path).run("CREATE TABLE other (x)")),
    ],
    ["without a table", (path: string) => new Database(path).run("DROP TABLE ledger")],
    ["of an earlier version", (path: string) => new Database(path).run("PRAGMA user_version = 4")],
    ["of a later version", (path: string) => new Database(path).run("PRAGMA user_version = 99")],
    [
      "with an impossible row",
      (path: string) =>
        new Database(path).run(
          "UPDATE ledger SET document = json_set(document, '$.hadContainers', 7) WHERE kind = 'state'",
        ),
    ],
  ])(
    "moves a file that is %s aside with a warning, and starts with an empty ledger",
    async (_, spoil) => {
      const directory = await written();
      spoil(join(directory, "crigc.db"));
      const { store, notices } = await write(directory);
      expect(store.ledger()).toBe(emptyLedger);
      expect(said(notices)).toEqual(["the file is now"]);
      expect(notices[0]).toContain("crigc.db.broken-1-20260102T030405Z");
      store.saveLedger(ledgerOf(1, 9));
      await store.close();
      expect(readdirSync(directory)).toContain("crigc.db.broken-1-20260102T030405Z");
      expect(read(directory).reader.ledger()).toEqual(ledgerOf(1, 9));
    },
  );

  test("keeps the three newest broken files with their logs, even under a wrong clock", async () => {
    const directory = await written();
    const clocks = [now, now, instant(0n), instant(0n), plus(now, hours(1))];
    for (const [turn, at] of clocks.entries()) {
      writeFileSync(join(directory, "crigc.db"), `garbage ${turn}`);
      writeFileSync(join(directory, "crigc.db-wal"), "");
      await (await write(directory, at)).store.close();
    }
    const kept = readdirSync(directory).filter((name) => name.includes(".broken-"));
    const names = [
      "crigc.db.broken-3-19700101T000000Z",
      "crigc.db.broken-4-19700101T000000Z",
      "crigc.db.broken-5-20260102T040405Z",
    ];
    expect(kept.toSorted()).toEqual(names.flatMap((name) => [name, `${name}-wal`]));
    expect(names.map((name) => readFileSync(join(directory, name), "utf8"))).toEqual([
      "garbage 2",
      "garbage 3",
      "garbage 4",
    ]);
  });

  test("keeps records in memory if the directory cannot be created, reports it once, and retries", async () => {
    const base = scratch();
    writeFileSync(join(base, "file"), "");
    const directory = join(base, "file", "state");
    const { store, notices } = await write(directory);
    expect(said(notices)).toEqual(["new ones stay in memory"]);
    store.saveLedger(ledgerOf(2, 2));
    expect(await store.flush()).toBe(false);
    expect(await store.flush()).toBe(false);
    expect(store.failure()).not.toBeNull();
    expect(store.ledger()).toEqual(ledgerOf(2, 2));
    expect(said(notices)).toEqual(["new ones stay in memory"]);
    rmSync(join(base, "file"));
    expect(await store.flush()).toBe(true);
    expect(said(notices).at(-1)).toBe("can be written again");
    expect(store.failure()).toBeNull();
    await store.close();
    expect(read(directory).reader.ledger()).toEqual(ledgerOf(2, 2));
  });

  test.each([
    ["file", ""],
    ["log", "crigc.db-wal"],
  ])("writes a %s deleted while open again from memory", async (_, name) => {
    const directory = await written(1);
    const { store } = await write(directory);
    store.saveLedger(ledgerOf(4, 1));
    await store.flush();
    rmSync(join(directory, name), { recursive: true });
    store.saveLedger(ledgerOf(4, 2));
    expect(await store.flush()).toBe(true);
    expect(read(directory).reader.ledger()).toMatchObject({ watched: 2n });
    await store.close();
    const { ageRestartDue, ...ledger } = read(directory).reader.ledger();
    expect({ ...ledger, ageRestartDue: false }).toEqual(ledgerOf(4, 2));
    expect(ageRestartDue).toBe(name === "");
  });

  test("moves a file that breaks while open aside, and writes the ledger again from memory", async () => {
    const directory = await written(1);
    const { store, notices } = await write(directory);
    const other = new Database(join(directory, "crigc.db"));
    other.run("DROP TABLE ledger");
    other.close();
    store.saveLedger(ledgerOf(4, 2));
    expect(await store.flush()).toBe(false);
    expect(said(notices)).toEqual(["the file is now"]);
    expect(await store.flush()).toBe(true);
    expect(notices).toHaveLength(1);
    await store.close();
    expect(read(directory).reader.ledger()).toEqual({ ...ledgerOf(4, 2), ageRestartDue: true });
  });
});
