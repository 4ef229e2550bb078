/** Folds identical failures: logs the first, counts repetitions, and logs the count later. */

import { type Duration, type Instant, since } from "../../model/time.ts";
import type { LogEntry } from "./line.ts";

interface Series {
  /** The newest occurrence. */
  entry: LogEntry;
  writtenAt: Instant;
  /** Since it was last logged. */
  unwritten: number;
  /** Since the last success. */
  failures: number;
  readonly firstAt: Instant;
}

/** Maximum number of series; the one that failed longest ago is dropped first. */
const SERIES_MAXIMUM = 256;

export class Fold {
  /** By topic: what fails. A success of the same topic ends the series. */
  readonly #series = new Map<string, Series>();
  readonly #window: Duration;

  /** A repeated failure is logged again after `window`. */
  constructor(window: Duration) {
    this.#window = window;
  }

  /** What to log now: the rest of an older series, then the failure, unless it is a repetition. */
  failed(topic: string, entry: LogEntry): readonly LogEntry[] {
    const { at, message } = entry;
    const known = this.#series.get(topic);
    this.#series.delete(topic);
    const { failures = 0, firstAt = at } = known ?? {};
    if (known === undefined || known.entry.message !== message) {
      const series = { entry, writtenAt: at, unwritten: 0, failures: failures + 1, firstAt };
      this.#series.set(topic, series);
      return [...held(known), ...this.#forgotten(), entry];
    }
    known.entry = entry;
    known.failures += 1;
    known.unwritten += 1;
    this.#series.set(topic, known);
    return this.#isDue(known, at) ? written(known, at) : [];
  }

  /** Ends the series of a topic. Returns how often it failed and since when; `null` if it did not. */
  succeeded(topic: string): Pick<Series, "failures" | "firstAt"> | null {
    const known = this.#series.get(topic) ?? null;
    this.#series.delete(topic);
    return known;
  }

  /** Counts that are older than the window. */
  due(now: Instant): readonly LogEntry[] {
    return Array.from(this.#series.values()).flatMap((series) =>
      this.#isDue(series, now) ? written(series, now) : [],
    );
  }

  /** All counts that are not logged yet; for the end of the program. */
  flush(now: Instant): readonly LogEntry[] {
    return Array.from(this.#series.values()).flatMap((series) => written(series, now));
  }

  // If the wall clock was set back, a series is due at once instead of staying silent for that long.
  #isDue(series: Series, now: Instant): boolean {
    const age = since(now, series.writtenAt);
    return series.unwritten > 0 && (age >= this.#window || age < 0n);
  }

  #forgotten(): readonly LogEntry[] {
    const [oldest] = this.#series;
    if (this.#series.size <= SERIES_MAXIMUM || oldest === undefined) return [];
    this.#series.delete(oldest[0]);
    return held(oldest[1]);
  }
}

/** The newest occurrence with the number of those that were not logged. */
function held(series: Series | undefined): readonly LogEntry[] {
  if (series === undefined || series.unwritten === 0) return [];
  const { entry, unwritten: repeated } = series;
  return [repeated === 1 ? entry : { ...entry, fields: { ...entry.fields, repeated } }];
}

function written(series: Series, now: Instant): readonly LogEntry[] {
  const entries = held(series);
  series.unwritten = 0;
  series.writtenAt = now;
  return entries;
}
