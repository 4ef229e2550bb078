/** The HTML report of `crigc report`: one page without network or scripts. */

import { isGone, type Removal } from "../../model/history.ts";
import type { Event } from "../../model/pass.ts";
import type { ContainerPlan, ImagePlan } from "../../model/plan.ts";
import type { RuntimeInfo } from "../../model/snapshot.ts";
import type { Instant } from "../../model/time.ts";
import { capitalised, compared } from "../../model/values.ts";
import { bytesCell, counted, humanBytes, secondOf } from "../bytes.ts";
import type { ImageUsageReport } from "../disk-usage.ts";
import { type HistoryReport, REGRET_COLUMNS, removalColumns, removalTitle } from "../history.ts";
import { imageBlock, imageKeep } from "../image-reasons.ts";
import { entriesOf, imageColumns } from "../images.ts";
import { kindTitle } from "../names.ts";
import { breakdownWords, eventTitle, stopWords, targetWords } from "../pass-words.ts";
import { candidateColumns, printContainerPlan } from "../plan-table.ts";
import { keptBackWords, placed } from "../plan.ts";
import { column, type Columns, Printer, RIGHT } from "../printer.ts";
import type { Screen } from "../terminal.ts";
import { type DiskReport, diskSection } from "./chart.ts";
import { Html, html, htmlTable, moment, type Part } from "./html.ts";
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
const SCREEN: Screen = { width: null, colour: false, unicode: true, wide: true };

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
          ${images && blockNotices(images)} ${diskSection(report)} ${usage && treemapSection(usage)}
          ${images && nextSection(images)} ${removedSection(history)}
          ${images && keptSection(images, report.generatedAt)}
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

const section = (id: string, title: string, content: Part): Html =>
  html`<section aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    ${content}
  </section>`;

const collapsed = (title: string, content: Part): Html =>
  html`<details>
    <summary>${title}</summary>
    ${content}
  </details>`;

function nextSection(plan: ImagePlan): Html {
  const expected = plan.candidates.filter((it) => it.expected).length;
  const words = keptBackWords(plan);
  const kept = words === "" ? null : html`<p>${capitalised(words)}.</p>`;
  const end =
    expected === 0
      ? "No image is removed now."
      : `A pass is expected to remove ${expected} and to stop there; ${stopWords(plan.accounting)}.`;
  return section("next", "What a pass would remove now", [
    plan.triggers.length === 0 ? html`<p>No threshold exceeded.</p>` : null,
    plan.targets.map((target) => html`<p>Target: ${targetWords(target)}.</p>`),
    plan.candidates.length === 0
      ? html`<p class="soft">No candidates.</p>`
      : htmlTable(candidateColumns(SCREEN), placed(plan), {
          caption: `Candidates (images that no rule keeps) in order of removal. ${end}`,
          isSoft: ({ candidate }) => !candidate.expected,
        }),
    kept,
  ]);
}

/** Removals shown at once; older ones are collapsed, up to a limit. */
const NEWEST_SHOWN = 10;
const OLDER_SHOWN = 490;

const GROUP_COLUMNS: Columns<readonly [title: string, rows: readonly Removal[]]> = [
  column("REASON", ([title]) => title),
  column("REMOVED", ([, rows]) => String(rows.length), RIGHT),
  column("FREED", ([, rows]) => bytesCell(rows.some(isMeasured) ? freedBy(rows) : null), RIGHT),
];

const isMeasured = ({ measuredBytes }: Removal): boolean => measuredBytes !== null;

const freedBy = (rows: readonly Removal[]): bigint =>
  rows.reduce((sum, row) => sum + (row.measuredBytes ?? 0n), 0n);

function removedSection({ removals, regrets }: HistoryReport): Html {
  const gone = removals.filter(isGone);
  const groups = Map.groupBy(gone, (row) => `${kindTitle(row.kind)}: ${removalTitle(row)}`);
  const sorted = removals.toSorted((one, other) => compared(other.at, one.at));
  const older = sorted.slice(NEWEST_SHOWN);
  const columns = removalColumns(SCREEN);
  const caption = `${counted(gone.length, "removal")}, ${humanBytes(freedBy(gone))} freed as measured.`;
  return section("removed", "What was removed and why", [
    gone.length === 0 ? html`<p>Nothing was removed in this period.</p>` : null,
    htmlTable(
      GROUP_COLUMNS,
      [...groups].toSorted(([, one], [, other]) => other.length - one.length),
      { caption },
    ),
    htmlTable(columns, sorted.slice(0, NEWEST_SHOWN), { caption: "Newest removals" }),
    older.length === 0
      ? null
      : collapsed(
          `${older.length} older removals`,
          htmlTable(columns, older, { most: OLDER_SHOWN }),
        ),
    htmlTable(REGRET_COLUMNS, regrets, { caption: "Images that came back after their removal" }),
  ]);
}

/** The largest group in bytes first, with every image and its own reason. */
function keptSection({ kept }: ImagePlan, now: Instant): Html {
  const sizeOf = (all: ImagePlan["kept"]): bigint =>
    all.reduce((sum, it) => sum + it.image.sizeBytes, 0n);
  const groups = [...Map.groupBy(kept, ({ reason }) => reason.kind)].toSorted(
    ([, one], [, other]) => compared(sizeOf(other), sizeOf(one)),
  );
  return section("kept", "What is kept and by which rule", [
    html`<p class="soft">The first rule that applies decides.</p>`,
    groups.map(([kind, members]) =>
      collapsed(
        `${imageKeep.title(kind)}: ${counted(members.length, "image")}, ${humanBytes(sizeOf(members))}`,
        htmlTable(imageColumns(now, SCREEN), entriesOf({ kept: members, candidates: [] })),
      ),
    ),
  ]);
}

function containersSection(plan: ContainerPlan): Html {
  const printer = new Printer(SCREEN);
  printContainerPlan(printer, plan);
  // Already cleaned, with line ends that cleaning would remove.
  const text = new Html(Bun.escapeHTML(printer.text()));
  return section("containers", "Containers, sandboxes and pod logs", html`<pre>${text}</pre>`);
}

const EVENTS_SHOWN = 50;
const EVENT_COLUMNS: Columns<Event> = [
  column("AT", ({ at }) => secondOf(at)),
  column("WARNING", ({ reason }) => `${eventTitle(reason)} (${reason})`, { minimumWidth: 16 }),
  column("MESSAGE", ({ message }) => message, { minimumWidth: 16 }),
];

const eventsSection = (events: readonly Event[]): Html =>
  section(
    "warnings",
    "Warnings",
    events.length === 0
      ? html`<p>None in this period.</p>`
      : htmlTable(
          EVENT_COLUMNS,
          events.toSorted((one, other) => compared(other.at, one.at)),
          { most: EVENTS_SHOWN },
        ),
  );
