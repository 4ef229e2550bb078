/** Parses durations as Go does (`1h30m`, `1.5s`, `100ms`, `0`), plus days and weeks (`30d`, `2w`), and formats them. */
import { type Duration, duration } from "../../model/time.ts";

const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
  // Not in Go. Days have 24 hours.
  d: 86_400_000_000_000n,
  w: 604_800_000_000_000n,
};

/** Go's durations are signed 64-bit integers, whose negative range is larger by one. */
const INT64_LIMIT = 2n ** 63n;
/** Longer than any sensible duration. Excess digits are cut, as in Go. */
const TEXT_MAX = 256;

/** `null` without a unit or digits, for an unknown unit (`30mins`), and beyond 64 bits. */
export function parseDuration(text: string): Duration | null {
  if (text.length > TEXT_MAX) return null;
  const signed = /^([+-]?)(.*)$/s.exec(text);
  const negative = signed?.[1] === "-";
  const rest = signed?.[2] ?? "";
  if (rest === "0") return duration(0n);
  const total = sumOfTerms(rest);
  if (total === null) return null;
  if (negative) return duration(-total);
  return total < INT64_LIMIT ? duration(total) : null;
}

function sumOfTerms(text: string): bigint | null {
  let total = 0n;
  let rest = text;
  do {
    const term = /^(\d*)(\.\d*)?([^.\d]+)/.exec(rest);
    const nanoseconds = term === null ? null : termOf(term);
    if (term === null || nanoseconds === null) return null;
    total += nanoseconds;
    if (total > INT64_LIMIT) return null;
    rest = rest.slice(term[0].length);
  } while (rest !== "");
  return total;
}

function termOf(term: RegExpExecArray): bigint | null {
  const whole = term[1] ?? "";
  const fraction = (term[2] ?? "").slice(1);
  const name = term[3] ?? "";
  const unit = Object.hasOwn(UNITS, name) ? UNITS[name] : undefined;
  if (unit === undefined || (whole === "" && fraction === "")) return null;
  const nanoseconds = BigInt(whole === "" ? 0 : whole) * unit + fractionOf(fraction, unit);
  return nanoseconds > INT64_LIMIT ? null : nanoseconds;
}

/** Go computes the fraction in a float64, from the digits that fit 63 bits. */
function fractionOf(digits: string, unit: bigint): bigint {
  let value = 0n;
  let scale = 1;
  for (const digit of digits) {
    const next = value * 10n + BigInt(digit);
    if (next > INT64_LIMIT) break;
    value = next;
    scale *= 10;
  }
  return BigInt(Math.trunc(Number(value) * (Number(unit) / scale)));
}

const DAY_NS = 86_400_000_000_000n;

/** `2m`, `1h30m`, `30d`, `1.5s`, `100ms`, `0s`: the shortest text that reads back as the same duration. */
export function formatDuration(span: Duration): string {
  const ns: bigint = span;
  if (ns < 0n) return `-${formatDuration(duration(-ns))}`;
  if (ns === 0n) return "0s";
  if (ns < 1_000n) return `${ns}ns`;
  if (ns < 1_000_000n) return `${decimal(ns, 3)}us`;
  if (ns < 1_000_000_000n) return `${decimal(ns, 6)}ms`;
  // One day is shown as 24h.
  const days = ns < 2n * DAY_NS ? 0n : ns / DAY_NS;
  const hours = (ns - days * DAY_NS) / 3_600_000_000_000n;
  const minutes = (ns / 60_000_000_000n) % 60n;
  const secondsNs = ns % 60_000_000_000n;
  return [
    days === 0n ? "" : `${days}d`,
    hours === 0n ? "" : `${hours}h`,
    minutes === 0n ? "" : `${minutes}m`,
    secondsNs === 0n ? "" : `${decimal(secondsNs, 9)}s`,
  ].join("");
}

function decimal(value: bigint, places: number): string {
  const unit = 10n ** BigInt(places);
  const fraction = (value % unit).toString().padStart(places, "0").replace(/0+$/, "");
  return fraction === "" ? `${value / unit}` : `${value / unit}.${fraction}`;
}
