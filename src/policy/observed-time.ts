/** Observed time: how much time counts between two observations, and whether the machine was rebooted. */
import { isBootId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { MemoryLimits } from "../model/limits.ts";
import type { Clocks } from "../model/snapshot.ts";
import { hours, type ObservedTime, seconds, watched } from "../model/time.ts";
import { atLeastZero, smaller } from "../model/values.ts";

export interface ObservedClock {
  /** Observed time at this observation. */
  readonly watched: ObservedTime;
  /** The ledger was written during another boot. Never true of a fresh ledger, whose images are all new anyway. */
  readonly rebooted: boolean;
  /** Another process has observed since this observation began, so its clocks are later. */
  readonly overtaken: boolean;
}

/** Within one boot, observed time follows the time since it, which changes of the wall clock do not affect. */
export function observedTime(
  ledger: Pick<Ledger, "bootId" | "observedAt" | "uptime" | "watched">,
  clocks: Clocks,
  limits: Pick<MemoryLimits, "detectionPeriod">,
): ObservedClock {
  if (ledger.observedAt === null)
    return { watched: ledger.watched, rebooted: false, overtaken: false };
  const byUptime = clocks.uptime - ledger.uptime;
  const byWall = clocks.wall - ledger.observedAt;
  const after = (passed: bigint, rebooted: boolean): ObservedClock => ({
    watched: watched(ledger.watched + smaller(atLeastZero(passed), 2n * limits.detectionPeriod)),
    rebooted,
    overtaken: !rebooted && passed < 0n,
  });
  const apart = byUptime > byWall ? byUptime - byWall : byWall - byUptime;
  const isEarlier = byUptime < 0n && byWall < 0n && apart < seconds(1);
  if (clocks.bootId !== "" && clocks.bootId === ledger.bootId) {
    // A container's uptime (lxcfs) restarts with it, while the boot ID is its host's.
    return byUptime >= 0n || isEarlier ? after(byUptime, false) : after(0n, true);
  }
  if (isBootId(ledger.bootId) && isBootId(clocks.bootId)) return after(byWall, true);
  // The boot ID is hidden, so either clock may mislead: the machine was rebooted, or the wall clock was set.
  if (isEarlier) return after(byUptime, false);
  const isRebooted = byUptime < 0n || byWall < 0n || byWall >= clocks.uptime;
  return after(isRebooted ? byWall : smaller(byUptime, byWall), isRebooted);
}

/** A restart of the minimum age holds an image for at most this long, and begins no earlier after the previous one. */
export const AGE_RESTART_MAX = hours(1);

/** When the minimum age restarted, given that it is to restart now. */
export const ageRestart = (previous: ObservedTime | null, now: ObservedTime): ObservedTime =>
  previous === null || now - previous >= AGE_RESTART_MAX ? now : previous;
