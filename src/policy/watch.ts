/** The clock of observed time: how much time counts between two observations, and whether the machine was rebooted. */
import type { Ledger } from "../model/ledger.ts";
import type { MemoryLimits } from "../model/limits.ts";
import type { Clocks } from "../model/snapshot.ts";
import { type Duration, duration, type Watched, watched } from "../model/time.ts";

export interface Watch {
  /** The watched clock at this observation. */
  readonly watched: Watched;
  /** Since the observation before; 0 at the first one. */
  readonly elapsed: Duration;
  /** The ledger was written under another boot. Never true of a fresh ledger, whose images are all new anyway. */
  readonly rebooted: boolean;
  /** Another process has observed since this observation began: its clocks are the later ones. */
  readonly overtaken: boolean;
}

/**
 * Reads observed time. Within one boot it follows the time since the boot, which changes of the wall clock do not affect.
 */
export function watch(
  ledger: Pick<Ledger, "bootId" | "observedAt" | "uptime" | "watched">,
  clocks: Clocks,
  limits: Pick<MemoryLimits, "detectionPeriod">,
): Watch {
  if (ledger.observedAt === null) {
    return { watched: ledger.watched, elapsed: duration(0n), rebooted: false, overtaken: false };
  }
  const named = ledger.bootId !== "" && clocks.bootId !== "";
  const sameBoot = named && ledger.bootId === clocks.bootId;
  const passed = sameBoot ? clocks.uptime - ledger.uptime : clocks.wall - ledger.observedAt;
  const most = 2n * limits.detectionPeriod;
  const elapsed = passed < 0n ? 0n : passed > most ? most : passed;
  return {
    watched: watched(ledger.watched + elapsed),
    elapsed: duration(elapsed),
    // Where the boot has no name, time since the boot that went back tells it.
    rebooted: named ? !sameBoot : clocks.uptime < ledger.uptime,
    overtaken: sameBoot && passed < 0n,
  };
}
