/** Decides which events are news: a persistent condition is reported once, then again when it changes. */

import type { Compat } from "../model/limits.ts";
import type { ImageEnd } from "../model/outcome.ts";
import type { Event, LoopName } from "../model/pass.ts";
import type { ImagePlan } from "../model/plan.ts";
import type { Instant } from "../model/time.ts";
import { keyOf, type PressureVerdict } from "../policy/pressure/judge.ts";
import { humanBytes } from "../report/bytes.ts";
import { DiskNews, isRested } from "./disk-news.ts";
import type { Journal } from "./ports.ts";

/** Events about a state, distinguished by their text. */
const STATES: readonly Event["reason"][] = ["KeepRulesInvalid", "InvalidDiskCapacity"];
/** Events about a disk, whose text always differs because free bytes do. */
const OF_DISKS: readonly Event["reason"][] = ["ImageGCFutile", "FreeDiskSpaceFailed"];
/** Reported ghosts to remember; beyond this the oldest are dropped. */
const GHOSTS_MAX = 1_000;

export interface LoopEnd {
  /** `null` for success. */
  readonly error: string | null;
  /** In a row, with this one. */
  readonly failures: number;
  readonly at: Instant;
}

type AnnouncerJournal = Pick<Journal, "event" | "say" | "failed" | "succeeded">;

export class Announcer {
  readonly #journal: AnnouncerJournal;
  /** Messages of states that last. */
  readonly #lasting = new Map<Event["reason"], ReadonlySet<string>>();
  readonly #disks = new DiskNews();
  readonly #ghosts = new Set<string>();
  readonly #due = new Set<string>();
  /** When it was last reported that pressure cannot be relieved. */
  #unrelievedAt: Instant | undefined;

  constructor(journal: AnnouncerJournal) {
    this.#journal = journal;
  }

  /** Raises the events of a pass that are news, and returns them. */
  passed(events: readonly Event[], plan: ImagePlan, end?: ImageEnd): readonly Event[] {
    this.#disks.forgetChanged(plan);
    // Of the event on removals that give nothing back, the ledger knows whether it is news.
    const isEpisode = ({ reason }: Event) => reason === "ImageGCFutile" && end === "nothing-freed";
    const news = events.filter((event) => isEpisode(event) || this.#isNews(event, plan));
    for (const reason of STATES) {
      const those = events.filter((event) => event.reason === reason);
      this.#lasting.set(reason, new Set(those.map(({ message }) => message)));
    }
    for (const event of news) this.#journal.event(event);
    return news;
  }

  /**
   * Reports how a loop's run ended, by the kubelet's rule: the first failure in a row is only logged, each further one is
   * an event, and success after failure is reported.
   */
  loopEnded(name: LoopName, { error: message, failures, at }: LoopEnd): void {
    const topic = `loop/${name}`;
    if (message === null) {
      this.#journal.succeeded(topic, `The ${name} loop`);
      return;
    }
    this.#journal.failed(topic, `${name} failed: ${message}`);
    if (name === "image-gc" && failures > 1)
      this.#journal.event({ reason: "ImageGCFailed", message, at, passId: null });
    // These loops run every minute or few seconds, so a persistent failure is reported ever more rarely.
    if (!isPowerOfTwo(failures)) return;
    if (name === "container-gc")
      this.#journal.event({ reason: "ContainerGCFailed", message, at, passId: null });
    if (name === "pressure" && failures > 1 && isRested(this.#unrelievedAt, at)) {
      this.#unrelievedAt = at;
      const text = `Cannot relieve disk pressure: ${message}`;
      this.#journal.event({ reason: "ImageGCFailed", message: text, at, passId: null });
    }
  }

  /**
   * Raises `EvictionThresholdMet` when a threshold becomes due, once while the condition lasts. The kubelet raises it
   * with each attempt, for the one threshold that it acts on.
   */
  pressure(verdict: PressureVerdict, at: Instant, compat: Compat = "none"): void {
    const news =
      compat === "kubelet"
        ? verdict.due.slice(0, 1)
        : verdict.due.filter((one) => !this.#due.has(keyOf(one)));
    for (const one of verdict.due) this.#due.add(keyOf(one));
    if (!verdict.condition && this.#due.size > 0) {
      this.#due.clear();
      this.#journal.say(
        0,
        "disk pressure is over: every signal is above its threshold and minimum reclaim",
      );
    }
    for (const one of news) {
      const inodes = one.threshold.signal.endsWith(".inodesFree");
      const amount = (value: bigint): string => (inodes ? `${value} inodes` : humanBytes(value));
      this.#journal.event({
        reason: "EvictionThresholdMet",
        message: `Disk pressure: ${one.threshold.signal} at ${one.filesystem.mountpoint} is ${amount(one.available)}, below its threshold of ${amount(one.limit)}`,
        at,
        passId: null,
      });
    }
  }

  #isNews(event: Event, plan: ImagePlan): boolean {
    const { reason, message } = event;
    if (reason === "GhostImage") return this.#isNewGhost(message);
    if (OF_DISKS.includes(reason)) return this.#disks.isNews(event, plan);
    return this.#lasting.get(reason)?.has(message) !== true;
  }

  #isNewGhost(message: string): boolean {
    if (this.#ghosts.has(message)) return false;
    const [oldest] = this.#ghosts;
    if (this.#ghosts.size >= GHOSTS_MAX && oldest !== undefined) this.#ghosts.delete(oldest);
    this.#ghosts.add(message);
    return true;
  }
}

const isPowerOfTwo = (count: number): boolean => Number.isInteger(Math.log2(count));
