// crigc hold and crigc release: where they write, and what they print.

import { describe, expect, test } from "bun:test";

import type { Openers } from "../../../src/agent/openers.ts";
import type { HoldState } from "../../../src/model/pass.ts";
import { fromRfc3339, instant, minutes, plus } from "../../../src/model/time.ts";
import { crigc, type Ran } from "../world.ts";

const NOW = fromRfc3339("2026-01-15T12:00:00Z") ?? instant(0n);

interface Places {
  readonly state?: HoldState;
  readonly found?: boolean;
  readonly path?: string;
}

type HoldPlaces = ReturnType<Openers["hold"]>;

async function run(argv: readonly string[], places: Places = {}) {
  const set: Parameters<HoldPlaces["set"]>[0][] = [];
  let released = 0;
  const hold = (): HoldPlaces => ({
    read: () => places.state ?? { kind: "none" },
    set: (request) => {
      set.push(request);
      return {
        path: places.path ?? "/var/lib/crigc/hold.json",
        until: plus(NOW, request.length),
      };
    },
    release: () => {
      released += 1;
      return places.found ?? places.state?.kind === "held";
    },
  });
  const ran: Ran = await crigc(argv, { open: { hold } });
  return { ...ran, set, released };
}

describe("hold", () => {
  test("lasts for the given duration, says when it ends, and stores its reason unchanged", async () => {
    const { code, stdout, stderr, set } = await run(["hold", "90m", "--reason", "disk\u001b swap"]);
    expect(set).toEqual([{ length: minutes(90), reason: "disk\u001b swap" }]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe(
      "Garbage collection is on hold for 1h30m, until 2026-01-15T13:30:00Z (disk swap); crigc release ends it.\n",
    );
  });

  test("says if an earlier hold that could not be replaced lasts longer", async () => {
    const until = plus(NOW, minutes(300));
    const state = { kind: "held", until, since: NOW, reason: "moving" } as const;
    const longer = await run(["hold", "1h"], { state });
    expect(longer).toMatchObject({
      code: 0,
      stderr: "crigc: an earlier hold lasts longer: until 2026-01-15T17:00:00Z (moving)\n",
    });
    const shorter = await run(["hold", "1h"], {
      state: { ...state, until: plus(NOW, minutes(5)) },
    });
    expect(shorter.stderr).toBe("");
  });

  test.each([
    ["0s", 'invalid duration "0s": use 90m, 2h30m or 1d, above zero'],
    ["30", 'invalid duration "30": use 90m'],
  ])("refuses %s and sets no hold", async (text, words) => {
    const { code, stderr, set } = await run(["hold", text]);
    expect({ code, set }).toEqual({ code: 2, set: [] });
    expect(stderr).toContain(`crigc hold: ${words}`);
  });

  test("says where the hold is stored if it will not survive a reboot", async () => {
    const { code, stderr } = await run(["hold", "1h"], { path: "/run/crigc/hold.json" });
    expect(code).toBe(0);
    expect(stderr).toContain("the hold is stored in /run/crigc/hold.json and ends with a reboot");
  });
});

describe("release", () => {
  const held: HoldState = {
    kind: "held",
    until: plus(NOW, minutes(30)),
    since: NOW,
    reason: "disk swap",
  };

  test.each<[string, Places, string]>([
    ["no hold", {}, "No hold found.\n"],
    [
      "a hold in force",
      { state: held },
      "Hold released: it would have lasted until 2026-01-15T12:30:00Z (disk swap).\n",
    ],
    ["an expired hold", { found: true }, "The hold had expired.\n"],
    [
      "an unreadable hold",
      { state: { ...held, until: null, reason: "it cannot be understood" } },
      "Hold released: it cannot be understood.\n",
    ],
  ])("of %s says what it ended", async (_what, places, words) => {
    const { code, stdout, released } = await run(["release"], places);
    expect({ code, stdout, released }).toEqual({ code: 0, stdout: words, released: 1 });
  });
});
