import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";

import { chainId } from "../../src/model/ids.ts";
import { instant, watched } from "../../src/model/time.ts";
import { openInMemory } from "../../src/store/connection.ts";
import { historyRow, prune, type RemovalQuery, writeRow } from "../../src/store/history.ts";
import type { Recorder } from "../../src/store/recorder.ts";
import { scratch } from "../support/scratch.ts";
import { read, write } from "./fixture.ts";
import {
  containerItem,
  containers,
  filesystem,
  idOf,
  imageItem,
  images,
  logItem,
  pass,
  planOf,
  sandboxItem,
} from "./history-fixture.ts";

/** What is in the history after a recorder did this. */
async function after(act: (store: Recorder) => unknown) {
  const directory = scratch();
  const { store } = await write(directory);
  await act(store);
  await store.close();
  return read(directory).reader;
}

const start = (id: string) => ({
  id: idOf(id),
  kind: "image-gc" as const,
  purpose: { kind: "periodic" } as const,
  startedAt: instant(100n),
});

const chain = chainId(`sha256:${"c".repeat(64)}`);
const frees = { lowerBytes: 600n, estimateBytes: 650n, upperBytes: 800n };

describe("the history", () => {
  test("has a removal with its pass as soon as it is over", async () => {
    const directory = scratch();
    const { store } = await write(directory);
    store.passStarted(start("p"));
    const { candidate } = imageItem(1);
    store.imageDone(idOf("p"), imageItem(1, { candidate: { ...candidate, chain, frees } }));
    await store.flush();
    const { reader } = read(directory);
    expect(reader.removals({ limit: 10 })).toMatchSnapshot();
    expect(reader.passes({ limit: 10 })).toMatchObject([{ id: idOf("p"), endedAt: null }]);
    await store.close();
  });

  test("counts what an interrupted pass has done, and nothing of another with a longer ID", async () => {
    const purpose = { kind: "pressure", signals: ["imagefs.available"] } as const;
    const reader = await after(async (store) => {
      store.passStarted({ ...start("p"), kind: "pressure", purpose });
      store.imageDone(idOf("p"), imageItem(1));
      store.imageDone(idOf("p"), imageItem(2, { result: { kind: "ghost" } }));
      store.containerDone(idOf("p"), containerItem("a"), instant(110n));
      store.passStarted(start("pp"));
      store.imageDone(idOf("pp"), imageItem(3));
    });
    expect(reader.passes({ limit: 9 })).toMatchObject([
      { id: idOf("pp"), purpose: "periodic", signals: [], removed: 1, failed: 0 },
      { id: idOf("p"), purpose: "pressure", signals: purpose.signals, removed: 2, failed: 1 },
    ]);
    expect(reader.removals({ kinds: ["container"], limit: 9 })).toMatchObject([
      { trigger: "pressure", signal: "imagefs.available" },
    ]);
  });

  test("completes the row of a pass at its end, once", async () => {
    const reader = await after(async (store) => {
      store.passStarted(start("p"));
      store.imageDone(idOf("p"), imageItem(1));
      await store.flush();
      store.imageDone(idOf("p"), imageItem(2));
      const items = images([imageItem(1, { lateBytes: 299n }), imageItem(2)]);
      store.passEnded(pass("p", { plan: planOf(), images: items }), [filesystem]);
    });
    expect(
      reader.removals({ limit: 10 }).map((it) => [it.subject, it.measuredBytes, it.at]),
    ).toEqual([
      ["sha256:2", 700n, instant(2n)],
      ["sha256:1", 999n, instant(1n)],
    ]);
    expect(reader.passes({ limit: 10 })).toMatchSnapshot();
    expect(reader.samples({ limit: 10 })).toMatchObject([
      {
        at: instant(100n),
        device: "254:0",
        capacityBytes: 2n ** 63n,
        highPercent: 85,
        lowPercent: 80,
      },
    ]);
  });

  test("has reason, trigger and error of containers, sandboxes and logs", async () => {
    const purpose = { kind: "pressure", signals: ["nodefs.available"] } as const;
    const reader = await after(async (store) => {
      store.passStarted({ ...start("p"), kind: "pressure", purpose });
      store.containerDone(idOf("p"), containerItem("a"), instant(110n));
      for (const item of [sandboxItem, logItem])
        store.containerDone(idOf("p"), item, instant(200n));
      const rest = { containers: [containerItem("a")], sandboxes: [sandboxItem], logs: [logItem] };
      const change = { kind: "pressure", purpose, containers: containers(3n, rest) } as const;
      store.passEnded(pass("p", change), null);
    });
    expect(reader.removals({ limit: 10 })).toMatchSnapshot();
    expect(reader.passes({ limit: 1 })).toMatchObject([
      { removed: 1, failed: 1, measuredFreedBytes: 3n, signals: ["nodefs.available"] },
    ]);
  });

  test("has what images and containers of a pass freed together, as far as it was measured", async () => {
    const reader = await after(async (store) => {
      const both = { kind: "gc", images: images([imageItem(1)]) } as const;
      store.passEnded(pass("a", { ...both, containers: containers(50n) }), null);
      store.passEnded(pass("b", { ...both, containers: containers(null) }), null);
      store.passEnded(pass("c", { kind: "gc", containers: containers(50n) }), null);
      store.passEnded(pass("d", { kind: "gc", containers: containers(null) }), null);
    });
    const rows = reader.passes({ limit: 9 }).map((it) => [it.id, it.measuredFreedBytes] as const);
    expect(Object.fromEntries(rows)).toEqual({ a: 750n, b: 700n, c: 50n, d: null });
  });

  test("has no row for a frequent pass with nothing to do, but for a failed one", async () => {
    const reader = await after(async (store) => {
      store.passStarted({ ...start("quiet"), kind: "container-gc" });
      store.passEnded(pass("quiet", { kind: "container-gc" }), [filesystem]);
      store.passEnded(pass("failed", { kind: "container-gc", error: "no" }), null);
    });
    expect(reader.passes({ limit: 9 }).map((it) => [it.id, it.error])).toEqual([
      [idOf("failed"), "no"],
    ]);
    expect(reader.samples({ limit: 9 })).toEqual([]);
  });

  test.each<[string, Omit<RemovalQuery, "limit">, readonly string[]]>([
    ["nothing", {}, ["sha256:2", "sha256:1"]],
    ["a part of an ID", { text: "256:1" }, ["sha256:1"]],
    ["what is no pattern", { text: "%" }, []],
    ["no kind at all", { kinds: [] }, []],
  ])("is queried by %s, newest first", async (_, query, expected) => {
    const reader = await after((store) => {
      for (const turn of [1, 2]) store.imageDone(idOf("p"), imageItem(turn));
    });
    const subjects = (limit: number) =>
      reader.removals({ ...query, limit }).map((it) => it.subject);
    expect(subjects(9)).toEqual([...expected]);
    expect(subjects(1)).toEqual(expected.slice(0, 1));
  });

  test("shows a code of a later version, and reports an invalid row as an error of the query", async () => {
    const directory = scratch();
    const { store } = await write(directory);
    store.imageDone(idOf("p"), imageItem(1));
    await store.flush();
    const db = new Database(join(directory, "crigc.db"));
    db.run("UPDATE history SET document = json_set(document, '$.reason', 'novel')");
    expect(read(directory).reader.removals({ limit: 1 })).toMatchObject([{ reason: "novel" }]);
    db.run("UPDATE history SET document = '{}'");
    const { reader, notices } = read(directory);
    expect(() => reader.removals({ limit: 1 })).toThrow(
      expect.objectContaining({ name: "StoreError" }),
    );
    expect(notices).toEqual([]);
    await store.close();
  });
});

const event = (at: bigint, observed: number) =>
  historyRow(
    {
      kind: "event",
      row: { reason: "GhostImage", message: "", at: instant(at), passId: null },
    },
    watched(BigInt(observed)),
  );
/** Events that were recorded one by one, a nanosecond of observed time apart. */
const filled = (wall: (turn: number) => bigint = BigInt) => {
  const db = openInMemory();
  for (let turn = 1; turn <= 1200; turn += 1) writeRow(db, event(wall(turn), turn));
  return db;
};
const counted = (db: Database) => db.query("SELECT count(*), min(seq) FROM history").values()[0];
const day = 24n * 3600n * 1_000_000_000n;

test("records older than 90 observed days are deleted in small steps", () => {
  const db = filled();
  const later = watched(90n * day + 1201n);
  expect(prune(db, later)).toBe(500);
  expect(prune(db, later)).toBe(500);
  expect(prune(db, later)).toBe(200);
  expect(prune(db, later)).toBe(0);
});

test("young records are kept up to the limit, newest first", () => {
  const db = filled();
  expect(prune(db, watched(90n * day + 1n))).toBe(0);
  const bounds = [["event", 1000]] as const;
  expect(prune(db, watched(1n), bounds)).toBe(200);
  expect(prune(db, watched(1n), bounds)).toBe(0);
  expect(counted(db)).toEqual([1000, 201]);
});

test("records of a process that could not read the ledger yet are no older than those before", () => {
  const db = filled();
  writeRow(db, event(1201n, 0));
  expect(prune(db, watched(90n * day + 1200n))).toBe(500);
  expect(prune(db, watched(90n * day + 1200n))).toBe(500);
  expect(prune(db, watched(90n * day + 1200n))).toBe(199);
  expect(counted(db)).toEqual([2, 1200]);
});

test.each([
  ["in 1970", () => 0n],
  ["in 2036", () => BigInt(Date.parse("2036-01-01T00:00:00Z")) * 1_000_000n],
])("records of a clock set to %s are kept when the clock is right again", (_, wall) => {
  const db = filled(wall);
  expect(prune(db, watched(2000n))).toBe(0);
  expect(counted(db)).toEqual([1200, 1]);
});
