import { expect, test } from "bun:test";

import { type Duration, duration, hours, instant, totalUptime } from "../../src/model/time.ts";
import { ageNow } from "../../src/policy/remember.ts";

const look = (bootId: string, count: number) => ({
  bootId,
  observedAt: instant(1n),
  uptime: hours(count),
  totalUptime: totalUptime(hours(100)),
});
const now = (bootId: string, count: number) => ({ bootId, uptime: hours(count) });

test.each<[string, Parameters<typeof ageNow>, Duration]>([
  ["since a look in the same boot", [look("b1", 5), now("b1", 7)], hours(2)],
  ["since the boot, if the look was in another one", [look("b1", 5), now("b2", 7)], hours(7)],
  ["a day at most", [look("b1", 5), now("b1", 50)], hours(24)],
  ["nothing if the uptime is lower", [look("b1", 5), now("b1", 4)], duration(0n)],
  [
    "nothing before the first look",
    [{ ...look("b1", 5), observedAt: null }, now("b1", 7)],
    duration(0n),
  ],
  ["as in one boot where its ID is hidden", [look("process:1", 5), now("process:2", 7)], hours(2)],
  ["as in one boot where its ID is hidden now", [look("b1", 5), now("process:2", 7)], hours(2)],
  [
    "nothing where it is hidden and the uptime the same",
    [look("process:1", 5), now("process:2", 5)],
    duration(0n),
  ],
  [
    "since the boot where it is hidden and the uptime lower",
    [look("process:1", 5), now("process:2", 4)],
    hours(4),
  ],
])("ages grow by the uptime %s", (_, [ledger, clocks], passed) => {
  expect(ageNow(ledger, clocks)).toBe(totalUptime(hours(100) + passed));
});
