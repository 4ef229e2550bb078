import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { imageId, passId } from "../../src/model/ids.ts";
import type { Ledger } from "../../src/model/ledger.ts";
import type { WriterPresence } from "../../src/model/ports.ts";
import { watched } from "../../src/model/time.ts";
import { enterWriters, otherWriters } from "../../src/node/writers.ts";
import { openStore } from "../../src/store/open.ts";
import type { Recorder } from "../../src/store/recorder.ts";
import type { StateChannel, StateReply } from "../../src/store/state-request.ts";
import { aRecord } from "../support/build/values.ts";
import { directChannel } from "../support/direct-channel.ts";
import { scratch } from "../support/scratch.ts";
import { ledgerOf, now, read, write } from "./fixture.ts";
import { idOf, imageItem } from "./history-fixture.ts";

/** A state directory with a ledger that was closed, and processes that write it. */
async function node() {
  const base = scratch();
  const directory = join(base, "state");
  const places = {
    systemRun: join(base, "run"),
    runDirectory: join(base, "run"),
    userId: process.getuid?.() ?? 0,
  };
  const enter = () => enterWriters(directory, places);
  const open = (presence: WriterPresence = enter()) =>
    write(directory, now, presence).then(({ store, notices }) => ({
      store,
      notices,
      /** As SIGKILL leaves it: the kernel drops the lock, and nobody removes the file. */
      kill: () => presence.end(false),
    }));
  const first = await open();
  await first.store.refresh();
  first.store.saveLedger(ledgerOf(3, 1));
  await first.store.close();
  const look = () => {
    using reader = read(directory, () => otherWriters(directory, places)).reader;
    return reader.ledger();
  };
  return { base, directory, open, enter, look };
}

/** Whether the next process to take the pass lock restarts the minimum age. */
async function restarts(open: Awaited<ReturnType<typeof node>>["open"]): Promise<boolean> {
  const { store } = await open();
  await store.refresh();
  const { ageRestartDue } = store.ledger();
  await store.close();
  return ageRestartDue;
}

const REMOVED = imageId("sha256:000000");
const removal = imageItem(1, {}, REMOVED);

describe("the minimum age restarts for the next process", () => {
  test("not after processes that closed the ledger, in whatever order", async () => {
    const { open, look } = await node();
    const [agent, gc] = [await open(), await open()];
    for (const { store } of [agent, gc, agent]) await store.refresh();
    gc.store.saveLedger(ledgerOf(4, 2));
    await gc.store.close();
    await agent.store.refresh();
    expect(agent.store.ledger()).toEqual(ledgerOf(4, 2));
    expect(look().ageRestartDue).toBeFalse();
    await agent.store.close();
    expect(look().ageRestartDue).toBeFalse();
    expect(await restarts(open)).toBeFalse();
  });

  test("after one that was killed, and once", async () => {
    const { open, look } = await node();
    (await open()).kill();
    expect(look().ageRestartDue).toBeTrue();
    expect(await restarts(open)).toBeTrue();
    const { store } = await open();
    store.saveLedger({ ...store.ledger(), ageRestartDue: false });
    await store.close();
    expect(await restarts(open)).toBeFalse();
  });

  test("after a power cut, which leaves only the mark in the ledger", async () => {
    const { base, open, look } = await node();
    const { store } = await open();
    store.saveLedger(ledgerOf(3, 2));
    await store.flush();
    rmSync(join(base, "run"), { recursive: true });
    expect(look().ageRestartDue).toBeTrue();
    expect(await restarts(open)).toBeTrue();
  });

  test.each([
    ["fails", async () => ({ kind: "failed", error: "busy", message: "it is locked" }) as const],
    [
      "is late, in the middle of a pass",
      async (reply: () => Promise<StateReply>, pass: Promise<void>) => pass.then(reply),
    ],
  ])("after a power cut, also if the first read %s", async (_, firstRead) => {
    const { base, directory, open } = await node();
    await (await open()).store.flush();
    (await open()).kill();
    rmSync(join(base, "run"), { recursive: true });
    rmSync(join(directory, "crigc.db-closed"), { force: true });
    const pass = Promise.withResolvers<void>();
    const file = directChannel({ directory, now: () => now });
    const channel: StateChannel = {
      ...file,
      ask: async (request, onRows) => {
        const answer = () => file.ask(request, onRows);
        return await (request.kind === "read" ? firstRead(answer, pass.promise) : answer());
      },
    };
    const store = await openStore({ channel, directory, notify: () => undefined });
    await store.refresh();
    pass.resolve();
    await Bun.sleep(1);
    expect(store.ledger()).toMatchObject({ watched: 1n, ageRestartDue: true });
    await store.close();
  });

  test.each([
    ["beside no other process", false],
    ["beside an agent", true],
  ])(
    "after one that could write nothing from its start to its orderly end, %s",
    async (_, isBeside) => {
      const { base, directory, open } = await node();
      const agent = isBeside ? await open() : null;
      await agent?.store.refresh();
      {
        using other = new Database(join(directory, "crigc.db"));
        other.run("BEGIN IMMEDIATE");
        const gc = await open();
        gc.store.saveLedger({ ...ledgerOf(3, 1), images: new Map() });
        await gc.store.close();
      }
      if (!isBeside) rmSync(join(base, "run"), { recursive: true });
      await agent?.store.refresh();
      if (agent === null) expect(await restarts(open)).toBeTrue();
      else expect(agent.store.ledger().ageRestartDue).toBeTrue();
      await agent?.store.close();
    },
  );

  test("after a process was killed beside an agent, which adopts it with the pass lock", async () => {
    const { open, look } = await node();
    const agent = await open();
    await agent.store.refresh();
    (await open()).kill();
    await agent.store.refresh();
    expect(agent.store.ledger().ageRestartDue).toBeTrue();
    await agent.store.close();
    expect(look().ageRestartDue).toBeTrue();
  });

  test.each([
    ["which a running agent adopts", async () => undefined],
    [
      "also after one that found it but never had the pass lock",
      async (open: Awaited<ReturnType<typeof node>>["open"]) => (await open()).store.close(),
    ],
  ])("where a third process finds the dead one, %s", async (_, waited) => {
    const { open } = await node();
    const agent = await open();
    await agent.store.refresh();
    (await open()).kill();
    await waited(open);
    expect(await restarts(open)).toBeTrue();
    agent.store.saveLedger({ ...agent.store.ledger(), watched: watched(9n) });
    await agent.store.flush();
    expect(agent.store.ledger()).toMatchObject({ ageRestartDue: true, watched: 9n });
    await agent.store.close();
  });
});

test.each([
  ["at once", async () => undefined],
  [
    "after a write of records alone to that copy",
    async (store: Recorder) => {
      store.imageDone(idOf("p"), imageItem(1));
      await store.flush();
    },
  ],
  [
    "after another process changed that copy once",
    async (_: Recorder, { open }: Awaited<ReturnType<typeof node>>) => {
      const { store: gc } = await open();
      await gc.refresh();
      gc.saveLedger(ledgerOf(3, 2));
      await gc.close();
    },
  ],
])(
  "a running process replaces an older copy of its file by what it knows, %s, and restarts the minimum age",
  async (_, meanwhile) => {
    const { directory, base, open, look, ...rest } = await node();
    mkdirSync(join(base, "copy"));
    copyFileSync(join(directory, "crigc.db"), join(base, "copy", "crigc.db"));
    const { store } = await open();
    await store.refresh();
    const younger = ledgerOf(2, 5);
    store.saveLedger(younger);
    await store.flush();
    for (const suffix of ["-wal", "-shm"])
      rmSync(join(directory, `crigc.db${suffix}`), { force: true });
    renameSync(join(base, "copy", "crigc.db"), join(directory, "crigc.db"));
    await meanwhile(store, { directory, base, open, look, ...rest });
    await store.refresh();
    expect(store.ledger()).toEqual({ ...younger, ageRestartDue: true });
    await store.close();
    expect(look()).toEqual({ ...younger, ageRestartDue: true });
  },
);

test("a running process adopts the ledger of a volume that is mounted late over its new file", async () => {
  const { directory, base, open, look } = await node();
  const old = await open();
  await old.store.refresh();
  const known = { ...ledgerOf(3, 9), watched: watched(900n) };
  old.store.saveLedger(known);
  await old.store.close();
  renameSync(directory, join(base, "volume"));
  const { store } = await open();
  await store.refresh();
  store.saveLedger(ledgerOf(4, 2));
  await store.flush();
  rmSync(directory, { recursive: true });
  renameSync(join(base, "volume"), directory);
  await store.refresh();
  const adopted = store.ledger();
  expect(adopted).toMatchObject({ watched: watched(900n), ageRestartDue: true });
  expect(adopted.images.size).toBe(4);
  await store.close();
  expect(look().images.size).toBe(4);
});

test("a process whose ledger equals that of a later writer ends in order", async () => {
  const { open, look } = await node();
  const [one, other] = [await open(), await open()];
  for (const { store } of [one, other]) await store.refresh();
  for (const { store } of [one, other]) {
    store.saveLedger(ledgerOf(4, 2));
    await store.flush();
  }
  await other.store.close();
  await one.store.refresh();
  expect(one.store.ledger().ageRestartDue).toBeFalse();
  await one.store.close();
  expect(look().ageRestartDue).toBeFalse();
});

test("an image that another process removed and that was pulled again does not get its old first seen back", async () => {
  const { open } = await node();
  const agent = await open();
  await agent.store.refresh();
  const gc = await open();
  await gc.store.refresh();
  const { images } = gc.store.ledger();
  gc.store.saveLedger({
    ...gc.store.ledger(),
    images: new Map([...images].filter(([it]) => it !== REMOVED)),
  });
  gc.store.imageDone(passId("p"), removal);
  // Its record is on disk, and nothing after it.
  await gc.store.flush();
  gc.kill();
  const listed: Ledger = { ...agent.store.ledger(), watched: watched(7n) };
  agent.store.saveLedger(listed);
  await agent.store.flush();
  expect(agent.store.ledger().images.has(REMOVED)).toBeFalse();
  await agent.store.close();
});

test("an image was never first seen before its last removal in the history", async () => {
  const { directory, open, look } = await node();
  const { store } = await open();
  await store.refresh();
  store.saveLedger({ ...store.ledger(), watched: watched(5n) });
  store.imageDone(passId("p"), removal);
  await store.flush();
  expect(look().images.get(REMOVED)).toMatchObject({
    firstSeenWatched: 5n,
    firstSeenAt: removal.startedAt,
  });
  const seen = (firstSeen: bigint): Ledger => ({
    ...ledgerOf(0, 6),
    images: new Map([[REMOVED, aRecord({ firstSeenWatched: watched(firstSeen) })]]),
  });
  // By a process that did not notice, and one that saw it come back.
  for (const [firstSeen, known] of [
    [4n, 5n],
    [6n, 6n],
  ] as const) {
    store.saveLedger(seen(firstSeen));
    await store.flush();
    expect(look().images.get(REMOVED)).toMatchObject({ firstSeenWatched: known });
  }
  await store.close();
  expect(existsSync(join(directory, "crigc.db-closed"))).toBeTrue();
});
