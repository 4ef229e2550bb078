/** The HTML report of `crigc report`: one page without network or scripts. */

import { isGone, type Removal } from "../../model/history.ts";
import type { Event } from "../../model/pass.ts";
import type { ContainerPlan, ImagePlan } from "../../model/plan.ts";
import type { RuntimeInfo } from "../../model/snapshot.ts";
import { type Instant, since } from "../../model/time.ts";
import { capitalised, compared } from "../../model/values.ts";
import { counted, humanBytes, humanDuration } from "../bytes.ts";
import { logsErrorWords, podSourceWords, removalTitle } from "../container-reasons.ts";
import type { ImageUsageReport } from "../disk-usage.ts";
import { removalColumns } from "../history.ts";
import { imageBlock, imageKeep } from "../image-reasons.ts";
import { imageName, kindTitle } from "../names.ts";
import { breakdownWords, eventTitle, stopWords, targetWords, youngWords } from "../pass-words.ts";
import { candidateColumns } from "../plan-table.ts";
import { placed } from "../plan.ts";
import { column, type Columns, RIGHT } from "../printer.ts";
import type { Screen } from "../terminal.ts";
import { type DiskReport, diskSection } from "./chart.ts";
import { Html, html, htmlTable, idOf, moment, more, ROWS_MAX } from "./html.ts";
import style from "./style.txt" with { type: "text" };
import { treemapSection } from "./treemap.ts";

export interface HtmlReport extends DiskReport {
  readonly node: string;
  readonly version: string;
  readonly generatedAt: Instant;
  /** `null` if the node could not be read. */
  readonly runtime: RuntimeInfo | null;
  /** Disk usage of its images; `null` if it could not be read. */
  readonly usage: ImageUsageReport | null;
  /** Why the node could not be read. */
  readonly planError: string | null;
}

/** Tables have the columns of `-o wide`. */
const SCREEN: Screen = { width: null, colour: false, unicode: true, all: true, wide: true };

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
          ${new Html(style)}
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
          ${planError === null ? null : notice("Cannot read the node", `${planError}. This page shows the history only.`)}
          ${images && blockNotices(images)} ${factsSection(report)} ${diskSection(report)}
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

const notice = (title: string, text: string): Html =>
  html`<p class="notice alarm"><strong>${title}:</strong> ${text}</p>`;

/** Why nothing is removed now, and what fills the disk. */
const blockNotices = (plan: ImagePlan): readonly Html[] => [
  ...plan.blocks.map((block) => notice("No image is removed now", `${imageBlock.text(block)}.`)),
  ...plan.futility
    .filter((it) => it.futile)
    .map((it) => notice(`What fills ${it.filesystem}`, `${breakdownWords(it.breakdown)}.`)),
];

function factsSection({ history: { passes, removals, regrets }, plan }: HtmlReport): Html {
  const images = plan?.images ?? null;
  const removed = removals.filter((row) => row.result === "removed").length;
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
      ${fact("Removed", removed, `${humanBytes(freedBy(removals))} freed, as measured`)}
      ${fact("Came back after removal", regrets.length, back)}
      ${fact("Passes", passes.length, failed === 0 ? "none failed" : `${failed} failed`)}
    </dl>
  </section>`;
}

function imageFacts(plan: ImagePlan): readonly Html[] {
  const expected = plan.candidates.filter((it) => it.expected);
  const bytes = expected.reduce((sum, it) => sum + it.image.sizeBytes, 0n);
  return [
    ...plan.usage.map(({ filesystem: { mountpoint, ...it }, usedPercent }) =>
      fact(
        `${mountpoint} used`,
        `${usedPercent}%`,
        `${humanBytes(it.availableBytes)} of ${humanBytes(it.capacityBytes)} free`,
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

function nextSection(plan: ImagePlan): Html {
  const expected = plan.candidates.filter((it) => it.expected).length;
  const young = youngWords(plan);
  const end =
    expected === 0
      ? "No image is removed now."
      : `A pass is expected to remove ${expected} and to stop there; ${stopWords(plan.accounting)}.`;
  return html`<section aria-labelledby="next">
    <h2 id="next">What a pass would remove now</h2>
    ${plan.triggers.length === 0 ? html`<p>No threshold exceeded.</p>` : null}
    ${plan.targets.map((target) => html`<p>Target: ${targetWords(target)}.</p>`)}
    ${
      plan.candidates.length === 0
        ? html`<p class="soft">No candidates.${young === "" ? "" : ` ${young}.`}</p>`
        : htmlTable(candidateColumns(SCREEN), placed(plan), {
            caption: `Candidates (images that no rule keeps) in order of removal. ${end}`,
            isSoft: ({ candidate }) => !candidate.expected,
          })
    }
  </section>`;
}

/** Removals shown at once; older ones are collapsed, up to a limit. */
const NEWEST_SHOWN = 10;
const OLDER_SHOWN = 490;

interface RemovalGroup {
  readonly title: string;
  readonly rows: readonly Removal[];
}

const GROUP_COLUMNS: Columns<RemovalGroup> = [
  column("REASON", ({ title }) => title),
  column("REMOVED", ({ rows }) => String(rows.length), RIGHT),
  column("FREED", ({ rows }) => humanBytes(freedBy(rows)), RIGHT),
];

const freedBy = (rows: readonly Removal[]): bigint =>
  rows.reduce((sum, row) => sum + (row.measuredBytes ?? 0n), 0n);

function removedSection(removals: readonly Removal[]): Html {
  const gone = removals.filter(isGone);
  const titles = Map.groupBy(gone, (row) => `${kindTitle(row.kind)}: ${removalTitle(row)}`);
  const groups = Array.from(titles, ([title, rows]) => ({ title, rows })).toSorted(
    (one, other) => other.rows.length - one.rows.length,
  );
  const sorted = removals.toSorted((one, other) => compared(other.at, one.at));
  const older = sorted.slice(NEWEST_SHOWN);
  const columns = removalColumns(true);
  const caption = `${counted(gone.length, "removal")}, ${humanBytes(freedBy(gone))} freed as measured.`;
  return html`<section aria-labelledby="removed">
    <h2 id="removed">What was removed and why</h2>
    ${
      gone.length === 0
        ? html`<p>Nothing was removed in this period.</p>`
        : htmlTable(GROUP_COLUMNS, groups, { caption })
    }
    ${
      removals.length === 0
        ? null
        : html`<h3>Newest removals</h3>
            ${htmlTable(columns, sorted.slice(0, NEWEST_SHOWN))}`
    }
    ${
      older.length === 0
        ? null
        : html`<details>
            <summary>${older.length} older removals</summary>
            ${htmlTable(columns, older, { most: OLDER_SHOWN })}
          </details>`
    }
  </section>`;
}

/** One group per rule, the largest in bytes first, with every image and its own reason inside. */
function keptSection({ kept }: ImagePlan): Html {
  const sizeOf = (all: ImagePlan["kept"]): bigint =>
    all.reduce((sum, it) => sum + it.image.sizeBytes, 0n);
  const groups = Array.from(
    Map.groupBy(kept, ({ reason }) => reason.kind),
    ([kind, members]) => ({ title: imageKeep.title(kind), members, bytes: sizeOf(members) }),
  ).toSorted((one, other) => compared(other.bytes, one.bytes));
  return html`<section aria-labelledby="kept">
    <h2 id="kept">What is kept and by which rule</h2>
    <p class="soft">
      ${counted(kept.length, "image")}, ${humanBytes(sizeOf(kept))} as reported. The first rule that
      applies decides.
    </p>
    ${groups.map(
      ({ title, members, bytes }) =>
        html`<details>
          <summary>
            <strong>${title}</strong>: ${counted(members.length, "image")}, ${humanBytes(bytes)}
          </summary>
          <ul>
            ${members
              .toSorted((one, other) => compared(other.image.sizeBytes, one.image.sizeBytes))
              .slice(0, ROWS_MAX)
              .map(
                ({ image, reason }) =>
                  html`<li>
                    <strong>${imageName(image)}</strong> ${idOf(image.id)},
                    ${humanBytes(image.sizeBytes)}<br /><span class="soft"
                      >${imageKeep.text(reason)}</span
                    >
                  </li>`,
              )}
          </ul>
          ${more(members.length - ROWS_MAX)}
        </details>`,
    )}
  </section>`;
}

function containersSection(plan: ContainerPlan): Html {
  const kinds = [
    { name: "containers", items: plan.containers },
    { name: "sandboxes", items: plan.sandboxes },
    { name: "pod log directories", items: plan.podLogs },
  ].map(({ name, items }) => {
    const removed = items.filter(({ decision }) => decision.kind === "remove").length;
    return html`<li>${removed} of ${items.length} ${name} would be removed</li>`;
  });
  return html`<section aria-labelledby="containers">
    <h2 id="containers">Containers, sandboxes and pod logs</h2>
    <p>${capitalised(podSourceWords(plan.podSource))}.</p>
    ${plan.logsError === null ? null : notice("Logs", `${logsErrorWords(plan.logsError)}.`)}
    <ul>
      ${kinds}
    </ul>
  </section>`;
}

const EVENTS_SHOWN = 50;

function eventsSection(events: readonly Event[]): Html | null {
  if (events.length === 0) return null;
  const newest = events.toSorted((one, other) => compared(other.at, one.at));
  return html`<section aria-labelledby="warnings">
    <h2 id="warnings">Warnings</h2>
    <ul>
      ${newest
        .slice(0, EVENTS_SHOWN)
        .map(
          ({ at, reason, message }) =>
            html`<li>
              ${moment(at)} <strong>${eventTitle(reason)}</strong>
              <span class="soft">(${reason})</span><br />${message}
            </li>`,
        )}
    </ul>
    ${more(newest.length - EVENTS_SHOWN)}
  </section>`;
}
