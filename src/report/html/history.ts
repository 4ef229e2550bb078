/** Removals with their reasons, and warnings, as parts of the HTML report. */

import { isGone, type Removal } from "../../model/history.ts";
import type { Event } from "../../model/pass.ts";
import { type Instant, toRfc3339 } from "../../model/time.ts";
import { counted, humanBytes } from "../bytes.ts";
import { removalTitle } from "../container-reasons.ts";
import type { HistoryReport } from "../document/history.ts";
import { removalName } from "../names.ts";
import { eventTitle } from "../pass-words.ts";
import { more } from "./plan.ts";
import { type HtmlColumns, htmlRow, htmlTable } from "./table.ts";
import { breakable, type Html, html, idOf } from "./text.ts";

/** Shown at once; older ones are collapsed, up to a limit. */
const NEWEST_SHOWN = 10;
const OLDER_SHOWN = 490;
const EVENTS_SHOWN = 50;

export function removedSection(history: HistoryReport): Html {
  const gone = history.removals.filter(isGone);
  const sorted = history.removals.toSorted((one, other) => (one.at > other.at ? -1 : 1));
  const newest = sorted.slice(0, NEWEST_SHOWN);
  const older = sorted.slice(NEWEST_SHOWN, NEWEST_SHOWN + OLDER_SHOWN);
  return html`<section aria-labelledby="removed">
    <h2 id="removed">What was removed and why</h2>
    ${gone.length === 0 ? html`<p>Nothing was removed in this period.</p>` : reasonBars(gone)}
    ${
      newest.length === 0
        ? null
        : html`<h3>Newest removals</h3>
            ${removalTable(newest)}`
    }
    ${
      older.length === 0
        ? null
        : html`<details>
            <summary>${older.length} older removals</summary>
            ${removalTable(older)}${more(sorted.length - newest.length - older.length)}
          </details>`
    }
  </section>`;
}

const COLUMNS: HtmlColumns = {
  titles: ["When", "Name", "Estimate", "Freed", "Reported", "Why"],
  numbers: [2, 3, 4],
};

const removalTable = (rows: readonly Removal[]): Html =>
  htmlTable(COLUMNS, rows.map(removalRow), { isCards: true });

function reasonBars(rows: readonly Removal[]): Html {
  const groups = Array.from(
    Map.groupBy(rows, (row) => `${row.kind}: ${removalTitle(row.kind, row.reason)}`),
    ([title, members]) => ({ title, members, bytes: freedBy(members) }),
  ).toSorted((one, other) => other.members.length - one.members.length);
  const most = groups[0]?.members.length ?? 1;
  const rowsOfGroups = groups.map(({ title, members, bytes }) =>
    htmlRow(REASON_COLUMNS, [
      html`${title}<span
          class="share freed"
          style="width:${Math.round((100 * members.length) / most)}%"
        ></span>`,
      members.length,
      bytes === 0n ? "–" : humanBytes(bytes),
    ]),
  );
  const caption = `${counted(rows.length, "removal")}, ${humanBytes(freedBy(rows))} freed as measured.`;
  return htmlTable(REASON_COLUMNS, rowsOfGroups, { caption });
}

const REASON_COLUMNS: HtmlColumns = {
  titles: ["Reason", "Removed", "Freed"],
  numbers: [1, 2],
};

const freedBy = (rows: readonly Removal[]): bigint =>
  rows.reduce((sum, row) => sum + (row.measuredBytes ?? 0n), 0n);

function removalRow(row: Removal): Html {
  const result = isGone(row) ? null : html` <strong>${row.result}</strong>`;
  const message = row.message === null ? null : html` <span class="soft">${row.message}</span>`;
  return htmlRow(COLUMNS, [
    moment(row.at),
    html`<span
      >${row.kind} ${breakable(removalName(row))}${identified(row)}${result}${message}</span
    >`,
    ...[row.freesBytes, row.measuredBytes, row.reportedBytes].map((bytes) =>
      bytes === null ? "–" : humanBytes(bytes),
    ),
    html`<span
      >${removalTitle(row.kind, row.reason)}${row.signal === null ? "" : ` (${row.signal})`}</span
    >`,
  ]);
}

/** The whole ID, so that a click selects it; the style shortens it. */
const identified = ({ kind, subject }: Removal): Html | null =>
  kind.endsWith("s") ? null : html` ${idOf(subject)}`;

export function eventsSection(events: readonly Event[]): Html | null {
  if (events.length === 0) return null;
  const newest = events.toSorted((one, other) => (one.at > other.at ? -1 : 1));
  const shown = newest.slice(0, EVENTS_SHOWN);
  return html`<section aria-labelledby="warnings">
    <h2 id="warnings">Warnings</h2>
    <ul>
      ${shown.map((event) => html`<li>${moment(event.at)} <strong>${eventTitle(event.reason)}</strong> <span class="soft">(${event.reason})</span><br />${event.message}</li>`)}
    </ul>
    ${more(newest.length - shown.length)}
  </section>`;
}

/** To the minute, in UTC. */
export const moment = (at: Instant): Html =>
  html`<time datetime="${toRfc3339(at)}">${toRfc3339(at).slice(0, 16).replace("T", " ")}</time>`;
