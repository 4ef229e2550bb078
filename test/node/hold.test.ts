import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Clocks } from "../../src/model/snapshot.ts";
import { type Duration, duration, hours, instant, minutes, plus } from "../../src/model/time.ts";
import { readClocks } from "../../src/node/clock.ts";
import {
  type HoldPlaces,
  judgeHold,
  readHold,
  releaseHold,
  writeHold,
} from "../../src/node/hold.ts";
import { scratch } from "../support/scratch.ts";

function places() {
  const directory = scratch();
  return { stateDir: join(directory, "state"), runDir: join(directory, "run") };
}

const stateOf = (here: HoldPlaces) => readHold(here, readClocks().wall);

const request = { length: hours(2), reason: "an upgrade", by: "root" };

const clocks: Clocks = {
  wall: instant(1_700_000_000_000_000_000n),
  uptime: hours(5),
  bootId: "boot",
};
const later = (span: Duration, change: Partial<Clocks> = {}): Clocks => ({
  wall: plus(clocks.wall, span),
  uptime: duration(clocks.uptime + span),
  bootId: clocks.bootId,
  ...change,
});

describe("a hold", () => {
  test("is in force from when it is written until it is released", () => {
    const here = places();
    const now = readClocks();
    expect(readHold(here, now.wall)).toEqual({ kind: "none" });
    const { path, until } = writeHold(here, request, now);
    expect(path).toBe(join(here.stateDir, "hold.json"));
    expect(until).toBe(plus(now.wall, hours(2)));
    expect(readHold(here, now.wall)).toEqual({
      kind: "held",
      until,
      since: now.wall,
      reason: "an upgrade",
    });
    expect(releaseHold(here)).toBe(true);
    expect(readHold(here, now.wall)).toEqual({ kind: "none" });
    expect(releaseHold(here)).toBe(false);
  });

  test("is written to the run directory if the state directory cannot be written", () => {
    const here = places();
    writeFileSync(here.stateDir, "a file in the way");
    const { path } = writeHold(here, request);
    expect(path).toBe(join(here.runDir, "hold.json"));
    expect(stateOf(here)).toMatchObject({ kind: "held", reason: "an upgrade" });
    expect(releaseHold(here)).toBe(true);
    expect(stateOf(here)).toEqual({ kind: "none" });
  });

  test.skipIf(process.getuid?.() !== 0)(
    "in the run directory is released although the state directory is mounted read-only",
    () => {
      const here = places();
      mkdirSync(here.stateDir);
      const mount = ["mount", "-t", "tmpfs", "-o", "ro,mode=700", "none", here.stateDir];
      expect(Bun.spawnSync(mount).exitCode).toBe(0);
      try {
        expect(writeHold(here, request).path).toBe(join(here.runDir, "hold.json"));
        expect(releaseHold(here)).toBe(true);
        expect(stateOf(here)).toEqual({ kind: "none" });
        expect(releaseHold(here)).toBe(false);
      } finally {
        Bun.spawnSync(["umount", "-l", here.stateDir]);
      }
    },
  );

  test("that cannot be read or removed is in force, and the other one is released", () => {
    const here = places();
    writeHold({ ...here, stateDir: here.runDir }, request);
    mkdirSync(join(here.stateDir, "hold.json"), { recursive: true });
    expect(stateOf(here)).toMatchObject({ kind: "held", until: null });
    expect(() => releaseHold(here)).toThrow(
      expect.objectContaining({
        kind: "write",
        message: expect.stringContaining(join(here.stateDir, "hold.json")),
      }),
    );
    expect(existsSync(join(here.runDir, "hold.json"))).toBe(false);
  });

  test("that cannot be written anywhere is an error", () => {
    const file = join(scratch(), "file");
    writeFileSync(file, "");
    expect(() => writeHold({ stateDir: file, runDir: file }, request)).toThrow(
      expect.objectContaining({ name: "HostError", kind: "write" }),
    );
  });

  test("in either directory is in force, the longer one reported, until a new one replaces both", () => {
    const here = places();
    const now = readClocks();
    const short = { ...request, reason: "short", length: minutes(1) };
    writeHold(here, short, now);
    writeHold({ ...here, stateDir: here.runDir }, { ...request, reason: "long" }, now);
    expect(readHold(here, now.wall)).toMatchObject({ reason: "long" });
    writeHold(here, short, now);
    expect(readHold(here, now.wall)).toMatchObject({ reason: "short" });
    expect(existsSync(join(here.runDir, "hold.json"))).toBe(false);
  });

  test.each<[string, keyof HoldPlaces, (path: string) => void]>([
    ["is empty", "stateDir", (path) => writeFileSync(path, "")],
    ["has no times", "stateDir", (path) => writeFileSync(path, "{}")],
    [
      "ends at no time",
      "stateDir",
      (path) => writeFileSync(path, '{"since":"2026-01-01T00:00:00Z","until":"tomorrow"}'),
    ],
    ["is a dangling link", "stateDir", (path) => symlinkSync(`${path}.absent`, path)],
    ["is a pipe", "stateDir", (path) => void Bun.spawnSync(["mkfifo", path])],
    ["is a dangling link beside it", "runDir", (path) => symlinkSync(`${path}.absent`, path)],
  ])("whose file %s is in force until it is released", (_, place, make) => {
    const here = places();
    const path = join(here[place], "hold.json");
    mkdirSync(here[place]);
    make(path);
    const state = stateOf(here);
    expect(state).toMatchObject({ kind: "held", until: null, since: null });
    // Also said of a hold that was just released.
    expect(state.kind === "held" && state.reason).toMatch(
      new RegExp(`^the hold ${path} (?:is invalid$|cannot be read: )`),
    );
    expect(releaseHold(here)).toBe(true);
    expect(stateOf(here)).toEqual({ kind: "none" });
  });
});

describe("the end of a hold", () => {
  const reboot = (span: Duration, uptime: Duration, change: Partial<Clocks> = {}) =>
    later(span, { bootId: "other", uptime, ...change });
  const ages = instant(0n);

  test.each<[string, Clocks, "held" | "none"]>([
    ["just before its end", later(duration(hours(2) - 1_000_000n)), "held"],
    ["at its end", later(hours(2)), "none"],
    [
      "after the wall clock jumped",
      later(minutes(1), { wall: plus(clocks.wall, hours(99)) }),
      "held",
    ],
    ["at its end, the wall clock set back meanwhile", later(hours(2), { wall: ages }), "none"],
    ["before its end after a reboot", reboot(hours(1), hours(9)), "held"],
    ["after its end after a reboot", reboot(hours(2), minutes(1)), "none"],
    [
      "after a reboot that set the wall clock back",
      reboot(hours(3), minutes(1), { wall: ages }),
      "held",
    ],
    [
      "after its end in a container that restarted, with the boot ID of its host",
      reboot(hours(2), minutes(1), { bootId: clocks.bootId }),
      "none",
    ],
    // Without boot IDs the wall clock alone counts.
    ["before its end, without boot IDs", reboot(hours(1), minutes(1), { bootId: "" }), "held"],
    ["after its end, without boot IDs", reboot(hours(2), minutes(1), { bootId: "" }), "none"],
  ])("%s", (_, at, expected) => {
    const bootId = at.bootId === "" ? "" : clocks.bootId;
    const { path } = writeHold(places(), request, { ...clocks, bootId });
    expect(judgeHold(readFileSync(path, "utf8"), path, at).kind).toBe(expected);
  });

  test("by the wall clock if the file does not say when it ends since the boot", () => {
    const { path } = writeHold(places(), request, clocks);
    const { untilUptimeMs: _, ...rest } = JSON.parse(readFileSync(path, "utf8"));
    const kindAt = (at: Clocks) => judgeHold(JSON.stringify(rest), path, at).kind;
    expect([kindAt(later(hours(1))), kindAt(later(hours(2)))]).toEqual(["held", "none"]);
  });
});
