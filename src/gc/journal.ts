/**
 * What passes and loops tell to history, log, metrics and status. A condition is reported when it begins, when its words
 * change in more than numbers, and when it ends.
 */

import type { PassId } from "../model/ids.ts";
import {
  type Event,
  type ImageItem,
  isFailed,
  isGone,
  type Pass,
  type PassStart,
  type PodItem,
  removedId,
} from "../model/pass.ts";
import type { Level, Timer } from "../model/ports.ts";
import type { Seen } from "../model/reports.ts";
import { duration } from "../model/time.ts";
import { unmatchedWords } from "../report/keep.ts";
import { containerPassWords, imagePassWords, itemName, resultWords } from "../report/pass-words.ts";
import { humanDuration } from "../report/words.ts";

/** Nothing here throws or waits for a disk. `isNews`: it says something else than the last of its kind. */
export interface Listener {
  passStarted(start: PassStart): void;
  done(id: PassId, item: ImageItem | PodItem, isNews: boolean): void;
  passEnded(pass: Pass, seen: Seen | null, isNews: boolean): void;
  event(event: Event): void;
  /** One line for the log. */
  say(level: Level, message: string): void;
}

interface Condition {
  /** Without numbers; of an event its reason. */
  readonly words: string;
  readonly sinceNs: bigint;
}

/** More than a node has images and containers. Beyond it the oldest removal is forgotten: its image may have vanished. */
const CONDITIONS_MAX = 20_000;
const REMOVAL = "removal/";

export class Journal implements Listener {
  readonly #timer: Pick<Timer, "monotonicNs">;
  readonly #listeners: readonly Partial<Listener>[];
  readonly #conditions: Map<string, Condition>;

  constructor(
    timer: Pick<Timer, "monotonicNs">,
    listeners: readonly Partial<Listener>[],
    conditions = new Map<string, Condition>(),
  ) {
    this.#timer = timer;
    this.#listeners = listeners;
    this.#conditions = conditions;
  }

  /** The same journal, which tells these too. */
  with(...more: readonly Partial<Listener>[]): Journal {
    return new Journal(this.#timer, [...this.#listeners, ...more], this.#conditions);
  }

  passStarted(start: PassStart): void {
    this.#tell((it) => it.passStarted?.(start));
  }

  done(id: PassId, item: ImageItem | PodItem): void {
    const key = `${REMOVAL}${removedId(item)}`;
    const isNews = !isFailed(item.result) || this.isNews(key, resultWords(item));
    if (isGone(item)) this.ends(key, `removal of ${itemName(item)} succeeded`);
    this.#tell((it) => it.done?.(id, item, isNews));
  }

  passEnded(pass: Pass, seen: Seen | null): void {
    const words = [pass.error, imagePassWords(pass), containerPassWords(pass)].join("; ");
    const isNews = this.isNews(`pass/${pass.kind}`, words);
    this.#tell((it) => it.passEnded?.(pass, seen, isNews));
    const { unmatchedKeepRules = [] } = seen ?? {};
    if (unmatchedKeepRules.length > 0)
      this.begins("keep-rules", unmatchedWords(unmatchedKeepRules), 0);
    else if (seen !== null) this.ends("keep-rules", "every keep rule matches an image again");
  }

  event(event: Event): void {
    this.#tell((it) => it.event?.(event));
  }

  say(level: Level, message: string): void {
    this.#tell((it) => it.say?.(level, message));
  }

  /** Notes that a condition lasts, and says so if that is news. */
  begins(key: string, message: string, level: Level = "error"): void {
    if (this.isNews(key, message)) this.say(level, message);
  }

  /** Notes that a condition lasts. True if it begins, or if its words change in more than numbers. */
  isNews(key: string, words: string): boolean {
    const before = this.#conditions.get(key);
    const now = { words: words.replaceAll(/\d+/g, ""), sinceNs: this.#timer.monotonicNs() };
    this.#conditions.set(key, { ...now, sinceNs: before?.sinceNs ?? now.sinceNs });
    if (this.#conditions.size > CONDITIONS_MAX) {
      const oldest = this.#conditions.keys().find((it) => it.startsWith(REMOVAL));
      this.#conditions.delete(oldest ?? key);
    }
    return before?.words !== now.words;
  }

  /** A condition and all below its key are over: says how long the first lasted, if any did. */
  ends(key: string, words?: string): void {
    const ended = [...this.#conditions].filter(([it]) => it === key || it.startsWith(`${key}/`));
    for (const [it] of ended) this.#conditions.delete(it);
    const [first] = ended;
    if (first === undefined) return;
    const [, { words: before, sinceNs }] = first;
    const span = humanDuration(duration(this.#timer.monotonicNs() - sinceNs));
    this.say(0, `${words ?? `${before} is over`} after ${span}`);
  }

  #tell(tell: (listener: Partial<Listener>) => void): void {
    this.#listeners.forEach(tell);
  }
}
