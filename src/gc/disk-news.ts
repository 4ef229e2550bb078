/** What was reported about each disk, so that it is reported again only when the disk or the bound changed. */

import type { Event } from "../model/pass.ts";
import type { Futility, ImagePlan } from "../model/plan.ts";
import { type Duration, type Instant, minutes, since } from "../model/time.ts";
import { apart, futilityDiffers } from "../policy/space/futility.ts";

/** The shortest time between two reports on a disk that changes all the time. */
const REST: Duration = minutes(10);

export class DiskNews {
  readonly #said = new Map<string, Futility | null>();
  readonly #saidAt = new Map<string, Instant>();

  /** Whether the event is news about a disk; it counts as reported from then on. */
  isNews({ reason, at }: Pick<Event, "reason" | "at">, plan: ImagePlan): boolean {
    // A budget is not about a disk.
    const states: readonly (readonly [string, Futility | null])[] =
      plan.futility.length === 0
        ? [[keyOf(reason, null), null]]
        : plan.futility.map((futility) => [keyOf(reason, futility), futility] as const);
    const news = states.filter(
      ([key, state]) => !this.#isSaid(key, state) && isRested(this.#saidAt.get(key), at),
    );
    for (const [key, state] of news) {
      this.#said.set(key, state);
      this.#saidAt.set(key, at);
    }
    return news.length > 0;
  }

  /** Drops what was reported of states that have changed since; if they return, they are news. */
  forgetChanged(plan: ImagePlan): void {
    for (const [key, state] of this.#said) {
      if (state === null ? isInBudget(plan) : isAnotherState(state, plan)) this.#said.delete(key);
    }
  }

  #isSaid(key: string, state: Futility | null): boolean {
    const before = this.#said.get(key);
    if (before === undefined) return false;
    return before === null || state === null || !futilityDiffers(before, state);
  }
}

/** Whether the last report is old enough, or the clock was set back since. */
export function isRested(toldAt: Instant | undefined, at: Instant): boolean {
  if (toldAt === undefined) return true;
  const span = at > toldAt ? since(at, toldAt) : since(toldAt, at);
  return span >= REST;
}

const isInBudget = ({ purpose, triggers }: ImagePlan): boolean =>
  purpose === "periodic" && !triggers.some(({ kind }) => kind === "budget");

function isAnotherState(state: Futility, { usage }: ImagePlan): boolean {
  const disk = usage.find(({ filesystem }) => filesystem.path === state.filesystem)?.filesystem;
  if (disk === undefined) return false;
  return state.inodes === undefined
    ? apart(state.breakdown.availableBytes, disk.availableBytes, disk.capacityBytes)
    : apart(state.inodes.free, disk.inodesFree, disk.inodes);
}

const keyOf = (reason: Event["reason"], futility: Futility | null): string =>
  futility === null
    ? reason
    : `${reason} ${futility.inodes === undefined ? "bytes" : "inodes"} ${futility.filesystem}`;
