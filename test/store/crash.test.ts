import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";

import { imageId } from "../../src/model/ids.ts";
import { forgetImages } from "../../src/policy/remember.ts";
import { openStore } from "../../src/store/open.ts";
import type { StateChannel } from "../../src/store/state-request.ts";
import { directChannel } from "../support/direct-channel.ts";
import { scratch } from "../support/scratch.ts";
import { ledgerOf, now, read, write } from "./fixture.ts";
import { idOf, imageItem } from "./history-fixture.ts";

/** Kills a writer after so many turns or bytes of output; the last turn that it said was on disk. */
async function killedWriter(directory: string, afterTurns: number): Promise<number> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "crash-writer.ts"), directory], {
    stdout: "pipe",
    stderr: "inherit",
  });
  let said = "";
  for await (const chunk of child.stdout) {
    said += new TextDecoder().decode(chunk);
    if (said.split("\n").length > afterTurns) child.kill("SIGKILL");
  }
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
  return Number(said.slice(0, said.lastIndexOf("\n")).split("\n").at(-1));
}

describe("SIGKILL at any instant", () => {
  test.each([1, 3, 20, 21, 61, 150])(
    "after turn %i loses at most the observation that was being written, and no removal before it",
    async (afterTurns) => {
      const directory = scratch();
      const last = await killedWriter(directory, afterTurns);
      expect(last).toBeGreaterThanOrEqual(afterTurns);
      const { reader, notices } = read(directory);
      const seen = Number(reader.ledger().watched);
      expect(seen).toBeGreaterThanOrEqual(last);
      expect(seen).toBeLessThanOrEqual(last + 2);
      expect(reader.ledger()).toEqual(ledgerOf(200 + (seen % 50), seen));
      const recorded = reader.removals({ limit: 1000 }).map((it) => Number(it.at - now));
      expect(recorded.length).toBeGreaterThanOrEqual(last);
      expect(recorded.length).toBeLessThanOrEqual(last + 2);
      expect(recorded).toEqual(Array.from(recorded, (_, index) => recorded.length - index));
      reader[Symbol.dispose]();
      const next = await write(directory);
      expect(next.store.ledger()).toEqual(ledgerOf(200 + (seen % 50), seen));
      // With the pass lock it takes notice of the killed one.
      await next.store.refresh();
      await next.store.close();
      expect([...notices, ...next.notices]).toEqual([]);
      expect(readdirSync(directory)).toEqual(["crigc.db", "crigc.db-closed"]);
    },
  );

  test("after the record of a removal was sent leaves nothing of that image in the ledger, and everything of the others", async () => {
    const directory = scratch();
    const file = directChannel({ directory, now: () => now });
    let sent = 0;
    // What a pipe took before the process died: nothing after the first records.
    const channel: StateChannel = {
      ...file,
      ask: async (request, onRows) => {
        if (request.kind === "records" || sent > 0) sent += 1;
        return await (sent > 1 ? new Promise<never>(() => undefined) : file.ask(request, onRows));
      },
    };
    const store = await openStore({ channel, directory, notify: () => undefined });
    store.saveLedger(ledgerOf(4, 1));
    expect(await store.flush()).toBe(true);
    const [gone, kept] = [...ledgerOf(2).images.keys()];
    store.saveLedger(forgetImages(store.ledger(), [gone ?? imageId("")]));
    for (const id of [gone, kept]) store.imageDone(idOf("p"), imageItem(0, {}, id));
    const removals = () => read(directory).reader.removals({ limit: 9 });
    while (removals().length < 2) await Bun.sleep(1);
    const left = [...ledgerOf(4).images.keys()].slice(1);
    expect([...read(directory).reader.ledger().images.keys()]).toEqual(left);
  });
});
