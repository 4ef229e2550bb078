/** Observed time: how much time counts between two observations, and whether the machine was rebooted. */
import type { Ledger } from "../model/ledger.ts";
import type { MemoryLimits } from "../model/limits.ts";
import type { Clocks } from "../model/snapshot.ts";
import { type Watched, watched } from "../model/time.ts";

export interface Watch {
  /** Observed time at this observation. */
  readonly watched: Watched;
  /** The ledger was written during another boot. Never true of a fresh ledger, whose images are all new anyway. */
  readonly rebooted: boolean;
  /** Another process has observed since this observation began, so its clocks are later. */
  readonly overtaken: boolean;
}

/** Within one boot, observed time follows the time since the boot, which changes of the wall clock do not affect. */
export function watch(
  ledger: Pick<Ledger, "bootId" | "observedAt" | "uptime" | "watched">,
  clocks: Clocks,
  limits: Pick<MemoryLimits, "detectionPeriod">,
): Watch {
  if (ledger.observedAt === null)
    return { watched: ledger.watched, rebooted: false, overtaken: false };
  const named = ledger.bootId !== "" && clocks.bootId !== "";
  const sameBoot = named && ledger.bootId === clocks.bootId;
  const passed = sameBoot ? clocks.uptime - ledger.uptime : clocks.wall - ledger.observedAt;
  const most = 2n * limits.detectionPeriod;
  const elapsed = passed < 0n ? 0n : passed > most ? most : passed;
  return {
    watched: watched(ledger.watched + elapsed),
    // Without a boot ID, a time since the boot that went back shows a reboot.
    rebooted: named ? !sameBoot : clocks.uptime < ledger.uptime,
    overtaken: sameBoot && passed < 0n,
  };
}
