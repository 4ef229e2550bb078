// The figures to reach, and whether they were.

import type { Idle } from "./idle.ts";
import { median, type Runs, spread } from "./runs.ts";

/** Processor time, as a multiple of the same calls with the same libraries alone. */
const planTimesMax = 1.6;
const residentBytesMax = 70e6;
const anonymousBytesMax = 26e6;

/** A median is that far off by chance in one of several hundred measurements. */
const standardErrors = 3;

export interface Figure {
  readonly name: string;
  readonly measured: number;
  readonly allowed: number;
  /** By how much chance alone may move what was measured. */
  readonly noise: number;
  readonly unit: "times" | "bytes";
  readonly missed: boolean;
}

export function judge(of: {
  readonly floor: Runs;
  readonly plan: Runs;
  readonly firstFloor: Runs;
  readonly firstPlan: Runs;
  readonly idle: Idle;
}): readonly Figure[] {
  const { floor, plan, firstFloor, firstPlan, idle } = of;
  return [
    timesFloor("crigc plan with a ledger", plan, floor),
    timesFloor("crigc plan without a ledger", firstPlan, firstFloor),
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

function timesFloor(name: string, plan: Runs, floor: Runs): Figure {
  const measured = median(plan.processorMs) / median(floor.processorMs);
  const errors = [plan, floor].map(
    ({ processorMs }) => errorOfMedian(processorMs) / median(processorMs),
  );
  return figure({
    name: `${name}, processor time beside its calls alone`,
    measured,
    allowed: planTimesMax,
    noise: standardErrors * measured * Math.hypot(...errors),
    unit: "times",
  });
}

function figure(of: Omit<Figure, "missed">): Figure {
  return { ...of, missed: of.measured - of.noise > of.allowed };
}

/** Of a sample whose middle is as a normal distribution's: 1.25 standard deviations, of which the spread has 1.35. */
function errorOfMedian(values: readonly number[]): number {
  return ((1.2533 / 1.349) * spread(values)) / Math.sqrt(values.length);
}
