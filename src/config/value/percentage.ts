/** Parses percentages of eviction thresholds into a float32, like the kubelet. */

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const HEXADECIMAL = /^([+-]?)0[xX]([\da-fA-F]*)\.?([\da-fA-F]*)[pP]([+-]?\d+)$/;
/** Go allows underscores between digits of a number. */
const STRAY_UNDERSCORE = /^_|_$|[^\da-fA-FxX]_|_[^\da-fA-F]/;
const TEXT_MAX = 128;

/**
 * The share (`10.5%` is 0.105 as a float32) of a text that ends in one or more `%`.
 * `null` if it is not a number. Rejects NaN, with which the kubelet's threshold is never met.
 */
export function parsePercentage(text: string): number | null {
  if (text.length > TEXT_MAX || STRAY_UNDERSCORE.test(text)) return null;
  const number = text.replace(/%+$/, "").replaceAll("_", "");
  const value = infinity(number) ?? decimal(number) ?? hexadecimal(number);
  return value === null ? null : Math.fround(Math.fround(value) / 100);
}

const infinity = (text: string): number | null => {
  if (!/^[+-]?inf(?:inity)?$/i.test(text)) return null;
  return text.startsWith("-") ? -Infinity : Infinity;
};

const decimal = (text: string): number | null => (DECIMAL.test(text) ? Number(text) : null);

function hexadecimal(text: string): number | null {
  const match = HEXADECIMAL.exec(text);
  const whole = match?.[2] ?? "";
  const fraction = match?.[3] ?? "";
  if (match === null || whole + fraction === "") return null;
  const magnitude =
    Number.parseInt(whole + fraction, 16) * 2 ** (Number(match[4]) - 4 * fraction.length);
  return match[1] === "-" ? -magnitude : magnitude;
}
