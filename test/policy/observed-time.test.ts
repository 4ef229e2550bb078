import { describe, expect, test } from "bun:test";

import {
  type Duration,
  duration,
  hours,
  instant,
  minutes,
  seconds,
  watched,
} from "../../src/model/time.ts";
import { type ObservedClock, observedTime } from "../../src/policy/observed-time.ts";
import { NOW } from "../support/build/values.ts";

const limits = { detectionPeriod: minutes(5) };
const uptime = hours(10);
const NS = 1n;
const MINUTE: bigint = minutes(1);
const SECOND: bigint = seconds(1);

/** What counts once both clocks have moved, from a ledger of boot `before` to an observation of boot `bootId`. */
function after(
  wall: bigint,
  sinceBoot: bigint,
  { before = "a", bootId = before }: { readonly before?: string; readonly bootId?: string } = {},
): Omit<ObservedClock, "watched"> & { readonly counts: Duration } {
  const ledger = { bootId: before, observedAt: NOW, uptime, watched: watched(hours(3)) };
  const clocks = {
    wall: instant(NOW + wall),
    uptime: duration(uptime + sinceBoot),
    bootId,
  };
  const { watched: now, ...rest } = observedTime(ledger, clocks, limits);
  return { counts: duration(now - ledger.watched), ...rest };
}

const same = { rebooted: false, overtaken: false };
const rebooted = { rebooted: true, overtaken: false };
const overtaken = { counts: duration(0n), rebooted: false, overtaken: true };

describe.each(["a", "process:own"])("within boot %s", (before) => {
  test.each([
    ["the time since the boot counts", minutes(5), { counts: minutes(5), ...same }],
    [
      "a gap counts as at most twice the detection period",
      hours(60),
      { counts: minutes(10), ...same },
    ],
    ["an observation of the same moment counts nothing", 0n, { counts: duration(0n), ...same }],
  ] as const)("%s, whatever the wall clock does", (_, sinceBoot, expected) => {
    for (const wall of [minutes(5), hours(24 * 365), hours(-24 * 365)])
      expect(after(wall, sinceBoot, { before })).toEqual(expected);
  });

  test("an observation of an earlier moment is overtaken", () => {
    for (const [wall, sinceBoot] of [
      [-NS, -NS],
      [-MINUTE, -MINUTE],
    ] as const)
      expect(after(wall, sinceBoot, { before })).toEqual(overtaken);
  });

  test("an uptime that starts anew is of a container that restarted, and nothing counts", () => {
    for (const wall of [minutes(3), hours(-1)])
      expect(after(wall, hours(-9), { before })).toEqual({ counts: duration(0n), ...rebooted });
  });
});

test("after another boot the wall clock counts, within the same limit and never backwards", () => {
  for (const sinceBoot of [hours(-9), hours(1)]) {
    const boots = { bootId: "b" };
    expect(after(minutes(3), sinceBoot, boots)).toEqual({ counts: minutes(3), ...rebooted });
    expect(after(hours(60), sinceBoot, boots)).toEqual({ counts: minutes(10), ...rebooted });
    expect(after(hours(-1), sinceBoot, boots)).toEqual({ counts: duration(0n), ...rebooted });
  }
  // Not one of an earlier moment: boot IDs are certain.
  expect(after(-1n, -1n, { bootId: "b" })).toEqual({ counts: duration(0n), ...rebooted });
});

describe.each([
  { before: "a", bootId: "process:other" },
  { before: "process:one", bootId: "process:other" },
  { before: "process:one", bootId: "b" },
  { before: "", bootId: "" },
])("with a hidden boot ID ($before, $bootId)", (boots) => {
  test.each([
    ["a lower uptime shows a reboot", minutes(3), hours(-9), minutes(3), rebooted],
    ["an uptime lower by 1 ns shows a reboot", 0n, -1n, 0n, rebooted],
    ["clocks that did not move show no reboot", 0n, 0n, 0n, same],
    [
      "a boot after the last observation shows a reboot",
      hours(60),
      hours(1),
      minutes(10),
      rebooted,
    ],
    ["a boot at the last observation shows a reboot", hours(10), 0n, minutes(10), rebooted],
    ["a boot just before the last observation shows none", hours(10) - NS, 0n, 0n, same],
    ["a wall clock set back counts as a reboot", -1n, minutes(1), 0n, rebooted],
    ["so does one set back by 1 ns while the uptime stands still", -1n, 0n, 0n, rebooted],
    ["time that passed by both clocks shows no reboot", hours(9), hours(9), minutes(10), same],
    ["the clock that moved less counts: uptime", hours(1), minutes(1), minutes(1), same],
    ["the clock that moved less counts: wall clock", minutes(1), minutes(2), minutes(1), same],
    ["clocks that went back by different times show a reboot", -2n * MINUTE, -MINUTE, 0n, rebooted],
    ["wall clock back by 1 s more: a reboot", -MINUTE - SECOND, -MINUTE, 0n, rebooted],
    ["uptime back by 1 s more: a reboot", -MINUTE, -MINUTE - SECOND, 0n, rebooted],
  ] as const)("%s", (_, wall, sinceBoot, counts, expected) => {
    expect(after(wall, sinceBoot, boots)).toEqual({ counts: duration(counts), ...expected });
  });

  test("clocks that went back by nearly the same time show that another process was faster", () => {
    for (const [wall, sinceBoot] of [
      [-MINUTE, -MINUTE],
      [-SECOND, -NS],
      [-NS, -SECOND],
    ] as const)
      expect(after(wall, sinceBoot, boots)).toEqual(overtaken);
  });
});
