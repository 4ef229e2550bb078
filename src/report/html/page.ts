/** The HTML report of `crigc report`: one page without network or scripts. */

import type { Forecast } from "../../model/disk-usage.ts";
import type { DiskSample } from "../../model/history.ts";
import type { ImagePlan, Plan } from "../../model/plan.ts";
import type { RuntimeInfo } from "../../model/snapshot.ts";
import { type Instant, instant, minutes, since } from "../../model/time.ts";
import { compared } from "../../model/values.ts";
import { counted, humanBytes, humanDuration } from "../bytes.ts";
import type { HistoryReport } from "../document/history.ts";
import { youngWords } from "../pass-words.ts";
import type { ImageUsageReport } from "../table/disk-usage.ts";
import { diskChart, type Freed } from "./chart.ts";
import { compositionSection, lastUseSection } from "./composition.ts";
import { diskSeries, type Period } from "./disk-series.ts";
import { eventsSection, moment, removedSection } from "./history.ts";
import { marksOf } from "./marks.ts";
import { blockNotices, containersSection, keptSection, nextSection } from "./plan.ts";
import { style } from "./style.ts";
import { type Html, html } from "./text.ts";
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
  const { plan } = report;
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
        ${header(report)}
        <main>
          ${report.planError === null ? null : html`<p class="notice alarm"><strong>Cannot read the node:</strong> ${report.planError}. This page shows the history only.</p>`}
          ${images === null ? null : blockNotices(images)} ${nowSection(report)}
          ${diskSection(report)} ${images === null ? null : compositionSection(images)}
          ${report.usage === null ? null : treemapSection(report.usage)}
          ${images === null ? null : nextSection(images)} ${removedSection(report.history)}
          ${images === null ? null : [lastUseSection(images), keptSection(images)]}
          ${containers === null ? null : containersSection(containers)}
          ${eventsSection(report.history.events)}
        </main>
        <footer>
          Written by crigc ${report.version}. Times are in UTC. Image sizes are as the runtime
          reports them; freed space is measured on the filesystem.
        </footer>
      </body>
    </html> `.text;
}

function header(report: HtmlReport): Html {
  const runtime =
    report.runtime === null ? "" : `, ${report.runtime.name} ${report.runtime.version}`;
  return html`<header>
    <h1>Garbage collection on ${report.node}</h1>
    <p class="soft">
      ${moment(report.period.from)} to ${moment(report.period.to)}${runtime}, written
      ${moment(report.generatedAt)}
    </p>
  </header>`;
}

function nowSection(report: HtmlReport): Html {
  const { passes, removals } = report.history;
  const gone = removals.filter((row) => row.result === "removed").length;
  const freed = removals.reduce((sum, row) => sum + (row.measuredBytes ?? 0n), 0n);
  const failed = passes.filter((pass) => pass.error !== null).length;
  return html`<section aria-labelledby="now">
    <h2 id="now">At a glance</h2>
    <dl class="facts">
      ${diskFacts(report)} ${imageFacts(report)}
      ${fact("Removed", String(gone), `${humanBytes(freed)} freed, as measured`)}
      ${regretFact(report)}
      ${fact("Passes", String(passes.length), failed === 0 ? "none failed" : `${failed} failed`)}
    </dl>
  </section>`;
}

function regretFact({ history: { regrets } }: HtmlReport): Html {
  const sizeBytes = regrets.reduce((sum, one) => sum + one.sizeBytes, 0n);
  const [soonest] = regrets.map(({ at, removedAt }) => since(at, removedAt)).toSorted(compared);
  return fact(
    "Came back after removal",
    String(regrets.length),
    soonest === undefined
      ? "no removed image came back"
      : `${humanBytes(sizeBytes)}, the first after ${humanDuration(soonest)}`,
  );
}

const diskFacts = (report: HtmlReport): readonly Html[] =>
  (report.plan?.images?.usage ?? []).map((usage) => {
    const { availableBytes, capacityBytes } = usage.filesystem;
    return fact(
      `${usage.filesystem.mountpoint} used`,
      `${usage.usedPercent}%`,
      `${humanBytes(availableBytes)} of ${humanBytes(capacityBytes)} free`,
    );
  });

function imageFacts(report: HtmlReport): readonly Html[] {
  const images = report.plan?.images ?? null;
  if (images === null) return [];
  const expected = images.candidates.filter((it) => it.expected);
  const bytes = expected.reduce((sum, it) => sum + it.image.sizeBytes, 0n);
  return [
    fact(
      "Images kept",
      String(images.kept.length),
      `of ${images.kept.length + images.candidates.length}`,
    ),
    fact(
      "Removed by a pass now",
      counted(expected.length, "image"),
      expected.length > 0 ? `${humanBytes(bytes)} as reported` : whyNone(images),
    ),
  ];
}

function whyNone(plan: ImagePlan): string {
  if (plan.blocks.length > 0) return "removal is blocked";
  if (plan.triggers.length === 0) return "no threshold exceeded";
  return youngWords(plan) || "no candidates";
}

const fact = (name: string, value: string, detail: string): Html =>
  html`<div>
    <dt>${name}</dt>
    <dd>${value}<small>${detail}</small></dd>
  </div>`;

function diskSection(report: HtmlReport): Html {
  const marks = marksOf(report.history);
  const samples = [...report.samples, ...samplesNow(report)];
  const period = recordedPart(report.period, samples);
  const charts = diskSeries(samples, period).map((series) => {
    const hasImages = series.roles.includes("imagefs");
    return diskChart({
      series,
      period,
      freed: freedOf(samples, series.device),
      marks: hasImages ? marks : [],
      forecast: report.forecasts.get(series.device) ?? null,
    });
  });
  return html`<section aria-labelledby="disk">
    <h2 id="disk">Disk usage over time</h2>
    ${charts.length === 0 ? html`<p>No disk usage was recorded in this period; crigc run and crigc gc record it.</p>` : charts}
  </section>`;
}

/** Disks as of this plan, which is later than the last pass's sample. */
const samplesNow = ({ plan, period }: HtmlReport): readonly DiskSample[] =>
  (plan?.images?.usage ?? []).map(({ filesystem }) => ({
    ...filesystem,
    at: period.to,
    highPercent: null,
    lowPercent: null,
    freedBytes: 0n,
  }));

const SHORTEST_PERIOD = minutes(10);

/** The period from the first sample on, so that a new node's chart is not empty except for its edge. */
function recordedPart({ from, to }: Period, samples: readonly DiskSample[]): Period {
  const first = samples.reduce((least, { at }) => (at < least ? at : least), to);
  const latest = instant(to - SHORTEST_PERIOD);
  const recorded = first < latest ? first : latest;
  return { from: recorded > from ? recorded : from, to };
}

/** What passes freed on a filesystem; a pass takes a sample of each before it removes anything. */
const freedOf = (samples: readonly DiskSample[], device: string): readonly Freed[] =>
  samples.flatMap((sample) =>
    sample.device === device && (sample.freedBytes ?? 0n) > 0n
      ? [{ at: sample.at, bytes: sample.freedBytes ?? 0n }]
      : [],
  );
