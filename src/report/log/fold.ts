/** Folds identical failures: logs the first, counts repetitions, and logs the count later. */

import { type Duration, type Instant, since } from "../../model/time.ts";

export interface Failure {
  readonly at: Instant;
  /** What fails; a success of the same topic ends the series. */
  readonly topic: string;
  readonly message: string;
}

/** What to log about a failure. */
export interface Folded<Item> {
  readonly item: Item;
  /** Occurrences since it was last logged, including this one. */
  readonly repeated: number;
}

interface Series<Item> {
  item: Item;
  message: string;
  writtenAt: Instant;
  /** Since it was last logged. */
  unwritten: number;
  /** Since the last success. */
  failures: number;
  firstAt: Instant;
}

/** Maximum number of series; the one that failed longest ago is dropped first. */
const SERIES_MAXIMUM = 256;

export class Fold<Item> {
  readonly #series = new Map<string, Series<Item>>();
  readonly #window: Duration;

  /** A repeated failure is logged again after `window`. */
  constructor(window: Duration) {
    this.#window = window;
  }

  /** What to log now: the rest of an older series, then the failure, unless it is a repetition. */
  failed(failure: Failure, item: Item): readonly Folded<Item>[] {
    const known = this.#series.get(failure.topic);
    this.#series.delete(failure.topic);
    const series = { item, message: failure.message, writtenAt: failure.at, unwritten: 0 };
    if (known === undefined || known.message !== failure.message) {
      this.#series.set(failure.topic, {
        ...series,
        failures: (known?.failures ?? 0) + 1,
        firstAt: known?.firstAt ?? failure.at,
      });
      return [...held(known), ...this.#forgotten(), { item, repeated: 1 }];
    }
    known.item = item;
    known.failures += 1;
    known.unwritten += 1;
    this.#series.set(failure.topic, known);
    return this.#isDue(known, failure.at) ? written(known, failure.at) : [];
  }

  /** Ends the series of a topic. Returns how often it failed and since when; `null` if it did not. */
  succeeded(topic: string): { readonly failures: number; readonly firstAt: Instant } | null {
    const known = this.#series.get(topic);
    if (known === undefined) return null;
    this.#series.delete(topic);
    return { failures: known.failures, firstAt: known.firstAt };
  }

  /** Counts that are older than the window. */
  due(now: Instant): readonly Folded<Item>[] {
    return Array.from(this.#series.values()).flatMap((series) =>
      this.#isDue(series, now) ? written(series, now) : [],
    );
  }

  /** All counts that are not logged yet; for the end of the program. */
  flush(now: Instant): readonly Folded<Item>[] {
    return Array.from(this.#series.values()).flatMap((series) => written(series, now));
  }

  // If the wall clock was set back, a series is due at once instead of staying silent for that long.
  #isDue(series: Series<Item>, now: Instant): boolean {
    const age = since(now, series.writtenAt);
    return series.unwritten > 0 && (age >= this.#window || age < 0n);
  }

  #forgotten(): readonly Folded<Item>[] {
    if (this.#series.size <= SERIES_MAXIMUM) return [];
    for (const [topic, series] of this.#series) {
      this.#series.delete(topic);
      return held(series);
    }
    return [];
  }
}

const held = <Item>(series: Series<Item> | undefined): readonly Folded<Item>[] =>
  series === undefined || series.unwritten === 0
    ? []
    : [{ item: series.item, repeated: series.unwritten }];

function written<Item>(series: Series<Item>, now: Instant): readonly Folded<Item>[] {
  const folded = held(series);
  series.unwritten = 0;
  series.writtenAt = now;
  return folded;
}
