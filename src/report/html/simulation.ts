/** The page of `crigc simulate --html`: one chart, disk against bytes pulled again, and the table. */

import type { SimulatedRun } from "../../model/reports.ts";
import { settingsWords, SIMULATION_COLUMNS, simulationNotes, sumOf } from "../simulation.ts";
import { humanBytes } from "../words.ts";
import { type Html, html, htmlPage, htmlTable } from "./html.ts";

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [720, 360, 90, 48];

interface Point {
  readonly run: SimulatedRun;
  readonly disk: bigint;
  readonly again: bigint;
}

export const simulationPage = (runs: readonly SimulatedRun[], version: string): string =>
  htmlPage({
    title: "crigc simulation",
    header: html`<h1>Disk against bytes pulled again</h1>`,
    main: [
      chartOf(runs),
      htmlTable(SIMULATION_COLUMNS, runs, { caption: "Combinations of settings", most: 1000 }),
      simulationNotes(runs).map((note) => html`<p>${note}</p>`),
    ],
    footer: `Written by crigc ${version}.`,
  });

/** Runs that differ in nothing but the disk are one line. */
function chartOf(runs: readonly SimulatedRun[]): Html {
  const capacities = new Set(runs.map((run) => sumOf(run, "capacityBytes")));
  const isByCapacity = capacities.size > 1;
  const points = runs.map((run): Point => ({
    run,
    disk: sumOf(run, isByCapacity ? "capacityBytes" : "meanBytes"),
    again: sumOf(run, "pulledAgainBytes"),
  }));
  const most = (of: (point: Point) => bigint): bigint =>
    points.reduce((largest, point) => (of(point) > largest ? of(point) : largest), 1n);
  const [mostDisk, mostAgain] = [most(({ disk }) => disk), most(({ again }) => again)];
  const x = (disk: bigint): number =>
    LEFT + (Number(disk) / Number(mostDisk)) * (WIDTH - LEFT - 24);
  const y = (again: bigint): number =>
    HEIGHT - BOTTOM - (Number(again) / Number(mostAgain)) * (HEIGHT - BOTTOM - 24);
  const series = Map.groupBy(points, ({ run }) =>
    run.settings
      .filter(({ name }) => name !== "capacity")
      .map(({ name, value }) => `${name}=${value}`)
      .join(" "),
  );
  const colour = (at: number): string => `hsl(${(at * 137) % 360} 60% 50%)`;
  return html`<section>
    <svg
      viewBox="0 0 ${WIDTH} ${HEIGHT}"
      role="img"
      aria-label="Disk against bytes pulled again"
      font-size="12"
      fill="currentColor"
    >
      ${[0n, 1n, 2n, 3n, 4n].map((quarter) => {
        const [disk, again] = [(mostDisk * quarter) / 4n, (mostAgain * quarter) / 4n];
        return html`<path
            stroke="currentColor"
            opacity=".2"
            d="M${LEFT} ${y(again)}H${WIDTH - 24}"
          />
          <text x="${LEFT - 6}" y="${y(again) + 4}" text-anchor="end">${humanBytes(again)}</text>
          <text x="${x(disk)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle"
            >${humanBytes(disk)}</text
          >`;
      })}
      <text x="${(WIDTH + LEFT) / 2}" y="${HEIGHT - 8}" text-anchor="middle">
        ${isByCapacity ? "disk" : "disk in use, on average"}
      </text>
      ${[...series.values()].map((own, at) => {
        const sorted = own.toSorted((one, other) => Number(one.disk - other.disk));
        return html`<polyline
            fill="none"
            stroke="${colour(at)}"
            points="${sorted.map(({ disk, again }) => `${x(disk)},${y(again)} `)}"
          />
          ${sorted.map(({ run, disk, again }) => html`<circle cx="${x(disk)}" cy="${y(again)}" r="4" fill="${colour(at)}"><title>${settingsWords(run)}: ${humanBytes(again)} pulled again, disk ${humanBytes(disk)}</title></circle>`)}`;
      })}
    </svg>
    <ul>
      ${[...series.keys()].map((name, at) => html`<li style="color:${colour(at)}">${name === "" ? "as configured" : name}</li>`)}
    </ul>
  </section>`;
}
