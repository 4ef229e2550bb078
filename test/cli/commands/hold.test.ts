// crigc hold and crigc release: where they write, and what they print.

import { expect, test } from "bun:test";

import type { Openers } from "../../../src/agent/openers.ts";
import type { HoldState } from "../../../src/model/pass.ts";
import { type Instant, minutes, plus } from "../../../src/model/time.ts";
import { NOW } from "../../support/build/values.ts";
import { crigc } from "../world.ts";

interface Places {
  readonly state?: HoldState;
  readonly found?: boolean;
  readonly path?: string;
}

async function run(line: string, places: Places = {}) {
  const { state = { kind: "none" }, path = "/var/lib/crigc/hold.json" } = places;
  const set: Parameters<ReturnType<Openers["hold"]>["set"]>[0][] = [];
  let released = 0;
  const hold: Openers["hold"] = () => ({
    read: () => state,
    set: (request) => {
      set.push(request);
      return { path, until: plus(NOW, request.length) };
    },
    release: () => {
      released += 1;
      return places.found ?? state.kind === "held";
    },
  });
  return { ...(await crigc(line.split(" "), { open: { hold } })), set, released };
}

const held = (until: Instant | null, reason = "moving"): Places => ({
  state: { kind: "held", until, since: NOW, reason },
});

test("a hold lasts for the given duration, says when it ends, and stores its reason unchanged", async () => {
  expect(await run("hold 90m --reason disk\u001bswap")).toEqual({
    code: 0,
    stdout:
      "Garbage collection is on hold for 1h30m, until 2026-01-01T01:30:00Z (diskswap); crigc release ends it.\n",
    stderr: "",
    set: [{ length: minutes(90), reason: "disk\u001bswap" }],
    released: 0,
  });
});

test.each<[string, string, Places, number, RegExp]>([
  [
    "an earlier hold that could not be replaced lasts longer",
    "hold 1h",
    held(plus(NOW, minutes(300))),
    0,
    /^crigc: an earlier hold lasts longer: until 2026-01-01T05:00:00Z \(moving\)\n$/,
  ],
  ["an earlier hold ends before", "hold 1h", held(plus(NOW, minutes(5))), 0, /^$/],
  [
    "the hold will not survive a reboot",
    "hold 1h",
    { path: "/run/crigc/hold.json" },
    0,
    /the hold is stored in \/run\/crigc\/hold.json and ends with a reboot/,
  ],
  ["there is no time", "hold 0s", {}, 2, /invalid duration "0s": use 90m, 2h30m or 1d, above zero/],
  ["there is no unit", "hold 30", {}, 2, /crigc hold: invalid duration "30": use 90m/],
])("if %s, crigc %s says so", async (_, line, places, code, stderr) => {
  const ran = await run(line, places);
  expect(ran).toMatchObject({ code, stderr: expect.stringMatching(stderr) });
  expect(ran.set).toHaveLength(code === 0 ? 1 : 0);
});

test.each<[string, Places, string]>([
  ["no hold", {}, "No hold found.\n"],
  [
    "a hold in force",
    held(plus(NOW, minutes(30)), "disk swap"),
    "Hold released: it would have lasted until 2026-01-01T00:30:00Z (disk swap).\n",
  ],
  ["an expired hold", { found: true }, "The hold had expired.\n"],
  ["an unreadable hold", held(null, "it is torn"), "Hold released: it is torn.\n"],
])("release of %s says what it ended", async (_, places, stdout) => {
  expect(await run("release", places)).toMatchObject({ code: 0, stdout, released: 1 });
});
