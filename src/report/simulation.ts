/** Document `Simulation` and the table of `crigc simulate`: one row for each combination of settings. */

import { type SimulatedNodeFigures, type SimulatedRun, simulatedRun } from "../model/reports.ts";
import { compared } from "../model/values.ts";
import { document, type JsonObject, jsonOf } from "./document.ts";
import { column, type Columns, OPTIONAL, Printer, RIGHT } from "./printer.ts";
import { clean, type Screen } from "./terminal.ts";
import { counted, humanBytes } from "./words.ts";

export const simulationDocument = (runs: readonly SimulatedRun[]): JsonObject =>
  document("Simulation", {
    runs: runs.map((run) => ({
      ...jsonOf(Object(simulatedRun.write(run))),
      percentiles: PERCENTILES.map((percent) => ({
        percent,
        pulledAgainBytes: percentile(run, percent, ({ pulledAgainBytes }) => pulledAgainBytes),
        coldStarts: percentile(run, percent, ({ coldStarts }) => BigInt(coldStarts)),
      })),
    })),
  });

/** Of the nodes' figures. */
const PERCENTILES = [50, 90, 99, 100] as const;

/** The nearest rank. */
function percentile(
  { nodes }: SimulatedRun,
  percent: number,
  of: (node: SimulatedNodeFigures) => bigint,
): bigint {
  const sorted = nodes.map(of).toSorted(compared);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0n;
}

export const settingsWords = ({ settings }: SimulatedRun): string =>
  settings.length === 0
    ? "as configured"
    : clean(settings.map(({ name, value }) => `${name}=${value}`).join(" "));

type SumName = "pulledBytes" | "pulledAgainBytes" | "removedBytes" | "capacityBytes" | "meanBytes";

/** Over all nodes. */
export const sumOf = ({ nodes }: SimulatedRun, name: SumName): bigint =>
  nodes.reduce((sum, node) => sum + node[name], 0n);

type CountName = "pulls" | "pullsAgain" | "coldStarts" | "unfittedPulls";
const countOf = ({ nodes }: SimulatedRun, name: CountName): number =>
  nodes.reduce((sum, node) => sum + node[name], 0);

const percentOf = (part: bigint, whole: bigint): string =>
  whole === 0n ? "-" : `${(part * 100n) / whole}%`;

/** Bytes pulled again, as a multiple of those of the offline bound; `null`: that pulled nothing again, or is unknown. */
export function timesBound({ nodes }: SimulatedRun): number | null {
  let [own, bound] = [0n, 0n];
  for (const node of nodes) {
    if (node.bound === null) return null;
    own += node.pulledAgainBytes;
    bound += node.bound.pulledAgainBytes;
  }
  return bound === 0n ? null : Number(own) / Number(bound);
}

const hoursOver = ({ nodes }: SimulatedRun, isHigh: boolean): string => {
  const ms = nodes.map(({ over }) =>
    Math.max(0, ...(isHigh ? over.slice(0, 1) : over.slice(1)).map(({ forMs }) => forMs)),
  );
  const all = ms.reduce((sum, one) => sum + one, 0) / 3_600_000;
  return all === 0 ? "-" : all < 10 ? `${all.toFixed(1)}h` : `${Math.round(all)}h`;
};

export const SIMULATION_COLUMNS: Columns<SimulatedRun> = [
  column("SETTINGS", settingsWords),
  column("DISK", (run) => humanBytes(sumOf(run, "capacityBytes")), RIGHT),
  column("PULLS", (run) => `${countOf(run, "pulls")}`, RIGHT),
  column("PULLED", (run) => humanBytes(sumOf(run, "pulledBytes")), RIGHT),
  column("AGAIN", (run) => humanBytes(sumOf(run, "pulledAgainBytes")), RIGHT),
  column("OF BOUND", (run) => timesBound(run)?.toFixed(2) ?? "-", OPTIONAL),
  column("COLD STARTS", (run) => `${countOf(run, "coldStarts")}`, RIGHT),
  column("NO ROOM", (run) => `${countOf(run, "unfittedPulls") || "-"}`, OPTIONAL),
  column("REMOVED", (run) => humanBytes(sumOf(run, "removedBytes")), RIGHT),
  column("MEAN", (run) => percentOf(sumOf(run, "meanBytes"), sumOf(run, "capacityBytes")), RIGHT),
  column("PEAK", ({ nodes }) => highestPeak(nodes), RIGHT),
  column("OVER HIGH", (run) => hoursOver(run, true), OPTIONAL),
  column("PRESSURE", (run) => hoursOver(run, false), OPTIONAL),
];

/** Of the fullest disk. */
const highestPeak = (nodes: readonly SimulatedNodeFigures[]): string => {
  const most = nodes.map((node) => Number((node.peakBytes * 100n) / (node.capacityBytes || 1n)));
  return `${Math.max(0, ...most)}%`;
};

const NODE_COLUMNS: Columns<SimulatedRun> = [
  column("AGAIN, A NODE", settingsWords),
  ...PERCENTILES.map((percent) =>
    column<SimulatedRun>(
      percent === 100 ? "MOST" : `P${percent}`,
      (run) => humanBytes(percentile(run, percent, ({ pulledAgainBytes }) => pulledAgainBytes)),
      RIGHT,
    ),
  ),
];

export function simulationTable(runs: readonly SimulatedRun[], screen: Screen): string {
  const printer = new Printer(screen);
  printer.table(SIMULATION_COLUMNS, runs);
  printer.gap();
  const nodes = runs[0]?.nodes ?? [];
  if (nodes.length > 1) printer.table(NODE_COLUMNS, runs);
  printer.gap();
  for (const sentence of simulationNotes(runs)) printer.say(sentence);
  return printer.text();
}

export function simulationNotes(runs: readonly SimulatedRun[]): readonly string[] {
  const nodes = runs[0]?.nodes ?? [];
  const days = Math.max(0, ...nodes.map(({ spanMs }) => spanMs)) / 86_400_000;
  const uses = nodes.reduce((sum, node) => sum + node.uses, 0);
  return [
    `${counted(uses, "use")} on ${counted(nodes.length, "node")} in ${days.toFixed(1)} days. AGAIN: bytes pulled of images that were removed before. COLD STARTS: uses that had to wait for their image.`,
    "NO ROOM: pulls for which the disk had no room at first. OVER HIGH, PRESSURE: time over the high threshold, and over an eviction threshold.",
    "OF BOUND: AGAIN, compared with removing first what is used farthest in the future. With images of different sizes that is a bound in practice, not a proof.",
  ];
}
