// The measurements in words.

import type { Figure } from "./figures.ts";
import type { Idle } from "./idle.ts";
import { median, type Runs, spread } from "./runs.ts";

export type Measured = Readonly<
  Record<"line" | "version" | "plan" | "firstPlan" | "largePlan" | "firstLargePlan", Runs>
>;

const titles: readonly (readonly [keyof Measured, string])[] = [
  ["line", "a program that prints one line"],
  ["version", "crigc version"],
  ["plan", "crigc plan, 100 images and 100 containers, ledger"],
  ["firstPlan", "the same without a ledger"],
  ["largePlan", "crigc plan, 1000 images and 1000 containers, ledger"],
  ["firstLargePlan", "the same without a ledger"],
];

export function runLines(measured: Measured): readonly string[] {
  const [first] = Object.values(measured);
  return [
    row(`medians of ${first?.wallMs.length ?? 0}`, ["wall", "fastest", "spread", "processor"]),
    ...titles.map(([name, title]) => {
      const { wallMs, processorMs } = measured[name];
      return row(title, [
        milliseconds(median(wallMs)),
        milliseconds(Math.min(...wallMs)),
        milliseconds(spread(wallMs)),
        milliseconds(median(processorMs)),
      ]);
    }),
  ];
}

const row = (title: string, cells: readonly string[]): string =>
  `${title.padEnd(52)}${cells.map((cell) => cell.padStart(11)).join("")}`;

export function idleLines(idle: Idle): readonly string[] {
  return [
    `crigc run, idle for ${idle.seconds} s: ${megabytes(idle.residentBytes)} resident, ${megabytes(idle.proportionalBytes)} proportional, ${megabytes(idle.anonymousBytes)} anonymous`,
    `crigc run, idle: ${milliseconds(idle.processorMsPerMinute)} of processor time a minute`,
  ];
}

export function figureLines(figures: readonly Figure[]): readonly string[] {
  return figures.map(({ name, measured, allowed, noise, unit, missed }) => {
    const said = unit === "ms" ? milliseconds : megabytes;
    const doubt = noise === 0 ? "" : ` (noise ${said(noise)})`;
    return `${missed ? "MISSED" : "ok    "}  ${name}: ${said(measured)}, at most ${said(allowed)}${doubt}`;
  });
}

export const milliseconds = (ms: number): string => `${ms.toFixed(1)} ms`;
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
export const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;
