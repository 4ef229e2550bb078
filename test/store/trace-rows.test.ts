// The trace in the state file: intervals begin and end with what detections saw, are bounded, and cost an idle node one row.

import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";

import { chainId, imageId } from "../../src/model/ids.ts";
import type { Image } from "../../src/model/snapshot.ts";
import { instantFromMs, minutes } from "../../src/model/time.ts";
import { type TraceSeen, useKey } from "../../src/model/trace.ts";
import { openInMemory } from "../../src/store/connection.ts";
import type { Recorder } from "../../src/store/recorder.ts";
import { readTrace, writeTrace } from "../../src/store/trace-rows.ts";
import { anImage } from "../support/build/values.ts";
import { scratch } from "../support/scratch.ts";
import { read, write } from "./fixture.ts";

const MINUTE = 60_000;
const PERIOD = 5 * MINUTE;
const [A, B] = [imageId("sha256:a"), imageId("sha256:b")];
const LAYERS = ["1", "2"].map((digit) => chainId(`sha256:${digit.repeat(64)}`));
const web = useKey(A, "web:1");

/** A node whose agent detects at a minute; `null`: the same as before. */
function node(db: Database = openInMemory()) {
  const at = (minute: number, keys: readonly string[] | null, isComplete = true): void =>
    writeTrace(db, {
      kind: "trace",
      images: [A, B].map((image) => ({ image, names: [], sizeBytes: "1", chain: null })),
      detection: {
        atMs: minute * MINUTE,
        precisionMs: PERIOD,
        watchedMs: minute * MINUTE,
        keys,
        isComplete,
      },
    });
  /** `A 0-5`, and `A web:1 0-` for a use that has not ended. */
  const intervals = (): readonly string[] => {
    const trace = readTrace(db);
    const minute = (ms: number | null) => (ms === null ? "" : ms / MINUTE);
    return [...(trace?.present ?? []), ...(trace?.uses ?? [])].map((it) => {
      const name = "name" in it ? ` ${it.name}` : "";
      const image = it.image === A ? "A" : "B";
      return `${image}${name} ${minute(it.fromMs)}-${minute(it.untilMs)}`;
    });
  };
  return { db, at, intervals };
}

/** `5 A web` is what the detection of that minute saw, `10 =` that nothing changed, `5 A ?` that uses are unknown. */
test.each([
  [
    "lasts from the detection that saw it first to the one that no longer did",
    "0 A, 5 A web, 10 =, 15 A B, 20 B",
    ["A 0-20", "B 15-", "A web:1 5-15"],
  ],
  ["of an image that comes back is another one", "0 A, 5, 10 A", ["A 0-5", "A 10-"]],
  [
    "goes on if the next detection comes within two periods",
    "0 A web, 9 A",
    ["A 0-", "A web:1 0-9"],
  ],
  ...[60, 60 * 24 * 365, 5].map((next): [string, string, string[]] => [
    `ends with the last detection if the agent was down or the clock is set: 25, ${next}`,
    `20 A web, 25 =, ${next} A`,
    ["A 20-25", `A ${next}-`, "A web:1 20-25"],
  ]),
  [
    "that goes on after a gap is two, with the same image and name",
    "0 A web, 60 =",
    ["A 0-0", "A 60-", "A web:1 0-0", "A web:1 60-"],
  ],
  [
    "does not end before it begins when the clock is set back a little",
    "20 A, 17 A B, 18 A",
    ["A 20-", "B 20-20"],
  ],
  [
    "of a use does not end while uses are unknown, and of an image does",
    "0 A B web, 5 A ?",
    ["A 0-", "B 0-5", "A web:1 0-"],
  ],
  ["of a use ends once uses are known", "0 A web, 5 A ?, 10 A", ["A 0-", "A web:1 0-10"]],
])("an interval %s", (_, steps, expected) => {
  const { at, intervals } = node();
  const keys: Readonly<Record<string, string>> = { A, B, web };
  for (const step of steps.split(", ")) {
    const [minute, ...seen] = step.split(" ");
    const named = seen[0] === "=" ? null : seen.flatMap((name) => keys[name] ?? []);
    at(Number(minute), named, !seen.includes("?"));
  }
  expect(intervals()).toEqual(expected);
});

test("a clock that was once ahead by a year does not extend the trace", () => {
  const { db, at } = node();
  at(365 * 24 * 60, [A]);
  for (const minute of [20, 25]) at(minute, [A]);
  expect(readTrace(db)).toMatchObject({ fromMs: 20 * MINUTE, untilMs: 25 * MINUTE });
});

test("a detection that says only that nothing changed is refused on a file without any", () => {
  const { at } = node();
  expect(() => at(5, null)).toThrow("the open intervals are not known");
});

test("what ended more than 90 days of observed time ago is deleted, and what has not ended stays", () => {
  const { at, intervals } = node();
  const day = 24 * 60;
  at(0, [A, B, web]);
  at(1, [B, web]);
  at(2, [B]);
  for (const hour of [1, 90 * 24]) at(hour * 60, null);
  at(90 * day + 2, [A, B]);
  expect(intervals()).not.toContain("A 0-1");
  expect(intervals()).toContain("A web:1 0-2");
  at(90 * day + 3, [A]);
  expect(intervals()).not.toContain("A web:1 0-2");
});

test("beyond 200,000 intervals those that ended first are deleted, in bounded steps", () => {
  const { db, at, intervals } = node();
  at(0, [A]);
  db.run(
    `WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 201000)
     INSERT INTO trace (image, name, from_ms, until_ms, watched_ms)
     SELECT 1, 'old', 0, n, n FROM number`,
  );
  const ended = db.query<{ rows: number; first: number }, []>(
    "SELECT count(*) AS rows, min(watched_ms) AS first FROM trace WHERE name = 'old'",
  );
  at(1, [A, B]);
  const { rows = 0, first = 0 } = ended.get() ?? {};
  expect(rows).toBeGreaterThan(200_000);
  expect(first).toBe(201_000 - rows + 1);
  for (const minute of [2, 3]) at(minute, minute % 2 === 0 ? [A] : [A, B]);
  expect(ended.get()?.rows).toBeLessThanOrEqual(200_000);
  expect(intervals()).toContain("A 0-");
});

describe("what detections see is written", () => {
  const image = (name: string, change: Partial<Image> = {}) => anImage(name, change);
  const seen = (
    minute: number,
    images: readonly Image[],
    uses: readonly string[] = [],
  ): TraceSeen => ({
    at: instantFromMs(Date.parse("2026-01-02T00:00:00Z") + minute * MINUTE),
    precision: minutes(5),
    isComplete: true,
    node: {
      keys: new Set([...images.map(({ id }) => id), ...uses]),
      images,
      chainOf: () => LAYERS,
    },
  });
  /** The tracer answers within microtasks here. */
  const traced = async (store: Recorder, what: TraceSeen): Promise<void> => {
    store.traced(what);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const recorded = (directory: string) => {
    using reader = read(directory).reader;
    return reader.trace();
  };

  test("with the names, the size and the layers of each image", async () => {
    const directory = scratch();
    const { store, notices } = await write(directory);
    const [one, other] = [image("one"), image("other", { sizeBytes: 2n ** 63n })];
    await traced(store, seen(0, [one]));
    await traced(store, seen(5, [{ ...one, repoTags: ["one:2"] }, other]));
    await traced(store, seen(10, [{ ...one, repoTags: ["one:2"] }, other]));
    await store.close();
    expect(notices).toEqual([]);
    const trace = recorded(directory);
    expect(trace?.images.map(({ image: id, sizeBytes }) => [id, sizeBytes])).toEqual([
      [one.id, one.sizeBytes.toString()],
      [other.id, (2n ** 63n).toString()],
    ]);
    expect(trace?.images[0]?.names).toContain("one:2");
    expect(trace?.images[0]?.chain).toEqual(LAYERS);
    expect(trace?.present.map(({ untilMs }) => untilMs)).toEqual([null, null]);
    expect((trace?.untilMs ?? 0) - (trace?.fromMs ?? 0)).toBe(10 * MINUTE);
  });

  test("again whole after the file was lost", async () => {
    const directory = scratch();
    const { store } = await write(directory);
    const one = image("one");
    await traced(store, seen(0, [one]));
    for (const name of ["crigc.db", "crigc.db-wal", "crigc.db-shm"])
      rmSync(`${directory}/${name}`, { force: true });
    await traced(store, seen(5, [one]));
    expect(recorded(directory)?.present).toHaveLength(1);
    await store.close();
  });

  test("at most ten times in a period", async () => {
    const directory = scratch();
    const { store } = await write(directory);
    await traced(store, seen(0, [image("one")]));
    await traced(store, seen(0.25, [image("one"), image("other")]));
    expect(recorded(directory)?.present).toHaveLength(1);
    await traced(store, seen(0.5, [image("one"), image("other")]));
    expect(recorded(directory)?.present).toHaveLength(2);
    await store.close();
  });

  test("or why not is said once, and the ledger goes on", async () => {
    const directory = scratch();
    const { store, notices } = await write(directory);
    const one = image("one");
    await traced(store, seen(0, [one]));
    using db = new Database(`${directory}/crigc.db`);
    for (const sql of ["DROP TABLE trace", "CREATE VIEW trace AS SELECT 1"]) db.run(sql);
    for (const minute of [5, 10]) await traced(store, seen(minute, [one, image(`${minute}`)]));
    expect(notices).toEqual([expect.stringContaining("crigc records no trace until it can")]);
    expect(await store.flush()).toBeTrue();
    expect(store.failure()).toBeNull();
    db.run("DROP VIEW trace");
    await traced(store, seen(15, [one]));
    expect(recorded(directory)?.present).toHaveLength(1);
    await store.close();
  });
});
