/** Values of options and operands: how each kind is read, and what is expected. */

import { parseDuration } from "../config/units.ts";
import { quoted } from "../config/words.ts";
import { usageError } from "../model/errors.ts";
import type { Duration } from "../model/time.ts";
import { type Invocation, textOf } from "./command.ts";

export interface ValueType<Value> {
  readonly what: string;
  /** What is valid. */
  readonly use: string;
  /** `null`: invalid. */
  readonly read: (text: string) => Value | null;
}

/** Throws `ConfigError`. */
export function parsed<Value>(type: ValueType<Value>, text: string, source: string): Value {
  const value = type.read(text);
  if (value !== null) return value;
  throw usageError(source, text, `invalid ${type.what} ${quoted(text)}: use ${type.use}`);
}

/** The value of an option; `null`: not given. Throws `ConfigError`. */
export function valueOf<Value>(
  invocation: Invocation,
  name: string,
  type: ValueType<Value>,
): Value | null {
  const text = textOf(invocation, name);
  return text === null ? null : parsed(type, text, `--${name}`);
}

export const durationFrom = (least: bigint, use: string): ValueType<Duration> => ({
  what: "duration",
  use,
  read: (text) => {
    const span = parseDuration(text);
    return span !== null && span >= least ? span : null;
  },
});

export const numberUpTo = (most: number): ValueType<number> => ({
  what: "number",
  use: `1 to ${most}`,
  read: (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : 0;
    return number >= 1 && number <= most ? number : null;
  },
});
