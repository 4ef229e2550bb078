import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { stateFiles } from "../../src/host/state-files.ts";
import { emptyLedger } from "../../src/model/ledger.ts";
import { hours, instant, plus } from "../../src/model/time.ts";
import type { StateFiles } from "../../src/store/ports.ts";
import { scratch } from "../support/scratch.ts";
import { ledgerOf, now, read, write } from "./fixture.ts";

const isRoot = process.getuid?.() === 0;

/** A state directory in which a process that ended well left this ledger. */
function written(turn = 1): string {
  const directory = join(scratch(), "state");
  const { store } = write(directory);
  store.saveLedger(ledgerOf(3, turn));
  store.close();
  return directory;
}

describe("openStore", () => {
  test("makes a private directory and a private file, without a word", () => {
    const directory = join(scratch(), "a", "state");
    const { store, notices } = write(directory);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(directory))
      expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
    store.close();
    expect(readdirSync(directory)).toEqual(["crigc.db"]);
    expect(notices).toEqual([]);
  });

  test("what one process wrote, the next one knows", () => {
    const { store, notices } = write(written(7));
    expect(store.ledger()).toEqual(ledgerOf(3, 7));
    store.close();
    expect(notices).toEqual([]);
  });

  test("what another process wrote meanwhile is taken in, and written on from there", () => {
    const directory = written(1);
    const agent = write(directory);
    const gc = write(directory);
    gc.store.saveLedger(ledgerOf(5, 2));
    gc.store.close();
    expect(agent.store.ledger()).toEqual(ledgerOf(5, 2));
    const other = write(directory);
    other.store.saveLedger(ledgerOf(9, 3));
    other.store.close();
    agent.store.saveLedger(ledgerOf(2, 4));
    agent.store.close();
    expect(read(directory).reader.ledger()).toEqual(ledgerOf(2, 4));
    expect([...agent.notices, ...gc.notices]).toEqual([]);
  });

  test.each([
    ["garbage", (path: string) => writeFileSync(path, "x".repeat(8192))],
    ["cut to 0 bytes", (path: string) => truncateSync(path, 0)],
    ["cut in the middle", (path: string) => truncateSync(path, 5000)],
    ["a directory", (path: string) => (rmSync(path), mkdirSync(path))],
    [
      "another program's",
      (path: string) => (rmSync(path), new Database(path).run("CREATE TABLE pass (x)")),
    ],
    ["without a table", (path: string) => new Database(path).run("DROP TABLE ledger")],
    [
      "with an impossible row",
      (path: string) =>
        new Database(path).run(
          "UPDATE ledger SET document = json_set(document, '$.hadContainers', 7) WHERE kind = 'state'",
        ),
    ],
  ])("a file that is %s is put aside, loudly, and memory starts afresh", (_, spoil) => {
    const directory = written();
    spoil(join(directory, "crigc.db"));
    const { store, notices } = write(directory);
    expect(store.ledger()).toBe(emptyLedger);
    expect(notices).toMatchObject([{ kind: "broken-moved-aside" }]);
    expect(notices[0]?.message).toContain("crigc.db.broken-1-20260102T030405Z");
    store.saveLedger(ledgerOf(1, 9));
    store.close();
    expect(readdirSync(directory)).toContain("crigc.db.broken-1-20260102T030405Z");
    expect(read(directory).reader.ledger()).toEqual(ledgerOf(1, 9));
  });

  test("three broken files are kept, the newest ones, with their logs", () => {
    const directory = written();
    for (const name of ["20250101T000000Z", "20250102T000000Z", "20250103T000000Z"])
      for (const suffix of ["", "-wal"])
        writeFileSync(join(directory, `crigc.db.broken-${name}${suffix}`), "");
    writeFileSync(join(directory, "crigc.db"), "garbage");
    write(directory).store.close();
    expect(readdirSync(directory).toSorted()).toEqual([
      "crigc.db",
      "crigc.db.broken-1-20260102T030405Z",
      "crigc.db.broken-20250102T000000Z",
      "crigc.db.broken-20250102T000000Z-wal",
      "crigc.db.broken-20250103T000000Z",
      "crigc.db.broken-20250103T000000Z-wal",
    ]);
  });

  test("files that break within a second, and under a clock that stands in 1970, are kept by the order in which they broke", () => {
    const directory = written();
    const clocks = [now, now, instant(0n), instant(0n), plus(now, hours(1))];
    for (const [turn, at] of clocks.entries()) {
      writeFileSync(join(directory, "crigc.db"), `garbage ${turn}`);
      write(directory, stateFiles, at).store.close();
    }
    const kept = readdirSync(directory).filter((name) => name.includes(".broken-"));
    expect(kept.toSorted()).toEqual([
      "crigc.db.broken-3-19700101T000000Z",
      "crigc.db.broken-4-19700101T000000Z",
      "crigc.db.broken-5-20260102T040405Z",
    ]);
    expect(kept.toSorted().map((name) => readFileSync(join(directory, name), "utf8"))).toEqual([
      "garbage 2",
      "garbage 3",
      "garbage 4",
    ]);
  });

  test("the file of a later version is left as it is, and memory lasts as long as the process", () => {
    const directory = written();
    const path = join(directory, "crigc.db");
    const later = new Database(path);
    later.run("PRAGMA user_version = 99");
    later.close();
    const before = new Bun.CryptoHasher("sha256").update(stateOf(path)).digest("hex");
    const { store, notices } = write(directory);
    expect(notices).toMatchObject([{ kind: "memory-only", error: "newer" }]);
    store.saveLedger(ledgerOf(2, 2));
    expect(store.flush()).toBe(false);
    expect(store.ledger()).toEqual(ledgerOf(2, 2));
    store.close();
    expect(new Bun.CryptoHasher("sha256").update(stateOf(path)).digest("hex")).toBe(before);
    expect(notices).toHaveLength(1);
  });

  test("a directory that cannot be made leaves memory, says so once, and is tried again", () => {
    const base = scratch();
    writeFileSync(join(base, "file"), "");
    const directory = join(base, "file", "state");
    const { store, notices } = write(directory);
    expect(notices).toMatchObject([{ kind: "memory-only" }]);
    store.saveLedger(ledgerOf(2, 2));
    expect(store.flush()).toBe(false);
    expect(store.flush()).toBe(false);
    expect(store.failure()).not.toBeNull();
    expect(store.ledger()).toEqual(ledgerOf(2, 2));
    expect(notices.map((it) => it.kind)).toEqual(["memory-only"]);
    rmSync(join(base, "file"));
    expect(store.flush()).toBe(true);
    expect(notices.at(-1)?.kind).toBe("write-recovered");
    expect(store.failure()).toBeNull();
    store.close();
    expect(read(directory).reader.ledger()).toEqual(ledgerOf(2, 2));
  });

  test("where the file can be read and not written, what it says is known", () => {
    const directory = written(5);
    const refused: StateFiles = {
      ...stateFiles,
      createFile: () => {
        throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
      },
    };
    const { store, notices } = write(directory, refused);
    expect(store.ledger()).toEqual(ledgerOf(3, 5));
    expect(notices).toMatchObject([{ kind: "memory-only", error: "full" }]);
    store.close();
  });

  test.skipIf(isRoot)("a directory without permission leaves memory (not as root)", () => {
    const directory = written();
    chmodSync(directory, 0o500);
    const { store, notices } = write(directory);
    expect(notices).toMatchObject([{ kind: "memory-only" }]);
    store.close();
    chmodSync(directory, 0o700);
  });

  test("a file that is taken away while it is open is made anew, with all that is known", () => {
    const directory = written(1);
    const { store } = write(directory);
    rmSync(directory, { recursive: true });
    store.saveLedger(ledgerOf(4, 2));
    expect(store.flush()).toBe(true);
    store.close();
    expect(read(directory).reader.ledger()).toEqual(ledgerOf(4, 2));
  });

  test("a file that breaks while it is open is put aside, and the ledger written anew from memory", () => {
    const directory = written(1);
    const { store, notices } = write(directory);
    const other = new Database(join(directory, "crigc.db"));
    other.run("DROP TABLE ledger");
    other.close();
    store.saveLedger(ledgerOf(4, 2));
    expect(store.flush()).toBe(false);
    expect(notices).toMatchObject([{ kind: "broken-moved-aside", error: "corrupt" }]);
    expect(store.flush()).toBe(true);
    store.close();
    expect(read(directory).reader.ledger()).toEqual(ledgerOf(4, 2));
    expect(notices.at(-1)?.kind).toBe("broken-moved-aside");
  });

  test("settings last", () => {
    const directory = written();
    const { store } = write(directory);
    expect(store.setting("baseline")).toBeNull();
    store.setSetting("baseline", "2026");
    expect(store.setting("baseline")).toBe("2026");
    store.close();
    expect(write(directory).store.setting("baseline")).toBe("2026");
    expect(read(directory).reader.setting("baseline")).toBe("2026");
  });
});

const stateOf = (path: string): Buffer =>
  Buffer.from(new Database(path, { readonly: true }).serialize());
