import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import {
  acquireLock,
  endpointHash,
  type LockAttempt,
  type LockPlaces,
  type LockRequest,
} from "../../src/node/lock.ts";
import { failureOf } from "../support/failure.ts";
import { put, scratch } from "../support/scratch.ts";

const userId = process.getuid?.() ?? 0;
const placesIn = (directory: string): LockPlaces => ({
  systemRun: join(directory, "run"),
  runDirectory: join(directory, "own"),
  userId,
});

function lock(places: LockPlaces, change: Partial<LockRequest> = {}): Promise<LockAttempt> {
  return acquireLock(
    {
      name: "pass",
      endpoint: "unix:///run/x.sock",
      holder: "a test",
      waitMs: 0,
      signal: new AbortController().signal,
      ...change,
    },
    places,
  );
}

async function held(places: LockPlaces, change: Partial<LockRequest> = {}) {
  const attempt = await lock(places, change);
  if (attempt.kind !== "acquired") throw new Error(`not acquired: ${attempt.kind}`);
  return attempt.lock;
}

describe("acquireLock", () => {
  test("makes a second caller wait no longer than allowed, and tells it who holds the lock", async () => {
    const places = placesIn(scratch());
    const first = await held(places);
    expect(await lock(places, { waitMs: 60 })).toEqual({
      kind: "held",
      holder: "a test",
      path: first.path,
    });
    first.release();
    first.release();
    (await held(places)).release();
  });

  test("gives the lock to a waiting caller when it is released, unless that was cancelled", async () => {
    const places = placesIn(scratch());
    const first = await held(places);
    expect(statSync(first.path).mode & 0o777).toBe(0o600);
    const cancelled = lock(places, { waitMs: 60_000, signal: AbortSignal.timeout(1) });
    expect(await cancelled).toEqual({ kind: "aborted" });
    const second = held(places, { waitMs: 10_000 });
    first.release();
    (await second).release();
  });

  test("does not pass the lock to a child process", async () => {
    const first = await held(placesIn(scratch()));
    const child = Bun.spawnSync(["ls", "-l", "/proc/self/fd"]);
    expect(child.exitCode).toBe(0);
    expect(child.stdout.toString()).not.toContain(first.path);
    first.release();
  });

  test("uses separate locks for runtimes and purposes", async () => {
    const places = placesIn(scratch());
    const locks = [
      await held(places),
      await held(places, { endpoint: "unix:///run/y.sock" }),
      await held(places, { name: "agent" }),
    ];
    for (const it of locks) it.release();
  });

  test.each([
    ["itself", "real/x.sock"],
    ["a link to it", "sockets/link.sock"],
    ["a link to a link", "chain.sock"],
    ["a relative link through a linked directory", "by/dir.sock"],
    ["steps back over a linked directory", "by/../real/x.sock"],
  ])("uses one lock for a socket by way of %s, even while its runtime is down", (_, way) => {
    const directory = scratch();
    for (const name of ["real", "sockets"]) mkdirSync(join(directory, name));
    symlinkSync(join(directory, "real/x.sock"), join(directory, "sockets/link.sock"));
    symlinkSync("sockets/link.sock", join(directory, "chain.sock"));
    symlinkSync("sockets", join(directory, "by"));
    symlinkSync("../real//x.sock", join(directory, "sockets/dir.sock"));
    const hashes = () => [
      endpointHash(`${directory}/real/x.sock`),
      ...["", "unix:", "unix://"].map((scheme) => endpointHash(`${scheme}${directory}/${way}`)),
    ];
    const down = hashes();
    put(directory, "real/x.sock");
    expect(new Set([...down, ...hashes()]).size).toBe(1);
  });

  test("ignores --run-dir while the system's directory can be written", async () => {
    const directory = scratch();
    const first = await held(placesIn(directory));
    const other = { ...placesIn(directory), runDirectory: join(directory, "elsewhere") };
    expect((await lock(other)).kind).toBe("held");
    first.release();
  });

  test("uses --run-dir if the system's directory cannot be written", async () => {
    const directory = scratch();
    put(directory, "run", "a file, so that nothing can be made below it");
    const places = { ...placesIn(directory), systemRun: join(directory, "run/absent") };
    const below = await held(places);
    expect(below.path).toStartWith(join(directory, "own/locks/"));
    below.release();
    rmSync(join(directory, "run"));
    mkdirSync(join(directory, "run"));
    symlinkSync("/proc/self/nothing", join(directory, "run/crigc"));
    const first = await held({ ...places, systemRun: join(directory, "run") });
    expect(first.path).toStartWith(join(directory, "own/locks/"));
    first.release();
  });

  test("refuses a link in place of the lock, and does not touch its target", async () => {
    const directory = scratch();
    const places = placesIn(directory);
    const first = await held(places);
    first.release();
    rmSync(first.path);
    const target = put(directory, "precious", "content");
    symlinkSync(target, first.path);
    expect(await failureOf(lock(places))).toMatchObject({ name: "HostError", kind: "refused" });
    expect(await Bun.file(target).text()).toBe("content");
  });

  test("refuses a lock directory that others can write to", async () => {
    const directory = scratch();
    const places = placesIn(directory);
    mkdirSync(join(directory, "run/crigc/locks"), { recursive: true });
    chmodSync(join(directory, "run/crigc/locks"), 0o777);
    expect(await failureOf(lock(places))).toMatchObject({
      kind: "refused",
      message: expect.stringContaining("other users can write to it"),
    });
    expect(readdirSync(directory)).not.toContain("own");
  });
});

test("a lock whose file is deleted is not in place, and another one is taken", async () => {
  const places = placesIn(scratch());
  const first = await held(places);
  expect(first.isInPlace()).toBe(true);
  rmSync(first.path);
  expect(first.isInPlace()).toBe(false);
  const second = await held(places);
  expect([first.isInPlace(), second.isInPlace()]).toEqual([false, true]);
  expect((await lock(places)).kind).toBe("held");
  first.release();
  second.release();
  expect(second.isInPlace()).toBe(false);
});
