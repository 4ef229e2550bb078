/** The HTML report of `crigc report`: one page without network or scripts. */

import type { Forecast } from "../../model/disk-usage.ts";
import type { DiskSample } from "../../model/history.ts";
import type { ImagePlan, Plan } from "../../model/plan.ts";
import type { RuntimeInfo } from "../../model/snapshot.ts";
import { type Instant, instant, minutes, since } from "../../model/time.ts";
import { compared } from "../../model/values.ts";
import { counted, humanBytes, humanDuration } from "../bytes.ts";
import type { ImageUsageReport } from "../disk-usage.ts";
import type { HistoryReport } from "../history.ts";
import { youngWords } from "../pass-words.ts";
import { diskChart, diskSeries, type Period } from "./chart.ts";
import { type Html, html, moment } from "./html.ts";
import {
  blockNotices,
  containersSection,
  eventsSection,
  keptSection,
  nextSection,
  removedSection,
} from "./sections.ts";
import { style } from "./style.ts";
import { treemapSection } from "./treemap.ts";

export interface HtmlReport {
  readonly node: string;
  readonly version: string;
  readonly generatedAt: Instant;
  /** The period of charts and history. */
  readonly period: Period;
  readonly history: HistoryReport;
  readonly samples: readonly DiskSample[];
  /** By device; absent without a forecast. */
  readonly forecasts: ReadonlyMap<string, Forecast>;
  /** The node as it is now; `null` if it could not be read. */
  readonly runtime: RuntimeInfo | null;
  readonly plan: Plan | null;
  /** Disk usage of its images; `null` if it could not be read. */
  readonly usage: ImageUsageReport | null;
  /** Why the node could not be read. */
  readonly planError: string | null;
}

export function htmlReport(report: HtmlReport): string {
  const { history, period, planError, plan, runtime, usage } = report;
  const images = plan?.images ?? null;
  const containers = plan?.containers ?? null;
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta
          http-equiv="Content-Security-Policy"
          content="default-src 'none'; style-src 'unsafe-inline'"
        />
        <title>crigc report of ${report.node}</title>
        <style>
          ${style}
        </style>
      </head>
      <body>
        <header>
          <h1>Garbage collection on ${report.node}</h1>
          <p class="soft">
            ${moment(period.from)} to
            ${moment(period.to)}${runtime === null ? "" : `, ${runtime.name} ${runtime.version}`},
            written ${moment(report.generatedAt)}
          </p>
        </header>
        <main>
          ${planError === null ? null : html`<p class="notice alarm"><strong>Cannot read the node:</strong> ${planError}. This page shows the history only.</p>`}
          ${images && blockNotices(images)} ${nowSection(report)} ${diskSection(report)}
          ${usage && treemapSection(usage)} ${images && nextSection(images)}
          ${removedSection(history.removals)} ${images && keptSection(images)}
          ${containers && containersSection(containers)} ${eventsSection(history.events)}
        </main>
        <footer>
          Written by crigc ${report.version}. Times are in UTC. Image sizes are as the runtime
          reports them; freed space is measured on the filesystem.
        </footer>
      </body>
    </html> `.text;
}

function nowSection({ history: { passes, removals, regrets }, plan }: HtmlReport): Html {
  const images = plan?.images ?? null;
  const gone = removals.filter((row) => row.result === "removed").length;
  const freed = removals.reduce((sum, row) => sum + (row.measuredBytes ?? 0n), 0n);
  const failed = passes.filter((pass) => pass.error !== null).length;
  const pulled = regrets.reduce((sum, one) => sum + one.sizeBytes, 0n);
  const [soonest] = regrets.map(({ at, removedAt }) => since(at, removedAt)).toSorted(compared);
  const back =
    soonest === undefined
      ? "no removed image came back"
      : `${humanBytes(pulled)}, the first after ${humanDuration(soonest)}`;
  return html`<section aria-labelledby="now">
    <h2 id="now">At a glance</h2>
    <dl class="facts">
      ${images && imageFacts(images)}
      ${fact("Removed", gone, `${humanBytes(freed)} freed, as measured`)}
      ${fact("Came back after removal", regrets.length, back)}
      ${fact("Passes", passes.length, failed === 0 ? "none failed" : `${failed} failed`)}
    </dl>
  </section>`;
}

function imageFacts(plan: ImagePlan): readonly Html[] {
  const expected = plan.candidates.filter((it) => it.expected);
  const bytes = expected.reduce((sum, it) => sum + it.image.sizeBytes, 0n);
  return [
    ...plan.usage.map(({ filesystem, usedPercent }) =>
      fact(
        `${filesystem.mountpoint} used`,
        `${usedPercent}%`,
        `${humanBytes(filesystem.availableBytes)} of ${humanBytes(filesystem.capacityBytes)} free`,
      ),
    ),
    fact("Images kept", plan.kept.length, `of ${plan.kept.length + plan.candidates.length}`),
    fact(
      "Removed by a pass now",
      counted(expected.length, "image"),
      expected.length > 0 ? `${humanBytes(bytes)} as reported` : whyNone(plan),
    ),
  ];
}

function whyNone(plan: ImagePlan): string {
  if (plan.blocks.length > 0) return "removal is blocked";
  if (plan.triggers.length === 0) return "no threshold exceeded";
  return youngWords(plan) || "no candidates";
}

const fact = (name: string, value: string | number, detail: string): Html =>
  html`<div>
    <dt>${name}</dt>
    <dd>${value}<small>${detail}</small></dd>
  </div>`;

function diskSection({ plan, period: whole, history, ...report }: HtmlReport): Html {
  // Disks as of this plan, which is later than the last pass's sample.
  const samplesNow = (plan?.images?.usage ?? []).map(({ filesystem }) => ({
    ...filesystem,
    at: whole.to,
    highPercent: null,
    lowPercent: null,
    freedBytes: 0n,
  }));
  const samples = [...report.samples, ...samplesNow];
  const period = recordedPart(whole, samples);
  const charts = diskSeries(samples, period).map((series) =>
    diskChart({
      series,
      period,
      history,
      forecast: report.forecasts.get(series.device) ?? null,
    }),
  );
  return html`<section aria-labelledby="disk">
    <h2 id="disk">Disk usage over time</h2>
    ${charts.length === 0 ? html`<p>No disk usage was recorded in this period; crigc run and crigc gc record it.</p>` : charts}
  </section>`;
}

const SHORTEST_PERIOD = minutes(10);

/** The period from the first sample on, so that a new node's chart is not empty except for its edge. */
function recordedPart({ from, to }: Period, samples: readonly DiskSample[]): Period {
  const first = samples.reduce((least, { at }) => (at < least ? at : least), to);
  const latest = instant(to - SHORTEST_PERIOD);
  const recorded = first < latest ? first : latest;
  return { from: recorded > from ? recorded : from, to };
}
