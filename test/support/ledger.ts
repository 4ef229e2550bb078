// Changes the ledger of a state directory, so that a test need not wait for time to pass.

import { join } from "node:path";

import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import { type Duration, duration, seconds, totalUptime } from "../../src/model/time.ts";
import { ledgerText, readLedger, writeLedger } from "../../src/state/files.ts";

/** Leaves the ledger as it would be had the node been observed for so much longer. */
export const observedFor = (stateDir: string, time: Duration): Promise<void> =>
  changeLedger(stateDir, ({ totalUptime: before }) => ({
    totalUptime: totalUptime(before + time),
  }));

/**
 * A pod is deleted when two passes this far apart lack it: as if the last one had been so much earlier, for
 * processes that go by the clocks too.
 */
export const passesApart = (stateDir: string): Promise<void> =>
  changeLedger(stateDir, ({ uptime, totalUptime: before }) => ({
    totalUptime: totalUptime(before + seconds(10)),
    uptime: duration(uptime - seconds(10)),
  }));

/** As if the last process had left it so. */
export async function changeLedger(
  stateDir: string,
  changed: (ledger: Ledger) => Partial<Ledger>,
): Promise<void> {
  const places = {
    directory: stateDir,
    runDirectory: stateDir,
    userId: process.getuid?.() ?? 0,
    machineId: "",
  };
  const path = join(stateDir, "ledger.json");
  const content = readLedger(path, places);
  const before = content?.ledger ?? emptyLedger;
  await writeLedger(
    path,
    ledgerText({
      closed: true,
      lastRecord: 0,
      machineId: "",
      ...content,
      ledger: { ...before, ...changed(before) },
    }),
  );
}
