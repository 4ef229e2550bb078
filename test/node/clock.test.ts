import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";

import { instantToMs } from "../../src/model/time.ts";
import { bootIdIn, readClocks, timer } from "../../src/node/clock.ts";
import { put, scratch } from "../support/scratch.ts";

describe("readClocks", () => {
  test("reads the wall clock and the boot of this machine", () => {
    const before = Date.now();
    const clocks = readClocks();
    expect(instantToMs(clocks.wall)).toBeWithin(before, Date.now() + 1);
    expect(clocks.bootId).toBe(readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  });

  test.each(["garbage\n", ""])("treats a boot ID of %j as unreadable", (text) => {
    const proc = scratch();
    put(proc, "sys/kernel/random/boot_id", text);
    expect(bootIdIn(proc)).toStartWith("process:");
    expect(bootIdIn(scratch())).toStartWith("process:");
  });
});

test.each([20 / 86_400_000, 24, 25, 365, 300 * 365])(
  "a sleep of %d days lasts until then or its abort",
  async (days) => {
    const enough = new AbortController();
    const long = timer.sleep(Math.max(60_000, days * 86_400_000), enough.signal).then(() => "over");
    const short = timer.sleep(20, enough.signal).then(() => "still waiting");
    expect(await Promise.race([long, short])).toBe("still waiting");
    enough.abort();
    expect(await long).toBe("over");
    await timer.sleep(60_000, enough.signal);
  },
);
