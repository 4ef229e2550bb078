// The figures to reach, and whether they were.

import type { Idle } from "./idle.ts";
import { median, type Runs, spread } from "./runs.ts";

/** More than a program that prints one line. */
const planMsMax = 80;
const residentBytesMax = 75e6;
const anonymousBytesMax = 30e6;

/** A median is that far off by chance in one of several hundred measurements. */
const standardErrors = 3;

export interface Figure {
  readonly name: string;
  readonly measured: number;
  readonly allowed: number;
  /** By how much chance alone may move what was measured. */
  readonly noise: number;
  readonly unit: "ms" | "bytes";
  readonly missed: boolean;
}

export function judge(of: {
  readonly line: Runs;
  readonly plan: Runs;
  readonly idle: Idle;
}): readonly Figure[] {
  const { line, plan, idle } = of;
  return [
    figure({
      name: "crigc plan with a ledger, over a program that prints one line",
      measured: median(plan.wallMs) - median(line.wallMs),
      allowed: planMsMax,
      noise: standardErrors * Math.hypot(errorOfMedian(plan.wallMs), errorOfMedian(line.wallMs)),
      unit: "ms",
    }),
    figure({
      name: "idle agent, resident",
      measured: idle.residentBytes,
      allowed: residentBytesMax,
      noise: 0,
      unit: "bytes",
    }),
    figure({
      name: "idle agent, anonymous",
      measured: idle.anonymousBytes,
      allowed: anonymousBytesMax,
      noise: 0,
      unit: "bytes",
    }),
  ];
}

function figure(of: Omit<Figure, "missed">): Figure {
  return { ...of, missed: of.measured - of.noise > of.allowed };
}

/** Of a sample whose middle is as a normal distribution's: 1.25 standard deviations, of which the spread has 1.35. */
function errorOfMedian(values: readonly number[]): number {
  return ((1.2533 / 1.349) * spread(values)) / Math.sqrt(values.length);
}
