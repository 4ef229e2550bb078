/** Instants and durations in exact nanoseconds, because CRI timestamps exceed the precision of a number. */

import type { Brand } from "./ids.ts";

/** Nanoseconds since 1970-01-01T00:00:00Z by the wall clock, which can jump in both directions. */
export type Instant = Brand<bigint, "Instant">;
/** A span in nanoseconds. May be negative, as the difference of two instants. */
export type Duration = Brand<bigint, "Duration">;
/**
 * The machine's uptime in nanoseconds, summed in the ledger from look to look over all boots. It never decreases, does
 * not jump with the wall clock, and counts a gap without a look as at most a day.
 */
export type TotalUptime = Brand<bigint, "TotalUptime">;

const NS_PER_MS = 1_000_000n;
const NS_PER_SECOND = 1_000_000_000n;

export const instant = (ns: bigint): Instant => ns as Instant;
export const duration = (ns: bigint): Duration => ns as Duration;
export const totalUptime = (ns: bigint): TotalUptime => ns as TotalUptime;

export const instantFromMs = (ms: number): Instant => instant(BigInt(Math.trunc(ms)) * NS_PER_MS);
export const durationFromMs = (ms: number): Duration => duration(BigInt(Math.round(ms * 1e6)));
export const seconds = (count: number): Duration => durationFromMs(count * 1000);
export const minutes = (count: number): Duration => seconds(count * 60);
export const hours = (count: number): Duration => minutes(count * 60);

/** Longest delay of a timer (2³¹ − 1 ms, about 25 days); a longer one fires after a millisecond. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

/** Whole milliseconds, truncated toward zero: for timers and for `…Ms` fields of JSON documents. */
export const toMs = (span: Duration): number => Number(span / NS_PER_MS);
export const instantToMs = (at: Instant): number => Number(at / NS_PER_MS);

export const since = (later: Instant, earlier: Instant): Duration => duration(later - earlier);
export const plus = (at: Instant, span: Duration): Instant => instant(at + span);
export const uptimeSince = (later: TotalUptime, earlier: TotalUptime): Duration =>
  duration(later - earlier);

/** RFC 3339 in UTC; fractions to the last non-zero digit and none when whole: `2026-01-01T00:00:00.25Z`. */
export function toRfc3339(at: Instant): string {
  const wholeSeconds = floorDivide(at, NS_PER_SECOND);
  const fractionNs = at - wholeSeconds * NS_PER_SECOND;
  const base = new Date(Number(wholeSeconds) * 1000).toISOString().slice(0, -5);
  const fraction = fractionNs.toString().padStart(9, "0").replace(/0+$/, "");
  return fraction === "" ? `${base}Z` : `${base}.${fraction}Z`;
}

/** Parses what `toRfc3339` writes, also with offsets; `null` if the text is not such a time. */
export function fromRfc3339(text: string): Instant | null {
  const match =
    /^(\d{4}-\d\d-\d\d)([Tt](?:[01]\d|2[0-3]):\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)$/.exec(
      text,
    );
  if (match === null) return null;
  const [, day = "", time, fraction = "", zone] = match;
  const ms = Date.parse(`${day}${time}${zone}`);
  if (Number.isNaN(ms) || !exists(day)) return null;
  // By its offset it may be in another year in UTC, where a year has four digits.
  if (!/^\d{4}-/.test(new Date(ms).toISOString())) return null;
  return instant(BigInt(ms) * NS_PER_MS + BigInt(fraction.padEnd(9, "0")));
}

/** The engine reads February 30 as March 2. */
const exists = (day: string): boolean => new Date(day).toISOString().startsWith(day);

function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
}
