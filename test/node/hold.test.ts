import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import type { Clocks } from "../../src/model/snapshot.ts";
import { hours, instant, minutes, plus } from "../../src/model/time.ts";
import { readClocks } from "../../src/node/clock.ts";
import { judgeHold, readHold, releaseHold, writeHold } from "../../src/node/hold.ts";
import { scratch } from "../support/scratch.ts";

const request = { length: hours(2), reason: "an upgrade", by: "root" };

const clocks: Clocks = {
  wall: instant(1_700_000_000_000_000_000n),
  uptime: hours(5),
  bootId: "boot",
};

const inAnHour = (change: Partial<Clocks>): Clocks => ({
  wall: plus(clocks.wall, hours(1)),
  uptime: hours(6),
  bootId: clocks.bootId,
  ...change,
});

describe("a hold", () => {
  test("is in force from when it is written until it is released", () => {
    const dir = join(scratch(), "state");
    const now = readClocks();
    expect(readHold(dir)).toEqual({ kind: "none" });
    const until = writeHold(dir, request, now);
    expect(until).toBe(plus(now.wall, hours(2)));
    const held = { kind: "held" as const, until, since: now.wall, reason: "an upgrade" };
    expect(readHold(dir)).toEqual(held);
    expect(releaseHold(dir)).toBe(true);
    expect(readHold(dir)).toEqual({ kind: "none" });
    expect(releaseHold(dir)).toBe(false);
  });

  test("is replaced by a new one, also if that is shorter", () => {
    const dir = scratch();
    writeHold(dir, request);
    const until = writeHold(dir, { ...request, reason: "short", length: minutes(1) });
    expect(readHold(dir)).toMatchObject({ until, reason: "short" });
  });

  test("that cannot be written is an error", () => {
    const file = join(scratch(), "file");
    writeFileSync(file, "");
    expect(() => writeHold(file, request)).toThrow(
      expect.objectContaining({
        name: "HostError",
        kind: "write",
        message: expect.stringContaining("a file is in its place"),
      }),
    );
  });

  test("that cannot be read or removed is in force, and its release is an error that names it", () => {
    const dir = scratch();
    const path = join(dir, "hold.json");
    mkdirSync(path);
    expect(readHold(dir)).toMatchObject({ kind: "held", until: null });
    expect(() => releaseHold(dir)).toThrow(
      expect.objectContaining({ kind: "write", message: expect.stringContaining(path) }),
    );
  });

  test.each<[string, (path: string) => void]>([
    ["is empty", (path) => writeFileSync(path, "")],
    ["has no times", (path) => writeFileSync(path, "{}")],
    ["has no end by the uptime", withoutUptime],
    [
      "ends at no time",
      (path) => writeFileSync(path, '{"since":"2026-01-01T00:00:00Z","until":"tomorrow"}'),
    ],
    ["is a dangling link", (path) => symlinkSync(`${path}.absent`, path)],
    ["is a pipe", (path) => void Bun.spawnSync(["mkfifo", path])],
  ])("whose file %s is in force until it is released", (_, make) => {
    const dir = scratch();
    const path = join(dir, "hold.json");
    make(path);
    const state = readHold(dir);
    expect(state).toMatchObject({ kind: "held", until: null, since: null });
    // Also said of a hold that was just released.
    expect(state.kind === "held" && state.reason).toMatch(
      new RegExp(`^the hold ${path} (?:is invalid$|cannot be read: )`),
    );
    expect(releaseHold(dir)).toBe(true);
    expect(readHold(dir)).toEqual({ kind: "none" });
  });
});

function withoutUptime(path: string): void {
  writeHold(dirname(path), request);
  const { untilUptimeMs: _, ...rest } = JSON.parse(readFileSync(path, "utf8"));
  writeFileSync(path, JSON.stringify(rest));
}

test.each<[string, Clocks, "held" | "none"]>([
  ["in force before both ends", inAnHour({}), "held"],
  ["over at its end by the wall clock", inAnHour({ wall: plus(clocks.wall, hours(2)) }), "none"],
  ["over at its end by the uptime", inAnHour({ uptime: hours(7) }), "none"],
  [
    "over at its end by the uptime, although the wall clock was set back",
    inAnHour({ uptime: hours(7), wall: instant(0n) }),
    "none",
  ],
  [
    "in force after a reboot with a higher uptime",
    inAnHour({ uptime: hours(9), bootId: "other" }),
    "held",
  ],
  [
    "over after a reboot at its end by the wall clock",
    inAnHour({ wall: plus(clocks.wall, hours(2)), uptime: minutes(1), bootId: "other" }),
    "none",
  ],
])("a hold of two hours is %s", (_, now, expected) => {
  const dir = scratch();
  writeHold(dir, request, clocks);
  expect(judgeHold(readFileSync(join(dir, "hold.json"), "utf8"), "hold.json", now).kind).toBe(
    expected,
  );
});
