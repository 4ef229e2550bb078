import { describe, expect, test } from "bun:test";

import { emptyLedger } from "../../src/model/ledger.ts";
import type { Clocks } from "../../src/model/snapshot.ts";
import { type Duration, duration, hours, instant, minutes, watched } from "../../src/model/time.ts";
import { watch } from "../../src/policy/watch.ts";
import { NOW } from "../support/build/values.ts";

const limits = { detectionPeriod: minutes(5) };
const ledger = { bootId: "a", observedAt: NOW, uptime: hours(10), watched: watched(hours(3)) };

interface Passed {
  readonly wall: Duration;
  readonly uptime: Duration;
  readonly bootId?: string;
}

function after({ wall, uptime, bootId = "a" }: Passed): ReturnType<typeof watch> {
  const clocks: Clocks = {
    wall: instant(NOW + wall),
    uptime: (ledger.uptime + uptime) as Duration,
    bootId,
  };
  return watch(ledger, clocks, limits);
}

test("within one boot the time since the boot counts, whatever the wall clock does", () => {
  for (const wall of [minutes(5), hours(24 * 365), hours(-24 * 365)]) {
    expect(after({ wall, uptime: minutes(5) })).toEqual({
      watched: watched(hours(3) + minutes(5)),
      rebooted: false,
      overtaken: false,
    });
  }
});

test("an observation of the same moment is not overtaken, and one of a moment before is", () => {
  for (const [uptime, overtaken] of [
    [0n, false],
    [-1n, true],
  ] as const)
    expect(after({ wall: minutes(1), uptime: duration(uptime) }).overtaken).toBe(overtaken);
});

test("a gap counts as at most twice the detection period", () => {
  expect(after({ wall: hours(60), uptime: hours(60) }).watched).toBe(
    watched(hours(3) + minutes(10)),
  );
  expect(after({ wall: hours(60), uptime: hours(-9), bootId: "b" }).watched).toBe(
    watched(hours(3) + minutes(10)),
  );
});

describe("another boot", () => {
  test("counts the wall clock, and never backwards", () => {
    expect(after({ wall: minutes(3), uptime: hours(-9), bootId: "b" })).toMatchObject({
      watched: watched(hours(3) + minutes(3)),
      rebooted: true,
    });
    expect(after({ wall: hours(-1), uptime: hours(-9), bootId: "b" }).watched).toBe(
      watched(hours(3)),
    );
  });
});

describe("without a boot ID", () => {
  const unnamed = (passed: Passed) => after({ bootId: "process:other", ...passed });

  test.each([
    ["a lower uptime shows a reboot", { wall: minutes(3), uptime: hours(-9) }, true],
    [
      "a boot after the last observation shows a reboot",
      { wall: hours(60), uptime: hours(1) },
      true,
    ],
    ["a wall clock set back counts as a reboot", { wall: hours(-1), uptime: minutes(1) }, true],
    [
      "time that passed by both clocks shows no reboot",
      { wall: hours(9), uptime: hours(9) },
      false,
    ],
    [
      "clocks that both went back, by different times, show a reboot",
      { wall: minutes(-2), uptime: minutes(-1) },
      true,
    ],
    [
      "an observation overtaken by another process shows no reboot",
      { wall: minutes(-1), uptime: minutes(-1) },
      false,
    ],
  ] as const)("%s", (_, passed, rebooted) => {
    expect(unnamed(passed).rebooted).toBe(rebooted);
    expect(unnamed({ ...passed, bootId: "" }).rebooted).toBe(rebooted);
  });

  test("the clock that moved less counts between two processes", () => {
    expect(unnamed({ wall: hours(1), uptime: minutes(1) }).watched).toBe(
      watched(hours(3) + minutes(1)),
    );
    expect(unnamed({ wall: minutes(1), uptime: minutes(2) }).watched).toBe(
      watched(hours(3) + minutes(1)),
    );
  });

  test("a process follows its own time since the boot, whatever the wall clock does", () => {
    const bootId = "process:own";
    for (const wall of [hours(1), hours(-1), hours(24 * 365)])
      expect(
        watch(
          { ...ledger, bootId },
          { wall: instant(NOW + wall), uptime: (ledger.uptime + minutes(1)) as Duration, bootId },
          limits,
        ),
      ).toEqual({ watched: watched(hours(3) + minutes(1)), rebooted: false, overtaken: false });
  });
});

test("a new ledger starts at zero and has no boot", () => {
  const clocks: Clocks = { wall: NOW, uptime: hours(10), bootId: "a" };
  expect(watch(emptyLedger, clocks, limits)).toEqual({
    watched: watched(0n),
    rebooted: false,
    overtaken: false,
  });
});
