/** Decides which event is news: what was said once is not said again until it changes. */

import type { Event } from "../model/event.ts";
import type { Instant } from "../model/time.ts";
import { keyOf, type PressureVerdict } from "../policy/pressure.ts";
import { humanBytes } from "../report/bytes.ts";
import type { LoopName } from "./agent-state.ts";
import type { Verdict } from "./failure-rule.ts";
import type { Journal } from "./ports.ts";

/** Kinds that describe a state, with the words that tell one state from the next. */
const STATES: readonly Event["reason"][] = [
  "ImageGCFutile",
  "KeepRulesInvalid",
  "InvalidDiskCapacity",
];
/** Ghosts remembered as said; beyond it the oldest are forgotten. */
const GHOSTS_MAX = 1_000;

/** How one run of a loop ended. */
export interface LoopEnd {
  /** `null`: it went well. */
  readonly error: string | null;
  readonly at: Instant;
}

type AnnouncerJournal = Pick<Journal, "event" | "say" | "failed" | "succeeded">;

export class Announcer {
  readonly #journal: AnnouncerJournal;
  readonly #said = new Map<Event["reason"], string>();
  readonly #ghosts = new Set<string>();
  #due: ReadonlySet<string> = new Set();

  constructor(journal: AnnouncerJournal) {
    this.#journal = journal;
  }

  /**
   * Raises what is news among the events of a pass and returns it. `keys` tells states apart that word differently each time
   * (free bytes are never twice the same).
   */
  passed(events: readonly Event[], keys: ReadonlyMap<Event["reason"], string>): readonly Event[] {
    for (const reason of STATES) {
      if (!events.some((event) => event.reason === reason)) this.#said.delete(reason);
    }
    const news = events.filter((event) => this.#isNews(event, keys));
    for (const event of news) this.#journal.event(event);
    return news;
  }

  /** Says how a loop's run ended, by the kubelet's rule for failures. */
  loopEnded(name: LoopName, verdict: Verdict, ended: LoopEnd): void {
    const { error, at } = ended;
    const topic = `loop/${name}`;
    if (verdict.kind === "succeeded" || verdict.kind === "recovered") {
      this.#journal.succeeded(topic, `The ${name} loop`);
      return;
    }
    const message = error ?? "it failed without a message";
    this.#journal.failed(topic, `${name} failed: ${message}`);
    if (name === "container-gc")
      this.#journal.event({ reason: "ContainerGCFailed", message, at, passId: null });
    if (name === "image-gc" && verdict.kind === "failed-again") {
      this.#journal.event({ reason: "ImageGCFailed", message, at, passId: null });
    }
  }

  /** Raises `EvictionThresholdMet` when a threshold becomes due, once for as long as it stays so. */
  pressure(verdict: PressureVerdict, at: Instant): void {
    const news = verdict.due.filter((one) => !this.#due.has(keyOf(one)));
    const ended = this.#due.size > 0 && verdict.due.length === 0;
    this.#due = new Set(verdict.due.map(keyOf));
    if (ended)
      this.#journal.say(0, "disk pressure is over: every threshold has its minimum reclaim again");
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

  #isNews(event: Event, keys: ReadonlyMap<Event["reason"], string>): boolean {
    if (event.reason === "GhostImage") return this.#isNewGhost(event.message);
    if (!STATES.includes(event.reason)) return true;
    const key = keys.get(event.reason) ?? event.message;
    if (this.#said.get(event.reason) === key) return false;
    this.#said.set(event.reason, key);
    return true;
  }

  #isNewGhost(message: string): boolean {
    if (this.#ghosts.has(message)) return false;
    const [oldest] = this.#ghosts;
    if (this.#ghosts.size >= GHOSTS_MAX && oldest !== undefined) this.#ghosts.delete(oldest);
    this.#ghosts.add(message);
    return true;
  }
}
