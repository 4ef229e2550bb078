// The two state files as one process after another leaves and finds them: cut off, broken, older, of another machine.
import { describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { type ImageId, imageId, passId } from "../../src/model/ids.ts";
import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import { duration, instant, totalUptime } from "../../src/model/time.ts";
import { HISTORY_BYTES_MAX } from "../../src/state/history-file.ts";
import { diskObstacle, MiB, smallDisk } from "../e2e/binary/disk.ts";
import { aRecord } from "../support/build/values.ts";
import { scratch } from "../support/scratch.ts";
import { closed, now, read, write } from "./fixture.ts";
import { containerItem, imageItem, images, pass } from "./history-fixture.ts";

const id = (name: string): ImageId => imageId(`sha256:${name}`);
const seenAt = (at: bigint) =>
  aRecord({ firstSeenUptime: totalUptime(at), ageRestartedUptime: null });

/** A ledger with images first seen at these times. */
const ledgerOf = (seen: Readonly<Record<string, bigint>>, at = 1_000n): Ledger => ({
  ...emptyLedger,
  bootId: "boot",
  observedAt: now,
  uptime: duration(at),
  totalUptime: totalUptime(at),
  images: new Map(Object.entries(seen).map(([name, first]) => [id(name), seenAt(first)])),
});

const MACHINES = ["1".repeat(32), "2".repeat(32)] as const;

async function leave(directory: string, ledger: Ledger, machineId?: string): Promise<void> {
  const { state, close } = await write(directory, machineId === undefined ? {} : { machineId });
  state.replace(ledger);
  await close();
}

const place = (): string => join(scratch(), "state");
const pathIn = (directory: string, name: string): string => join(directory, name);
const ledgerFile = (directory: string): string => pathIn(directory, "ledger.json");
const historyFile = (directory: string): string => pathIn(directory, "history.jsonl");

describe("a ledger", () => {
  test("that was closed is the next process's, which restarts no age", async () => {
    const directory = place();
    const ledger = ledgerOf({ a: 1n, b: 2n });
    await leave(directory, ledger);
    const { state, notices } = await write(directory);
    expect(state.current()).toEqual(ledger);
    expect(notices).toEqual([]);
    expect(lstatSync(ledgerFile(directory)).mode & 0o777).toBe(0o600);
  });

  test("restarts the minimum age if its process did not close it, each time", async () => {
    const directory = place();
    await leave(directory, ledgerOf({ a: 1n }));
    for (let crash = 0; crash < 3; crash += 1) {
      const { state } = await write(directory);
      expect(state.current().ageRestartDue).toBe(crash > 0);
      state.replace({ ...state.current(), ageRestartDue: false });
      state.save();
      await state.flush(10_000);
    }
    expect(read(directory, { isOwner: false }).reader.ledger.ageRestartDue).toBeFalse();
    expect(read(directory).reader.ledger.ageRestartDue).toBeTrue();
  });

  test("restarts the minimum age if it is older than its history", async () => {
    const directory = place();
    await leave(directory, ledgerOf({ a: 1n }));
    const copy = join(scratch(), "copy");
    cpSync(ledgerFile(directory), copy);
    const { store, close } = await write(directory);
    store.event({ at: now, passId: null, reason: "GhostImage", message: "one" });
    await close();
    expect(read(directory).reader.ledger.ageRestartDue).toBeFalse();
    cpSync(copy, ledgerFile(directory));
    expect(read(directory).reader.ledger.ageRestartDue).toBeTrue();
  });

  test("restarts the minimum age beside a history that it does not know", async () => {
    const directory = place();
    const { state, store } = await write(directory);
    for (const message of ["one", "two"])
      store.event({ at: now, passId: null, reason: "GhostImage", message });
    state.replace(ledgerOf({ a: 1n }));
    await closed(state);
    const lines = readFileSync(historyFile(directory), "utf8").split("\n");
    writeFileSync(historyFile(directory), `${lines.slice(0, 2).join("\n")}\n`);
    expect(read(directory).reader.ledger.ageRestartDue).toBeTrue();
    rmSync(historyFile(directory));
    expect(read(directory).reader.ledger.ageRestartDue).toBeFalse();
  });

  test("is written also while the history takes no record", async () => {
    const directory = place();
    await leave(directory, ledgerOf({ a: 1n, b: 1n }));
    const { state, store } = await write(directory);
    mkdirSync(historyFile(directory));
    store.done(passId("P"), imageItem(1, {}, id("a")));
    state.replace(ledgerOf({ b: 1n }));
    state.save();
    expect(await state.flush(1_000)).toBe(1);
    rmSync(join(directory, "..", "run"), { recursive: true });
    expect([...read(directory).reader.ledger.images.keys()]).toEqual([id("b")]);
  });

  test("forgets images that were removed after it was written", async () => {
    const directory = place();
    await leave(directory, ledgerOf({ a: 1n, b: 1n }));
    const { state, store } = await write(directory);
    store.done(passId("P"), imageItem(1, {}, id("a")));
    const failed = { result: { kind: "failed", message: "no", code: "failed" } } as const;
    store.done(passId("P"), imageItem(2, failed, id("b")));
    await state.flush(10_000);
    // It is killed.
    const found = (await write(directory)).state;
    expect([...found.current().images.keys()]).toEqual([id("b")]);
    found.replace(ledgerOf({ a: 2_000n, b: 1n }, 3_000n));
    await closed(found);
    const last = (await write(directory)).state;
    expect([...last.current().images.keys()]).toEqual([id("a"), id("b")]);
  });
});

const SPOILS: readonly (readonly [string, (path: string) => void])[] = [
  ["is empty", (path) => writeFileSync(path, "")],
  ["is cut off", (path) => truncateSync(path, lstatSync(path).size - 3)],
  ["is of a later version", (path) => writeFileSync(path, '{"version":2,"machineId":""}\n')],
  ["is of another program", (path) => writeFileSync(path, '{"a":1}\n')],
  [
    "is a directory",
    (path) => {
      rmSync(path);
      mkdirSync(path);
      writeFileSync(join(path, "file"), "");
    },
  ],
  [
    "is a link",
    (path) => {
      rmSync(path);
      symlinkSync("/dev/null", path);
    },
  ],
  [
    "is a pipe",
    (path) => {
      rmSync(path);
      Bun.spawnSync(["mkfifo", path]);
    },
  ],
];

describe("a file that crigc cannot use", () => {
  test.each(SPOILS)("is moved aside and never deleted: a ledger that %s", async (_, spoil) => {
    const directory = place();
    for (const number of [1, 2, 3, 4]) {
      await leave(directory, ledgerOf({ a: 1n }));
      spoil(ledgerFile(directory));
      const seen = read(directory);
      expect(seen.notices).toHaveLength(1);
      expect(seen.reader.ledger).toMatchObject({ observedAt: null });
      const { state, notices, close } = await write(directory);
      expect(notices).toEqual(seen.notices);
      expect(readdirSync(directory)).toContain(`ledger.json.aside-${number}`);
      expect(state.current().observedAt).toBeNull();
      await close();
    }
    const aside = readdirSync(directory).filter((name) => name.includes("aside"));
    expect(aside).toHaveLength(4);
  });

  test.each(SPOILS.slice(2))("is moved aside: a history that %s", async (_, spoil) => {
    const directory = place();
    const { store, close } = await write(directory);
    store.passEnded(pass("P", { images: images([imageItem(1)]) }));
    await close();
    spoil(historyFile(directory));
    const next = await write(directory);
    expect(next.notices).toEqual([expect.stringContaining("history.jsonl")]);
    expect(readdirSync(directory)).toContain("history.jsonl.aside-1");
    next.store.passEnded(pass("Q", { images: images([imageItem(1)]) }));
    await next.close();
    expect(
      read(directory)
        .reader.history()
        .passes.map((row) => row.id),
    ).toEqual([passId("Q")]);
  });

  test("and cannot move aside stays as it is, and nothing is written until it is gone", async () => {
    let directory = place();
    // The kernel takes no longer path than that of the draft.
    const room = 4_095 - "/ledger.json.new".length;
    while (directory.length < room)
      directory += `/${"x".repeat(Math.min(200, room - directory.length - 1))}`;
    mkdirSync(directory, { recursive: true });
    writeFileSync(ledgerFile(directory), "{}");
    const { state, store, notices, close } = await write(directory, { runDirectory: scratch() });
    store.done(passId("P"), imageItem(1));
    expect(await state.flush(1_000)).toBe(1);
    expect(notices).toEqual([
      expect.stringContaining("crigc did not write it"),
      expect.stringContaining("the name is too long; records stay in memory"),
    ]);
    expect(readdirSync(directory)).toEqual(["ledger.json"]);
    expect(readFileSync(ledgerFile(directory), "utf8")).toBe("{}");
    rmSync(ledgerFile(directory));
    expect(await close()).toBe(0);
    expect(read(directory).reader.history().removals).toHaveLength(1);
  });

  test("is moved aside if another machine wrote it, with its history", async () => {
    const directory = place();
    const { state, store, close } = await write(directory, { machineId: MACHINES[0] });
    state.replace(ledgerOf({ a: 1n }));
    store.done(passId("P"), imageItem(1));
    await close();
    const other = await write(directory, { machineId: MACHINES[1] });
    expect(other.state.current()).toEqual(emptyLedger);
    expect(other.notices).toHaveLength(2);
    await other.close();
    // A machine without an ID cannot tell.
    expect((await write(directory)).notices).toEqual([]);
  });
});

describe("the history", () => {
  test("has every whole record wherever a power cut ends the file, and takes new ones", async () => {
    const directory = place();
    const { store, close } = await write(directory);
    for (let turn = 1; turn <= 3; turn += 1) store.done(passId("P"), imageItem(turn));
    await close();
    const whole = readFileSync(historyFile(directory));
    const ends = [...whole.keys()].filter((at) => whole[at] === 10);
    const from = ends[1] ?? 0;
    for (let cut = from; cut <= whole.length; cut += 1) {
      writeFileSync(historyFile(directory), whole.subarray(0, cut));
      // The record is whole without its line end.
      const kept = ends.filter((end) => end > (ends[0] ?? 0) && end <= cut).length;
      expect(read(directory).reader.history().removals).toHaveLength(kept);
      if (cut % 16 !== 0 && cut < whole.length - 8) continue;
      const isCut = !ends.includes(cut) && !ends.includes(cut - 1);
      const next = await write(directory);
      expect(next.notices.length).toBe(isCut ? 1 : 0);
      next.store.done(passId("Q"), imageItem(9));
      await next.close();
      expect(read(directory).reader.history().removals).toHaveLength(kept + 1);
    }
  });

  test("skips a line of zeros, as a power cut leaves it, and says so", async () => {
    const directory = place();
    const { store, close } = await write(directory);
    store.done(passId("P"), imageItem(1));
    await close();
    writeFileSync(historyFile(directory), Buffer.alloc(3 * MiB), { flag: "a" });
    const next = await write(directory);
    expect(next.notices).toEqual([expect.stringContaining("cut off or broken (1)")]);
    next.store.done(passId("P"), imageItem(2));
    await next.close();
    expect(read(directory).reader.history().removals).toHaveLength(2);
  });

  test("goes on in a new file at 16 MiB, and keeps one before it", async () => {
    const directory = place();
    const { state, store, close } = await write(directory);
    const message = "x".repeat(MiB);
    for (let turn = 1; turn <= 40; turn += 1) {
      store.event({ at: instant(BigInt(turn)), passId: null, reason: "GhostImage", message });
      await state.flush(10_000);
    }
    await close();
    expect(readdirSync(directory).toSorted()).toEqual([
      "history.1.jsonl",
      "history.jsonl",
      "ledger.json",
    ]);
    for (const name of ["history.1.jsonl", "history.jsonl"])
      expect(lstatSync(join(directory, name)).size).toBeLessThanOrEqual(HISTORY_BYTES_MAX);
    const events = read(directory).reader.history().events;
    expect(events.at(-1)?.at).toBe(instant(40n));
    expect(events.length).toBeGreaterThanOrEqual(16);
    expect(new Set(events.map(({ at }) => at)).size).toBe(events.length);
  });

  test("has one record of passes that end alike without doing anything", async () => {
    const directory = place();
    const { store, close } = await write(directory);
    const idle = { ...images([]), end: "nothing-to-do" } as const;
    for (const name of ["1", "2", "3"]) store.passEnded(pass(name, { images: idle }));
    store.passEnded(pass("4", { images: { ...idle, end: "futile" } }));
    store.passEnded(pass("5", { images: { ...idle, end: "futile" } }));
    await close();
    expect(
      read(directory)
        .reader.history()
        .passes.map((row) => row.id),
    ).toEqual([passId("1"), passId("4")]);
  });

  test("names images that came back, under their ID or a name, once each", async () => {
    const directory = place();
    const { state, store, close } = await write(directory);
    store.done(passId("P"), imageItem(1, {}, id("a")));
    store.done(passId("P"), imageItem(2, {}, id("b")));
    store.done(passId("P"), containerItem("web"));
    const back = { firstSeenAt: instant(100n), names: "Registry.example/app/Web:2", sizeBytes: 7n };
    const images_ = new Map([[id("c"), aRecord(back)]]);
    state.replace({ ...ledgerOf({}), images: images_ });
    await close();
    expect(read(directory).reader.history().returned).toMatchObject([
      { subject: id("b"), returnedAs: id("c"), sizeBytes: 7n, at: 100n },
    ]);
  });
});

describe.skipIf(diskObstacle !== null)("on a full disk", () => {
  async function fullDisk() {
    const disk = await smallDisk(MiB);
    const directory = join(disk.directory, "state");
    const ballast = join(disk.directory, "ballast");
    const fill = () => {
      try {
        writeFileSync(ballast, Buffer.alloc(2 * MiB));
      } catch {}
    };
    return {
      directory,
      fill,
      free: () => rmSync(ballast),
      [Symbol.asyncDispose]: disk[Symbol.asyncDispose],
    };
  }

  test("records stay in memory, and are written once there is room", async () => {
    await using disk = await fullDisk();
    const { state, store, notices, close } = await write(disk.directory);
    state.replace(ledgerOf({ a: 1n }));
    rmSync(historyFile(disk.directory), { force: true });
    disk.fill();
    store.done(passId("P"), imageItem(1, {}, id("b")));
    expect(await state.flush(1_000)).toBe(1);
    expect(state.failure).toEndWith("the filesystem is full; free space there");
    disk.free();
    await close();
    expect(state.failure).toBeNull();
    expect(notices).toEqual([
      expect.stringContaining("crigc tries again"),
      expect.stringContaining("is written again"),
    ]);
    expect(read(disk.directory).reader.history().removals).toHaveLength(1);
    expect(existsSync(join(disk.directory, "..", "run", "ledger-unwritten.json"))).toBeFalse();
  });

  test("the next process has the ledger of the one before, without what that removed", async () => {
    await using disk = await fullDisk();
    const runDirectory = scratch();
    await leave(disk.directory, ledgerOf({ a: 1n, b: 1n }));
    rmSync(historyFile(disk.directory), { force: true });
    disk.fill();
    for (const name of ["a", "b"]) {
      const { state, store, close } = await write(disk.directory, { runDirectory });
      expect(state.current().ageRestartDue).toBeFalse();
      expect([...state.current().images.keys()]).toContain(id(name));
      store.done(passId("P"), imageItem(1, {}, id(name)));
      state.replace({ ...ledgerOf(name === "a" ? { b: 1n } : {}, 2_000n) });
      expect(await close(1_000)).toBe(1);
    }
    expect(lstatSync(join(runDirectory, "ledger-unwritten.json")).mode & 0o777).toBe(0o600);
    disk.free();
    const { state, close } = await write(disk.directory, { runDirectory });
    expect(state.current()).toEqual(ledgerOf({}, 2_000n));
    await close();
    expect(read(disk.directory, { runDirectory }).reader.ledger).toEqual(ledgerOf({}, 2_000n));
    expect(existsSync(join(runDirectory, "ledger-unwritten.json"))).toBeFalse();
  });

  test("restarts the minimum age if the process before was killed", async () => {
    await using disk = await fullDisk();
    const runDirectory = scratch();
    await leave(disk.directory, ledgerOf({ a: 1n }));
    disk.fill();
    const { state } = await write(disk.directory, { runDirectory });
    expect(state.failure).toEndWith("the filesystem is full; free space there");
    expect(read(disk.directory, { runDirectory }).reader.ledger.ageRestartDue).toBeTrue();
    disk.free();
    await closed(state);
  });
});

test("two writes at the same moment leave one whole document", async () => {
  const directory = place();
  const { state, close } = await write(directory);
  for (let turn = 0; turn < 50; turn += 1) {
    state.replace(ledgerOf({ a: BigInt(turn) }));
    state.save();
    if (turn % 7 === 0) await Bun.sleep(1);
  }
  await close();
  expect(read(directory).reader.ledger).toEqual(ledgerOf({ a: 49n }));
  expect(read(directory).notices).toEqual([]);
});
