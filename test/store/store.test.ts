import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";

import { openStore } from "../../src/store/open.ts";
import { RECORDS_MAX } from "../../src/store/pending.ts";
import type { LedgerWrite, StateChannel } from "../../src/store/state-request.ts";
import { until } from "../support/containerd/until.ts";
import { directChannel } from "../support/direct-channel.ts";
import { scratch } from "../support/scratch.ts";
import { ledgerOf, listing, now, read, said, write } from "./fixture.ts";
import { idOf, imageItem, pass } from "./history-fixture.ts";

const happens = (isTrue: () => boolean): Promise<boolean> => until("it happens", 10_000, isTrue);

describe("writing", () => {
  test("waits for its throttle, and does not touch a file in the caller's step", async () => {
    const directory = scratch();
    const { store } = await write(directory);
    const before = listing(directory);
    store.saveLedger(ledgerOf(500, 1));
    for (let turn = 0; turn < 100; turn += 1) store.imageDone(idOf("p"), imageItem(turn));
    expect(listing(directory)).toEqual(before);
    await happens(() => read(directory).reader.removals({ limit: 200 }).length === 100);
    expect(read(directory).reader.ledger()).toEqual(ledgerOf(500, 1));
    await store.close();
  });

  test("does not wait for a slow disk: a change of the ledger is sent beside an earlier one, and builds on it", async () => {
    const direct = directChannel({ directory: scratch(), now: () => now });
    const disk = Promise.withResolvers<void>();
    const sent: LedgerWrite[] = [];
    const channel: StateChannel = {
      ...direct,
      ask: async (request, onRows) => {
        if (request.kind !== "ledger") return direct.ask(request, onRows);
        sent.push(request);
        await disk.promise;
        return direct.ask(request, onRows);
      },
    };
    const store = await openStore({ channel, directory: "", notify: () => undefined });
    for (const turn of [1, 2]) {
      store.saveLedger(ledgerOf(3, turn));
      await happens(() => sent.length === turn);
    }
    expect(sent[1]?.from).toBe(sent[0]?.to);
    disk.resolve();
    expect(await store.flush()).toBe(true);
    expect(sent).toHaveLength(2);
  });

  test("waits briefly for a file locked by another program, and writes later", async () => {
    const directory = scratch();
    const { store, notices } = await write(directory);
    const other = new Database(join(directory, "crigc.db"));
    other.run("BEGIN IMMEDIATE");
    store.saveLedger(ledgerOf(2, 1));
    // Nobody unlocks it meanwhile.
    expect(await store.flush()).toBe(false);
    expect(said(notices)).toEqual(["crigc tries again"]);
    other.run("COMMIT");
    other.close();
    expect(await store.flush()).toBe(true);
    await store.close();
    expect(read(directory).reader.ledger()).toEqual(ledgerOf(2, 1));
  });

  test("is not waited for at the end of gc if the directory is read-only", async () => {
    const failed = { kind: "failed", error: "write", message: "read-only file system" } as const;
    const channel: StateChannel = { ask: async () => failed, close: async () => undefined };
    const store = await openStore({ channel, directory: "/state", notify: () => undefined });
    store.imageDone(idOf("p"), imageItem(1));
    let waits = 0;
    expect(await store.settle(AbortSignal.timeout(4_000), () => (waits += 1))).toBe(1);
    expect(waits).toBe(0);
    await store.close();
  });

  test("keeps a bounded number of waiting records, and counts dropped ones when writing works again", async () => {
    const directory = scratch();
    const { store, notices } = await write(directory);
    const other = new Database(join(directory, "crigc.db"));
    other.run("BEGIN IMMEDIATE");
    for (let turn = 0; turn < RECORDS_MAX + 7; turn += 1)
      store.imageDone(idOf("p"), imageItem(turn));
    expect(await store.flush()).toBe(false);
    other.close();
    expect(await store.flush()).toBe(true);
    expect(said(notices)).toEqual(["crigc tries again", "can be written again", "lost"]);
    expect(notices.at(-1)).toStartWith("7 records");
    await store.close();
    const kept = read(directory).reader.removals({ limit: RECORDS_MAX * 2 });
    expect(kept).toHaveLength(RECORDS_MAX);
    expect(kept.at(-1)?.subject).toBe("sha256:7");
  });

  test("merges its write-ahead log into the file after a pass", async () => {
    const directory = scratch();
    const { store } = await write(directory);
    const wal = join(directory, "crigc.db-wal");
    for (let turn = 1; Bun.file(wal).size < 5 * 1024 * 1024; turn += 1) {
      const images = new Map(
        [...ledgerOf(3000).images].map(([id, it]) => [id, { ...it, names: `turn ${turn}` }]),
      );
      store.saveLedger({ ...ledgerOf(0, turn), images });
      await store.flush();
    }
    store.passEnded(pass("p", { startedAt: now }), null);
    await happens(() => Bun.file(wal).size < 1024 * 1024);
    expect(read(directory).reader.passes({ limit: 9 })).toHaveLength(1);
    await store.close();
  });
});
