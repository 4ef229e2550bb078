/** What the passes of one process know of those before. Nothing of it outlives the process. */

import type { Timer } from "../model/ports.ts";
import { type Duration, duration, hours } from "../model/time.ts";
import { smaller } from "../model/values.ts";
import type { Streak } from "../policy/space.ts";

const A_DAY = hours(24);
const AN_HOUR = hours(1);

interface Pause {
  readonly untilNs: bigint;
  readonly ns: bigint;
  readonly availableBytes: bigint;
}

export class PassMemory {
  readonly #timer: Pick<Timer, "monotonicNs">;
  readonly #last = new Map<string, bigint>();
  /** How often they were still listed. */
  readonly #ghosts = new Map<string, number>();
  /** By device. */
  readonly #pauses = new Map<string, Pause>();
  /** By device, removals in a row that gave nothing back, also of earlier passes: each may remove only one or two. */
  readonly streaks = new Map<string, Streak | null>();
  #noWaitUntilNs = 0n;
  /** Pods that a pass has waited for while the present disk pressure lasts. */
  readonly awaited = new Set<string>();

  constructor(timer: Pick<Timer, "monotonicNs">) {
    this.#timer = timer;
  }

  /** What could not be removed goes last for a day. */
  notRemoved(id: string): void {
    this.#last.set(id, this.#now() + A_DAY);
  }

  removed(id: string): void {
    this.#last.delete(id);
    this.#ghosts.delete(id);
  }

  /** Still listed after its removal was answered; `true` the second time: a pull may have crossed the first. */
  isSecondGhost(id: string): boolean {
    const times = (this.#ghosts.get(id) ?? 0) + 1;
    this.#ghosts.set(id, times);
    return times === 2;
  }

  last(): ReadonlySet<string> {
    for (const [id, untilNs] of this.#last) if (untilNs <= this.#now()) this.#last.delete(id);
    return new Set(this.#last.keys());
  }

  /** Removals gave nothing back: the pause doubles while space does not fall. */
  gaveNothing(device: string, availableBytes: bigint, period: Duration): void {
    const before = this.#pauses.get(device);
    const doubles = before !== undefined && availableBytes >= before.availableBytes;
    const ns = doubles ? before.ns * 2n : BigInt(period);
    const most = smaller(ns, A_DAY);
    this.#pauses.set(device, { untilNs: this.#now() + most, ns: most, availableBytes });
  }

  gaveBack(device: string): void {
    this.#pauses.delete(device);
  }

  /** How long no image is removed on these devices. */
  paused(): ReadonlyMap<string, Duration> {
    const left = [...this.#pauses].map(
      ([device, { untilNs }]) => [device, duration(untilNs - this.#now())] as const,
    );
    return new Map(left.filter(([, remaining]) => remaining > 0n));
  }

  waitedInVain(): void {
    this.#noWaitUntilNs = this.#now() + AN_HOUR;
  }

  mayWait(): boolean {
    return this.#now() >= this.#noWaitUntilNs;
  }

  #now(): bigint {
    return this.#timer.monotonicNs();
  }
}
