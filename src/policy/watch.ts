/** Observed time: how much time counts between two observations, and whether the machine was rebooted. */
import type { Ledger } from "../model/ledger.ts";
import type { MemoryLimits } from "../model/limits.ts";
import { type Clocks, isBootId } from "../model/snapshot.ts";
import { hours, seconds, type Watched, watched } from "../model/time.ts";

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
  const byUptime = clocks.uptime - ledger.uptime;
  const byWall = clocks.wall - ledger.observedAt;
  const named = isBootId(ledger.bootId) && isBootId(clocks.bootId);
  // Both clocks of one earlier moment.
  const isEarlier = !named && byUptime < 0n && byWall < 0n && isNear(byUptime, byWall);
  const sameBoot = isEarlier || (clocks.bootId !== "" && ledger.bootId === clocks.bootId);
  // Without boot IDs either clock may mislead: the machine booted since, or the wall clock was set.
  const bootedSince = byUptime < 0n || byWall < 0n || byWall >= clocks.uptime;
  const rebooted = !sameBoot && (named || bootedSince);
  const passed = sameBoot || (!rebooted && byUptime < byWall) ? byUptime : byWall;
  const most = 2n * limits.detectionPeriod;
  const elapsed = passed < 0n ? 0n : passed > most ? most : passed;
  return {
    watched: watched(ledger.watched + elapsed),
    rebooted,
    overtaken: sameBoot && passed < 0n,
  };
}

const isNear = (a: bigint, b: bigint): boolean => a - b < seconds(1) && b - a < seconds(1);

/** A restart of the minimum age holds an image for at most this long, and begins no earlier after the previous one. */
export const AGE_RESTART_MAX = hours(1);

/** When the minimum age restarted, given that it is to restart now. */
export const ageRestart = (previous: Watched | null, now: Watched): Watched =>
  previous === null || now - previous >= AGE_RESTART_MAX ? now : previous;
