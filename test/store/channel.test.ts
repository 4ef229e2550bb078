// Two processes with one state file, and state processes that fail or die at any request: nothing recorded is lost.

import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import fc from "fast-check";

import { imageId } from "../../src/model/ids.ts";
import type { Ledger } from "../../src/model/ledger.ts";
import { watched } from "../../src/model/time.ts";
import { openStore } from "../../src/store/open.ts";
import { StateFile } from "../../src/store/state-file.ts";
import type { StateChannel } from "../../src/store/state-request.ts";
import { aRecord } from "../support/build/values.ts";
import { now, read } from "./fixture.ts";
import { idOf, imageItem } from "./history-fixture.ts";

/** A disk would be waited for with each opening of the file. */
const memory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

type Fault = "none" | "refused" | "died before" | "died after";

/** A state process that meets the next of these faults with each request, and is started again after its death. */
function faultyChannel(directory: string, faults: Fault[]): StateChannel {
  const start = () => new StateFile({ directory, now: () => now });
  let file = start();
  let areRecordsRefused = false;
  return {
    ask: async (request, onRows) => {
      // What one process answers, and the death of it, are told in order.
      const fault = faults.shift() ?? "none";
      let isRefused = fault === "refused";
      // As the state file does: what was sent after records that were refused is refused, too.
      if (request.kind === "records")
        areRecordsRefused = isRefused ||= areRecordsRefused && !request.isFirst;
      if (isRefused) return { kind: "failed", error: "full", message: "full" };
      const reply = fault === "died before" ? null : file.handle(request, onRows);
      if (fault === "none" && reply !== null) return reply;
      file[Symbol.dispose]();
      file = start();
      throw new Error("the ledger process ended");
    },
    close: async () => file[Symbol.dispose](),
  };
}

const fault = fc.constantFrom<Fault[]>(
  "none",
  "none",
  "none",
  "refused",
  "died before",
  "died after",
);
const step = fc.record({
  by: fc.constantFrom(0, 1),
  does: fc.constantFrom("see", "remove", "flush", "refresh"),
  image: fc.integer({ min: 0, max: 3 }),
});

test("after any failed request every removal is recorded once, and both processes end with the ledger of the file", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 30 }),
      fc.tuple(fc.array(fault, { maxLength: 20 }), fc.array(fault, { maxLength: 20 })),
      async (steps, given) => {
        const faults = given.map((met) => [...met]);
        const directory = mkdtempSync(join(memory, "crigc-test-"));
        const open = (id: number) =>
          openStore({
            channel: faultyChannel(directory, faults[id] ?? []),
            directory,
            notify: () => undefined,
          });
        const stores = [await open(0), await open(1)];
        const removals: string[] = [];
        for (const [turn, { by, does, image }] of steps.entries()) {
          const store = stores[by];
          if (store === undefined) continue;
          const images = new Map(store.ledger().images);
          const time = watched(BigInt(turn + 1));
          const id = imageId(`sha256:${image}`);
          const next = (): Ledger => ({ ...store.ledger(), watched: time, bootId: "b", images });
          if (does === "see") {
            images.set(id, images.get(id) ?? aRecord({ firstSeenWatched: time }));
            store.saveLedger(next());
          } else if (does === "remove") {
            images.delete(id);
            store.saveLedger(next());
            store.imageDone(idOf(`p${turn}`), imageItem(turn, {}, id));
            removals.push(`p${turn} ${id}`);
          } else if (does === "flush") await store.flush();
          else await store.refresh();
        }
        // Then the disk is well again.
        for (const met of faults) met.length = 0;
        for (let round = 0; round < 3; round += 1)
          for (const store of stores) {
            await store.flush();
            await store.refresh();
          }
        const { reader } = read(directory);
        const recorded = reader.removals({ limit: 99 }).map((it) => `${it.passId} ${it.subject}`);
        expect(recorded.toSorted()).toEqual(removals.toSorted());
        const known = ({ watched: time, images }: Ledger) => [time, [...images.keys()].toSorted()];
        for (const store of stores) {
          expect(known(store.ledger())).toEqual(known(reader.ledger()));
          await store.close();
        }
        reader[Symbol.dispose]();
        rmSync(directory, { recursive: true });
      },
    ),
    { numRuns: 100 },
  );
}, 30_000);
