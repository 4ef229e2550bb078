// Lets time pass for a node's images without waiting for it.

import { type Duration, instantFromMs, seconds, watched } from "../../../src/model/time.ts";
import { stateFiles } from "../../../src/node/state-files.ts";
import { openStore } from "../../../src/store/open.ts";
import { directChannel } from "../../../src/store/state-file.ts";

/** Leaves the ledger as it would be had the node been observed for so much longer. */
export async function observedFor(stateDir: string, time: Duration): Promise<void> {
  const store = await openStore({
    channel: directChannel({
      directory: stateDir,
      files: stateFiles,
      now: () => instantFromMs(Date.now()),
    }),
    directory: stateDir,
    notify: ({ message }) => {
      throw new Error(message);
    },
  });
  const ledger = store.ledger();
  store.saveLedger({ ...ledger, watched: watched(ledger.watched + time) });
  if (!(await store.flush())) throw new Error(`the ledger in ${stateDir} was not written`);
  await store.close();
}

/** A pod is deleted when two passes this far apart lack it. */
export const passesApart = (stateDir: string): Promise<void> => observedFor(stateDir, seconds(10));
