// Waiting by the real clock.

import { expect, test } from "bun:test";

import { timer } from "../../src/node/clock.ts";

const DAY_MS = 86_400_000;

test.each([[24], [25], [365], [300 * 365]])(
  "a pause of %d days does not end at once",
  async (days) => {
    const enough = new AbortController();
    const long = timer.sleep(days * DAY_MS, enough.signal).then(() => "over");
    const short = timer.sleep(20, enough.signal).then(() => "still waiting");
    expect(await Promise.race([long, short])).toBe("still waiting");
    enough.abort();
    // It ends with its signal, however long it would have lasted.
    expect(await long).toBe("over");
  },
);
