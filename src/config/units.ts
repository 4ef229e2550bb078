/** Durations as in Go, and quantities and percentages as in Kubernetes: parsed, and printed in their shortest form. */
import { type Duration, duration } from "../model/time.ts";

/** Longer than any sensible value. */
const TEXT_MAX = 128;

const DURATION_UNITS: Readonly<Record<string, bigint>> = {
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
const DAY_NS = 86_400_000_000_000n;

const TERM = String.raw`(?:(\d+)(?:\.(\d*))?|\.(\d+))(ns|us|µs|μs|ms|[smhdw])`;
const DURATION = new RegExp(`^(?:0|(?:${TERM})+)$`);

/** `1h30m`, `1.5s`, `30d`, `0`; `null` without a unit or digits, for an unknown unit (`30mins`), and beyond 64 bits. */
export function parseDuration(text: string): Duration | null {
  const terms = text.replace(/^[+-]/, "");
  if (text.length > TEXT_MAX || !DURATION.test(terms)) return null;
  let total = 0n;
  for (const [, whole = "", tail = "", fraction = tail, unit = ""] of terms.matchAll(
    new RegExp(TERM, "g"),
  ))
    total +=
      (BigInt(whole + fraction) * (DURATION_UNITS[unit] ?? 0n)) / 10n ** BigInt(fraction.length);
  const span = text.startsWith("-") ? -total : total;
  return BigInt.asIntN(64, span) === span ? duration(span) : null;
}

/** `2m`, `1h30m`, `30d`, `1.5s`, `100ms`, `0s`: the shortest text that reads back as the same duration. */
export function formatDuration(ns: bigint): string {
  if (ns < 0n) return `-${formatDuration(-ns)}`;
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

const QUANTITY_UNITS: ReadonlyMap<string, bigint> = new Map([
  ...["k", "M", "G", "T", "P", "E"].map((name, at) => [name, 1000n ** BigInt(at + 1)] as const),
  ...["K", "M", "G", "T", "P", "E"].map(
    (name, at) => [`${name}i`, 1024n ** BigInt(at + 1)] as const,
  ),
]);
const SMALL_UNITS: Readonly<Record<string, number>> = { m: -3, u: -6, n: -9 };
const QUANTITY = /^([+-]?)(\d*)(?:\.(\d*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,9}))?$/;
const INT64_MAX = 2n ** 63n - 1n;

/**
 * `500Mi`, `1.5G`, `1e9`, `100m` as whole units, rounded up as Kubernetes rounds them. `null` if Kubernetes rejects the
 * text, and for more than 64 bits.
 */
export function parseQuantity(text: string): bigint | null {
  const match = text === "" || text.length > TEXT_MAX ? null : QUANTITY.exec(text);
  if (match === null) return null;
  // A sign, a dot, zeros or a suffix alone are zero.
  const [, sign, whole = "", fraction = "", suffix = "", power] = match;
  const digits = BigInt(`0${whole}${fraction}`) * (QUANTITY_UNITS.get(suffix) ?? 1n);
  const exponent = Number(power ?? SMALL_UNITS[suffix] ?? 0) - fraction.length;
  if (digits === 0n) return 0n;
  // More than 64 bits, whatever the digits.
  if (exponent > TEXT_MAX) return null;
  const numerator = digits * 10n ** BigInt(Math.max(0, exponent));
  // Of the longest text, too, this leaves less than one.
  const denominator = 10n ** BigInt(Math.min(Math.max(0, -exponent), 2 * TEXT_MAX));
  const value = (numerator + denominator - 1n) / denominator;
  if (value > INT64_MAX) return null;
  return sign === "-" ? -value : value;
}

/** `20Gi`, `10G`, `1500`: the shortest exact text of a whole amount. */
export function formatQuantity(value: bigint): string {
  if (value === 0n) return "0";
  const exact = [...QUANTITY_UNITS]
    .filter(([, unit]) => value % unit === 0n)
    .map(([name, unit]) => `${value / unit}${name}`);
  return exact.reduce((best, text) => (text.length < best.length ? text : best), `${value}`);
}

/** A size in bytes: a quantity, also with a B: `20GB`, `20GiB`. Rejects `500m`, which is meant as 500 MB. */
export function parseSize(text: string): bigint | null {
  if (/[num]$/.test(text)) return null;
  return parseQuantity(/[\dkKMGTPi]B$/.test(text) ? text.slice(0, -1) : text);
}

/** `10.5%` is 0.105 as a float32, as in the kubelet; like there, several `%` are accepted. */
export function parsePercentage(text: string): number | null {
  const isNumber = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?%+$/;
  if (text.length > TEXT_MAX || !isNumber.test(text)) return null;
  return Math.fround(Math.fround(Number(text.replace(/%+$/, ""))) / 100);
}
