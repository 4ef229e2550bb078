// Changes the ledger of a state directory, so that a test need not wait for time to pass.

import type { Ledger } from "../../src/model/ledger.ts";
import {
  type Duration,
  duration,
  instant,
  instantFromMs,
  seconds,
  watched,
} from "../../src/model/time.ts";
import { openStore } from "../../src/store/open.ts";
import { directChannel } from "./direct-channel.ts";

/** Leaves the ledger as it would be had the node been observed for so much longer. */
export const observedFor = (stateDir: string, time: Duration): Promise<void> =>
  changeLedger(stateDir, ({ watched: before }) => ({ watched: watched(before + time) }));

/**
 * A pod is deleted when two passes this far apart lack it: as if the last one had been so much earlier, for
 * processes that go by the clocks too.
 */
export const passesApart = (stateDir: string): Promise<void> =>
  changeLedger(stateDir, ({ observedAt, uptime, watched: before }) => ({
    watched: watched(before + seconds(10)),
    observedAt: observedAt === null ? null : instant(observedAt - seconds(10)),
    uptime: duration(uptime - seconds(10)),
  }));

/** As if the last pass had left it so. */
export async function changeLedger(
  stateDir: string,
  changed: (ledger: Ledger) => Partial<Ledger>,
): Promise<void> {
  const store = await openStore({
    channel: directChannel({
      directory: stateDir,
      now: () => instantFromMs(Date.now()),
    }),
    directory: stateDir,
    notify: (message) => {
      throw new Error(message);
    },
  });
  const ledger = store.ledger();
  store.saveLedger({ ...ledger, ...changed(ledger) });
  if (!(await store.flush())) throw new Error(`the ledger in ${stateDir} was not written`);
  await store.close();
}
