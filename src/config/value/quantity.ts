/** Kubernetes quantities (`500Mi`, `1.5G`, `1e9`, `100m`) as whole units, rounded up as Kubernetes rounds them. */

interface Suffix {
  readonly base: 2n | 10n;
  readonly exponent: number;
}

const SUFFIXES: Readonly<Record<string, Suffix>> = Object.fromEntries<Suffix>([
  ...["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].map(
    (name, at) => [name, { base: 10n, exponent: 3 * at - 9 }] as const,
  ),
  ...["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].map(
    (name, at) => [name, { base: 2n, exponent: 10 * at + 10 }] as const,
  ),
]);

const INT64_MAX = 2n ** 63n - 1n;
/** Beyond this exponent a non-zero quantity exceeds 64 bits, or is less than a billionth. */
const EXPONENT_LIMIT = 64;
const TEXT_MAX = 128;

/**
 * `null` if Kubernetes rejects the text, or if the amount exceeds 64 bits with a decimal suffix, which
 * overflows in Kubernetes; with a binary suffix it becomes the maximum, as in Kubernetes.
 */
export function parseQuantity(text: string): bigint | null {
  if (text === "" || text.length > TEXT_MAX) return null;
  const match = /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[+-]?\d*)$/.exec(text);
  if (match === null) return null;
  const fraction = match[3] ?? "";
  const digits = BigInt(`0${match[2] ?? ""}${fraction}`);
  // A sign, a dot, zeros or a suffix alone are zero.
  const suffix = suffixOf(match[4] ?? "");
  if (suffix === null) return null;
  if (digits === 0n) return 0n;
  const magnitude = roundedUp(digits, fraction.length, suffix);
  if (magnitude === null) return null;
  return match[1] === "-" ? -magnitude : magnitude;
}

function suffixOf(text: string): Suffix | null {
  if (Object.hasOwn(SUFFIXES, text)) return SUFFIXES[text] ?? null;
  const exponent = /^[eE]([+-]?\d{1,9})$/.exec(text);
  return exponent === null ? null : { base: 10n, exponent: Number(exponent[1]) };
}

function roundedUp(digits: bigint, places: number, suffix: Suffix): bigint | null {
  if (suffix.exponent > EXPONENT_LIMIT) return null;
  if (suffix.exponent < -EXPONENT_LIMIT - TEXT_MAX) return 1n;
  const numerator = suffix.exponent > 0 ? digits * suffix.base ** BigInt(suffix.exponent) : digits;
  const denominator = 10n ** BigInt(places + Math.max(0, -suffix.exponent));
  const value = (numerator + denominator - 1n) / denominator;
  if (value <= INT64_MAX) return value;
  return suffix.base === 2n ? INT64_MAX : null;
}

/** `20Gi`, `10G`, `1500`: the shortest exact text of a whole amount. */
export function formatQuantity(value: bigint): string {
  if (value === 0n) return "0";
  const exact = Object.entries(SUFFIXES)
    .filter(([, { exponent }]) => exponent > 0)
    .map(([name, { base, exponent }]) => ({ name, unit: base ** BigInt(exponent) }))
    .filter(({ unit }) => value % unit === 0n)
    .map(({ name, unit }) => `${value / unit}${name}`);
  return [value.toString(), ...exact].reduce((best, text) =>
    text.length < best.length ? text : best,
  );
}

/** A size in bytes: a quantity, also with a B: `20GB`, `20GiB`. Rejects `500m`, which is meant as 500 MB. */
export function parseSize(text: string): bigint | null {
  if (/[num]$/.test(text)) return null;
  return parseQuantity(/[\dkKMGTPi]B$/.test(text) ? text.slice(0, -1) : text);
}
