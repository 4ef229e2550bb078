/** Waits for space that appears only after its removal was answered. */

import type { CommitFilesystem, Timer } from "../model/ports.ts";
import { TELLING_BYTES } from "../policy/space/nothing-freed.ts";
import type { Meter } from "./meter.ts";
import type { PassDisk } from "./pass-disk.ts";
import type { Steps } from "./steps.ts";

/** The rest is left to the next pass. */
const WAIT_PASS_MS = 60_000;
/** Each of these has to bring something, or the wait ends. */
const STEP_MS = 500;
const POLL_MS = 100;

export interface SettleOptions {
  readonly timer: Timer;
  readonly commit: CommitFilesystem;
  readonly steps: Pick<Steps, "wait">;
}

/** The waits of one pass. */
export class Settler {
  readonly #options: SettleOptions;
  readonly #meter: Meter;
  readonly #signal: AbortSignal;
  #waitedMs = 0;
  /** A wait showed that nothing comes late. */
  isPrompt = false;
  /** Whether the time of the pass ran out while space still appeared. */
  isExhausted = false;

  constructor(options: SettleOptions, meter: Meter, signal: AbortSignal) {
    this.#options = options;
    this.#meter = meter;
    this.#signal = signal;
  }

  /** Waits while space appears and it is not enough. */
  async wait(isEnough: () => boolean): Promise<void> {
    const startNs = this.#options.timer.monotonicNs();
    if (this.#waitedMs >= WAIT_PASS_MS) return;
    await this.#options.steps.wait("space", () => this.#untilStill(isEnough));
    this.#waitedMs += this.#sinceMs(startNs);
  }

  async #untilStill(isEnough: () => boolean): Promise<void> {
    const { timer, commit } = this.#options;
    const meter = this.#meter;
    const endNs = timer.monotonicNs() + BigInt(WAIT_PASS_MS - this.#waitedMs) * 1_000_000n;
    const first = availableOf(meter.disks);
    const committed = meter.committed();
    for (const path of committed) await commit(path);
    await meter.read();
    while (!isEnough()) {
      const before = availableOf(meter.disks);
      const stepNs = timer.monotonicNs();
      while (this.#sinceMs(stepNs) < STEP_MS) {
        if (this.#signal.aborted) return;
        await timer.sleep(POLL_MS, this.#signal);
        await meter.read();
        if (isEnough() || this.#roseSince(before) <= -TELLING_BYTES) return;
      }
      if (this.#roseSince(before) < TELLING_BYTES) {
        this.isPrompt = committed.length === 0 && this.#roseSince(first) < TELLING_BYTES;
        return;
      }
      this.isExhausted = timer.monotonicNs() >= endNs;
      if (this.isExhausted) return;
    }
  }

  /** On the filesystem where most appeared. */
  #roseSince(before: ReadonlyMap<PassDisk, bigint>): bigint {
    const rises = [...before].map(([disk, bytes]) => disk.availableBytes - bytes);
    return rises.reduce((most, one) => (one > most ? one : most));
  }

  #sinceMs(ns: bigint): number {
    return Number((this.#options.timer.monotonicNs() - ns) / 1_000_000n);
  }
}

/** What each disk has available, as last measured. */
export const availableOf = (disks: readonly PassDisk[]): ReadonlyMap<PassDisk, bigint> =>
  new Map(disks.map((disk) => [disk, disk.availableBytes]));
