/** The HTML report of `crigc report`, from the documents of the node and its history. */

import { isGone } from "../../model/history.ts";
import type { Plan } from "../../model/plan.ts";
import type { RuntimeInfo } from "../../model/snapshot.ts";
import { type Instant, toRfc3339 } from "../../model/time.ts";
import { capitalised, compared } from "../../model/values.ts";
import { imageUsageJson, type ImageUsageReport, shareColumns } from "../disk-usage.ts";
import { breakdownWords, printUsage } from "../disk.ts";
import {
  type HistoryDocument,
  historyDocument,
  type HistoryReport,
  REMOVAL_COLUMNS,
  type RemovalJson,
  removalTitle,
  RETURNED_COLUMNS,
} from "../history.ts";
import { imageKeep } from "../image-reasons.ts";
import { candidateColumns, KEPT_COLUMNS, printContainerPlan, targetLines } from "../plan-table.ts";
import {
  type ContainerPlanJson,
  type ImagePlanJson,
  type KeptJson,
  planBody,
  STOP_WORDS,
} from "../plan.ts";
import { column, type Columns, Printer, RIGHT } from "../printer.ts";
import type { Screen } from "../terminal.ts";
import { bytesCell, counted, humanBytes, instantOf, kindTitle, secondOf } from "../words.ts";
import { Html, html, htmlPage, htmlTable, moment, type Part } from "./html.ts";

export interface HtmlReport {
  readonly period: { readonly from: Instant; readonly to: Instant };
  readonly node: string;
  readonly version: string;
  readonly generatedAt: Instant;
  readonly history: HistoryReport;
  /** `null` if the node could not be read. */
  readonly runtime: RuntimeInfo | null;
  /** The node as it is now; `null` if it could not be read. */
  readonly plan: Plan | null;
  /** Disk usage of its images; `null` if it could not be read. */
  readonly usage: ImageUsageReport | null;
  /** Why the node could not be read. */
  readonly planError: string | null;
}

const SCREEN: Screen = { width: null, colour: false, unicode: true };

export function htmlReport({ plan, runtime, usage, planError, ...report }: HtmlReport): string {
  const { images, containers } = planBody(plan ?? { images: null, containers: null });
  const history = historyDocument(report.history);
  const generatedAt = toRfc3339(report.generatedAt);
  return htmlPage({
    title: `crigc report of ${report.node}`,
    header: html`<h1>Garbage collection on ${report.node}</h1>
      <p class="soft">
        ${moment(toRfc3339(report.period.from))} to
        ${moment(toRfc3339(report.period.to))}${runtime === null ? "" : `, ${runtime.name} ${runtime.version}`},
        written ${moment(generatedAt)}
      </p>`,
    main: [
      planError === null
        ? null
        : notice("Cannot read the node", `${planError}. This page shows the history only.`),
      images && blockNotices(images),
      images && diskSection(images, usage),
      images && nextSection(images),
      removedSection(history),
      images && keptSection(images),
      containers && containersSection(containers),
      eventsSection(history.events),
    ],
    footer: `Written by crigc ${report.version}. Times are in UTC. Image sizes are as the runtime reports them; freed space is measured on the filesystem.`,
  });
}

const notice = (title: string, text: string): Html =>
  html`<p class="notice alarm"><strong>${title}:</strong> ${text}</p>`;

/** Why nothing is removed now, and what fills the disk. */
const blockNotices = (plan: ImagePlanJson): readonly Html[] => [
  ...plan.blocks.map(({ text }) => notice("No image is removed now", `${text}.`)),
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

function diskSection({ usage: disks }: ImagePlanJson, usage: ImageUsageReport | null): Html {
  const repositories = usage === null ? [] : imageUsageJson(usage).byRepository;
  return section("disk", "Disk usage", [
    printed((printer) => disks.forEach((disk) => printUsage(printer, disk))),
    htmlTable(shareColumns("REPOSITORY"), repositories, {
      caption: "Images by repository: layers of its own, and sizes as reported",
    }),
  ]);
}

/** As on a terminal: cleaned, with line ends that cleaning would remove. */
function printed(print: (printer: Printer) => void): Html {
  const printer = new Printer(SCREEN);
  print(printer);
  return html`<pre>${new Html(Bun.escapeHTML(printer.text()))}</pre>`;
}

function nextSection(plan: ImagePlanJson): Html {
  const words = plan.youngText ?? "";
  const end =
    plan.expectedRemovals === 0
      ? "No image is removed now."
      : `A pass is expected to remove ${plan.expectedRemovals} and to stop there; ${STOP_WORDS}.`;
  return section("next", "What a pass would remove now", [
    plan.triggers.length === 0
      ? html`<p>No threshold that images can relieve is exceeded.</p>`
      : null,
    targetLines(plan).map((line) => html`<p>${line}</p>`),
    plan.candidates.length === 0
      ? html`<p class="soft">No candidates.</p>`
      : htmlTable(candidateColumns(plan), [...plan.candidates], {
          caption: `Candidates (images that no rule keeps) in order of removal. ${end}`,
          isSoft: ({ expected }) => !expected,
        }),
    words === "" ? null : html`<p>${capitalised(words)}.</p>`,
  ]);
}

/** Removals shown at once; older ones are collapsed, up to a limit. */
const NEWEST_SHOWN = 10;
const OLDER_SHOWN = 490;

const GROUP_COLUMNS: Columns<readonly [title: string, rows: readonly RemovalJson[]]> = [
  column("REASON", ([title]) => title),
  column("REMOVED", ([, rows]) => String(rows.length), RIGHT),
  column("FREED", ([, rows]) => bytesCell(rows.some(isMeasured) ? freedBy(rows) : null), RIGHT),
];

const isMeasured = ({ measuredBytes }: RemovalJson): boolean => measuredBytes !== null;

const freedBy = (rows: readonly RemovalJson[]): bigint =>
  rows.reduce((sum, row) => sum + (row.measuredBytes ?? 0n), 0n);

function removedSection({ removals, returned }: HistoryDocument): Html {
  const gone = removals.filter(isGone);
  const groups = Map.groupBy(gone, (row) => `${kindTitle(row.kind)}: ${removalTitle(row)}`);
  const sorted = newestFirst(removals);
  const older = sorted.slice(NEWEST_SHOWN);
  const columns: Columns<RemovalJson> = [
    column("AT", ({ at }) => secondOf(at)),
    ...REMOVAL_COLUMNS,
    column("ID", ({ id }) => id),
  ];
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
          counted(older.length, "older removal"),
          htmlTable(columns, older, { most: OLDER_SHOWN }),
        ),
    htmlTable(RETURNED_COLUMNS, returned, { caption: "Images that came back after their removal" }),
  ]);
}

const newestFirst = <Item extends { readonly at: string }>(
  items: readonly Item[],
): readonly Item[] =>
  items.toSorted((one, other) => compared(instantOf(other.at), instantOf(one.at)));

/** The largest group in bytes first, with every image and its own reason. */
function keptSection({ kept }: ImagePlanJson): Html {
  const sizeOf = (all: readonly KeptJson[]): bigint =>
    all.reduce((sum, it) => sum + it.sizeBytes, 0n);
  const groups = [...Map.groupBy(kept, ({ reason }) => reason.code)].toSorted(
    ([, one], [, other]) => compared(sizeOf(other), sizeOf(one)),
  );
  return section("kept", "What is kept and by which rule", [
    html`<p class="soft">The first rule that applies decides.</p>`,
    groups.map(([code, members]) =>
      collapsed(
        `${imageKeep.title(code)}: ${counted(members.length, "image")}, ${humanBytes(sizeOf(members))}`,
        htmlTable([...KEPT_COLUMNS, column<KeptJson>("ID", ({ id }) => id)], members),
      ),
    ),
  ]);
}

const containersSection = (plan: ContainerPlanJson): Html =>
  section(
    "containers",
    "Containers, sandboxes and pod logs",
    printed((printer) => printContainerPlan(printer, plan)),
  );

const EVENTS_SHOWN = 50;
const EVENT_COLUMNS: Columns<HistoryDocument["events"][number]> = [
  column("AT", ({ at }) => secondOf(at)),
  column("WARNING", ({ reason }) => reason),
  column("MESSAGE", ({ message }) => message),
];

const eventsSection = (events: HistoryDocument["events"]): Html =>
  section(
    "warnings",
    "Warnings",
    events.length === 0
      ? html`<p>None in this period.</p>`
      : htmlTable(EVENT_COLUMNS, newestFirst(events), { most: EVENTS_SHOWN }),
  );
