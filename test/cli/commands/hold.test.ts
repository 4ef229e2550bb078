// crigc hold and crigc release: where they write, and what they print.

import { expect, test } from "bun:test";

import type { Openers } from "../../../src/engine/openers.ts";
import type { HoldState } from "../../../src/model/pass.ts";
import { type Instant, minutes, plus } from "../../../src/model/time.ts";
import { NOW } from "../../support/build/values.ts";
import { crigc } from "../world.ts";

interface Places {
  readonly state?: HoldState;
  readonly found?: boolean;
}

async function run(line: string, places: Places = {}) {
  const { state = { kind: "none" } } = places;
  const set: Parameters<ReturnType<Openers["hold"]>["set"]>[0][] = [];
  let released = 0;
  const hold: Openers["hold"] = () => ({
    read: () => state,
    set: (request) => {
      set.push(request);
      return plus(NOW, request.length);
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

test.each<[string, string, Places]>([
  // The reason is stored unchanged.
  ["is set with a reason", "hold 90m --reason disk\u001bswap", {}],
  ["is set, as a document", "hold 90m --reason swap -o json", {}],
  ["is released, as a document", "release -o json", {}],
  ["is refused without a time", "hold 0s", {}],
  ["is refused without a unit", "hold 30", {}],
  ["is released where there is none", "release", {}],
  ["is released while in force", "release", held(plus(NOW, minutes(30)), "disk swap")],
  ["is released after it expired", "release", { found: true }],
  ["is released though it is unreadable", "release", held(null, "it is torn")],
])("crigc tells of a hold that %s: %j", async (_, line, places) => {
  expect(await run(line, places)).toMatchSnapshot();
});
