/** The machine's clocks (the wall clock, the time since the boot, the boot ID), and waiting in real time. */

import { setTimeout } from "node:timers/promises";

import { PROCESS_BOOT } from "../model/ids.ts";
import type { Timer } from "../model/ports.ts";
import { type Clocks } from "../model/snapshot.ts";
import { duration, type Instant, instantFromMs, TIMER_MS_MAX } from "../model/time.ts";
import { once } from "../model/values.ts";
import { procText } from "./files.ts";
import { monotonicNs } from "./libc.ts";

export const wallClock = (): Instant => instantFromMs(Date.now());

export const readClocks = (): Clocks => ({
  wall: wallClock(),
  uptime: duration(monotonicNs()),
  bootId: bootId(),
});

/** A process never sees another boot than its own. */
const bootId = once(() => bootIdIn("/proc"));

/** `proc`: where /proc is mounted. Without it, an ID of this process: the clocks then have to tell boots apart. */
export function bootIdIn(proc: string): string {
  const text = procText(`${proc}/sys/kernel/random/boot_id`).trim();
  return /^[0-9a-f-]{32,36}$/.test(text) ? text : `${PROCESS_BOOT}${crypto.randomUUID()}`;
}

/** "" if the machine has none: a container image may lack it. */
export function machineId(path = "/etc/machine-id"): string {
  const text = procText(path).trim();
  return /^[0-9a-f]{32}$/.test(text) ? text : "";
}

export const timer: Timer = {
  monotonicNs: () => BigInt(Bun.nanoseconds()),
  sleep: async (ms, signal) => {
    let leftMs = ms;
    do {
      await setTimeout(Math.min(leftMs, TIMER_MS_MAX), null, { signal }).catch(() => undefined);
      leftMs -= TIMER_MS_MAX;
    } while (leftMs > 0 && !signal.aborted);
  },
};
