import { describe, expect, test } from "bun:test";
import { rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { until } from "../support/containerd/until.ts";
import { scratch } from "../support/scratch.ts";
import { ledgerOf, read, said, write } from "./fixture.ts";
import { idOf, imageItem } from "./history-fixture.ts";

const isRoot = process.getuid?.() === 0;

/** Runs on a filesystem of one MiB of its own. */
async function onSmallDisk(run: (directory: string) => Promise<void> | void): Promise<void> {
  const mountpoint = scratch();
  const mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", mountpoint];
  expect(Bun.spawnSync(mount).exitCode).toBe(0);
  try {
    await run(mountpoint);
  } finally {
    Bun.spawnSync(["umount", "-l", mountpoint]);
  }
}

function fill(directory: string, leftBytes = 0): () => void {
  const path = join(directory, "ballast");
  const { bavail, bsize } = statfsSync(directory);
  writeFileSync(path, Buffer.alloc(bavail * bsize - leftBytes));
  expect(statfsSync(directory).bavail * bsize).toBe(leftBytes);
  return () => rmSync(path);
}

describe.skipIf(!isRoot)("a full disk (these tests mount one, and need root)", () => {
  test("is reported once, stops no pass, and loses nothing once there is space", () =>
    onSmallDisk(async (directory) => {
      const state = join(directory, "state");
      const { store, notices } = await write(state);
      store.saveLedger(ledgerOf(10, 1));
      expect(await store.flush()).toBe(true);
      const makeRoom = fill(directory);
      // More than what is left in the pages that the file already has.
      for (let turn = 2; turn <= 60; turn += 1) {
        store.saveLedger(ledgerOf(300, turn));
        store.imageDone(idOf("p"), imageItem(turn));
        await store.flush();
      }
      expect(store.ledger()).toEqual(ledgerOf(300, 60));
      expect(store.failure()).toBe("full");
      expect(said(notices)).toEqual(["crigc tries again"]);
      // A reader still sees what was whole before.
      expect(read(state).reader.ledger().images.size).toBeGreaterThanOrEqual(10);
      makeRoom();
      expect(await store.flush()).toBe(true);
      expect(said(notices)).toEqual(["crigc tries again", "can be written again"]);
      await store.close();
      const { reader } = read(state);
      expect(reader.ledger()).toEqual(ledgerOf(300, 60));
      expect(reader.removals({ limit: 100 })).toHaveLength(59);
    }));

  test("without room for the ledger still takes the record of each removal, which SIGKILL then cannot lose", () =>
    onSmallDisk(async (directory) => {
      const state = join(directory, "state");
      const { store, notices } = await write(state);
      store.saveLedger(ledgerOf(10, 1));
      expect(await store.flush()).toBe(true);
      const makeRoom = fill(directory, 96 * 1024);
      store.saveLedger(ledgerOf(1000, 2));
      const recorded = () => read(state).reader.removals({ limit: 9 }).length;
      for (let turn = 1; turn <= 3; turn += 1) {
        store.imageDone(idOf("p"), imageItem(turn));
        while (recorded() < turn) await Bun.sleep(2);
      }
      expect(read(state).reader.ledger()).toEqual(ledgerOf(10, 1));
      expect(said(notices)).toEqual(["crigc tries again"]);
      expect(store.removalsNotWritten).toBe(0);
      makeRoom();
      expect(await store.flush()).toBe(true);
      expect(said(notices)).toEqual(["crigc tries again", "can be written again"]);
      await store.close();
      expect(read(state).reader.ledger()).toEqual(ledgerOf(1000, 2));
      expect(recorded()).toBe(3);
    }));

  test("at the start keeps earlier records, and is written by itself later", () =>
    onSmallDisk(async (directory) => {
      const state = join(directory, "state");
      const first = await write(state);
      first.store.saveLedger(ledgerOf(10, 1));
      await first.store.close();
      const makeRoom = fill(directory);
      const { store, notices } = await write(state);
      expect(said(notices)).toEqual(["new ones stay in memory"]);
      expect(store.ledger()).toEqual(ledgerOf(10, 1));
      store.saveLedger(ledgerOf(10, 2));
      await Bun.sleep(5);
      makeRoom();
      await until("it is written", 10_000, () => notices.length === 2);
      expect(said(notices)).toEqual(["new ones stay in memory", "can be written again"]);
      await store.close();
      expect(read(state).reader.ledger()).toEqual(ledgerOf(10, 2));
    }));

  test("that stays full until crigc ends loses what waits, and says how much", () =>
    onSmallDisk(async (directory) => {
      const state = join(directory, "state");
      fill(directory);
      const { store, notices } = await write(state);
      store.saveLedger(ledgerOf(10, 1));
      store.imageDone(idOf("p"), imageItem(1));
      store.imageDone(idOf("p"), imageItem(2));
      // A command that waits for the disk says so, once.
      const patience = new AbortController();
      let waits = 0;
      const settled = store.settle(patience.signal, () => (waits += 1) && patience.abort());
      expect([await settled, waits]).toEqual([2, 1]);
      await store.close();
      expect(said(notices)).toEqual(["new ones stay in memory", "lost"]);
      expect(notices[1]).toBe(
        `the records of 2 removals and the newest ledger could not be written to ${state} before crigc ended, and are lost`,
      );
    }));
});
