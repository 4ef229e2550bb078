/** Percentages of eviction thresholds, read as the kubelet reads them into a float32. */

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const HEXADECIMAL = /^([+-]?)0[xX]([\da-fA-F]*)\.?([\da-fA-F]*)[pP]([+-]?\d+)$/;
/** Go allows underscores between digits of a number. */
const STRAY_UNDERSCORE = /^_|_$|[^\da-fA-FxX]_|_[^\da-fA-F]/;
const TEXT_MAX = 128;

/**
 * The share (`10.5%` is 0.105 as a float32) of a text that ends in `%`; any number of them is taken off.
 * `null` where the text is no number. NaN, which the kubelet takes for a threshold that is never met, is refused.
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
