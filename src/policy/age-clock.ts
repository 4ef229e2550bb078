/** The clock of all ages: the machine's uptime, summed in the ledger from look to look, and never the wall clock. */

import { isBootId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Clocks } from "../model/snapshot.ts";
import { hours, type ObservedTime, watched } from "../model/time.ts";
import { atLeastZero, smaller } from "../model/values.ts";

/** A longer time without a look counts as this much. */
const GAP_MAX = hours(24);

/** A new beginning of the minimum age holds an image for at most this long. */
export const AGE_RESTART_MAX = hours(1);

/**
 * Counts the uptime since the last look of the same boot, or since the boot if the look was in an earlier one; boots
 * between them count nothing.
 */
export function ageNow(
  ledger: Pick<Ledger, "bootId" | "observedAt" | "uptime" | "watched">,
  { bootId, uptime }: Pick<Clocks, "bootId" | "uptime">,
): ObservedTime {
  if (ledger.observedAt === null) return ledger.watched;
  const passed = isSameBoot(ledger, { bootId, uptime }) ? uptime - ledger.uptime : uptime;
  return watched(ledger.watched + smaller(atLeastZero(passed), GAP_MAX));
}

/** Where the boot ID is hidden, an uptime that is not lower counts as of the same boot: then less has passed. */
export const isSameBoot = (
  ledger: Pick<Ledger, "bootId" | "uptime">,
  { bootId, uptime }: Pick<Clocks, "bootId" | "uptime">,
): boolean =>
  bootId === ledger.bootId ||
  (!(isBootId(bootId) && isBootId(ledger.bootId)) && uptime >= ledger.uptime);
