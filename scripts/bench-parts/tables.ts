// The measurements in words.

import type { Figure } from "./figures.ts";
import type { Idle } from "./idle.ts";
import type { AgentResult, LargeResult } from "./large.ts";
import { median, type Runs, spread } from "./runs.ts";

export type Measured = Readonly<
  Record<
    | "line"
    | "version"
    | "floor"
    | "plan"
    | "firstFloor"
    | "firstPlan"
    | "largePlan"
    | "firstLargePlan",
    Runs
  >
>;

const titles: readonly (readonly [keyof Measured, string])[] = [
  ["line", "a program that prints one line"],
  ["version", "crigc version"],
  ["floor", "the calls of the next row alone"],
  ["plan", "crigc plan, 100 images and 100 containers, ledger"],
  ["firstFloor", "the calls of the next row alone"],
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

export function largeLines({ images, lists, runs }: LargeResult): readonly string[] {
  return [
    row(`${images} images, ${images * 2} containers, ${images / 2} sandboxes`, [
      "wall",
      "pass",
      "processor",
      "peak",
      "calls",
      "bare",
      "ratio",
      "cpu ratio",
    ]),
    ...runs.map(
      ({ name, wallMs, passMs, processorMs, peakBytes, calls, bareMs, bareProcessorMs }) =>
        row(name, [
          milliseconds(wallMs),
          passMs === null ? "" : milliseconds(passMs),
          milliseconds(processorMs),
          megabytes(peakBytes),
          String(Object.values(calls).reduce((sum, count) => sum + count, 0)),
          milliseconds(bareMs),
          ((passMs ?? wallMs) / bareMs).toFixed(1),
          (processorMs / bareProcessorMs).toFixed(1),
        ]),
    ),
    `one set of lists, bare: ${megabytes(lists.bytes)}, ${milliseconds(lists.wallMs)}, processor ${milliseconds(lists.processorMs)}`,
  ];
}

/** With n times the images so many times the time: n to the power of this. */
export function growthLines(smaller: LargeResult, larger: LargeResult): readonly string[] {
  const times = larger.images / smaller.images;
  return [
    row(`growth from ${smaller.images} to ${larger.images} images`, ["times", "exponent"]),
    ...smaller.runs.flatMap((run, index) => {
      const other = larger.runs[index];
      if (other === undefined) return [];
      const grown = (other.passMs ?? other.wallMs) / (run.passMs ?? run.wallMs);
      return [
        row(run.name.replace(/,? \d+.*$/, ""), [
          grown.toFixed(1),
          (Math.log(grown) / Math.log(times)).toFixed(2),
        ]),
      ];
    }),
  ];
}

export const agentLines = (
  { images, lists }: LargeResult,
  agent: AgentResult,
): readonly string[] => [
  `crigc run, ${images} images, idle for ${agent.seconds} s: ${(agent.idleShare * 100).toFixed(2)} % of a core, ${megabytes(agent.residentBytes)} resident, ${megabytes(agent.peakBytes)} at its highest`,
  `crigc run, ${images} images, ${agent.passes} passes that find nothing: ${milliseconds(agent.passMs)} each, ${(agent.passMs / lists.wallMs).toFixed(1)} times the bare lists, and ${milliseconds(agent.passProcessorMs)} of processor time`,
];

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
    const said = unit === "times" ? times : megabytes;
    const doubt = noise === 0 ? "" : ` (noise ${said(noise)})`;
    return `${missed ? "MISSED" : "ok    "}  ${name}: ${said(measured)}, at most ${said(allowed)}${doubt}`;
  });
}

const times = (ratio: number): string => `${ratio.toFixed(2)} times`;
export const milliseconds = (ms: number): string => `${ms.toFixed(1)} ms`;
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
export const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;
