/** The plan, the removals and the warnings as sections of the HTML report. */

import { isGone, type Removal } from "../../model/history.ts";
import type { Event } from "../../model/pass.ts";
import type { ContainerPlan, ImagePlan, KeptImage } from "../../model/plan.ts";
import { capitalised, compared } from "../../model/values.ts";
import { bytesCell, counted, humanBytes, humanDuration } from "../bytes.ts";
import { logsErrorWords, podSourceWords, removalTitle } from "../container-reasons.ts";
import { imageBlock, imageKeep, imageTrigger } from "../image-reasons.ts";
import { imageName, removalName } from "../names.ts";
import { breakdownWords, eventTitle, stopWords, targetWords, youngWords } from "../pass-words.ts";
import { type Placed, placed } from "../plan.ts";
import { column, type ItemColumn, RIGHT } from "../table.ts";
import { breakable, type Html, html, htmlTable, idOf, moment, more, type Part } from "./html.ts";

/** Maximum candidates, and images of each keep reason. */
const IMAGES_SHOWN = 100;
/** Removals shown at once; older ones are collapsed, up to a limit. */
const NEWEST_SHOWN = 10;
const OLDER_SHOWN = 490;
const EVENTS_SHOWN = 50;

/** Why nothing is removed now, and what fills the disk. */
export const blockNotices = (plan: ImagePlan): Html =>
  html`${plan.blocks.map(
    (block) =>
      html`<p class="notice alarm">
        <strong>No image is removed now:</strong> ${imageBlock.text(block)}.
      </p>`,
  )}
  ${plan.futility
    .filter((it) => it.futile)
    .map(
      (it) =>
        html`<p class="notice">What fills ${it.filesystem}: ${breakdownWords(it.breakdown)}.</p>`,
    )}`;

type Columns<Item> = readonly ItemColumn<Item, Part>[];

const CANDIDATE_COLUMNS: Columns<Placed> = [
  column("Place", ({ place }) => place, RIGHT),
  column("Image", ({ candidate: { image } }) => [breakable(imageName(image)), " ", idOf(image.id)]),
  column("Size", ({ candidate }) => humanBytes(candidate.image.sizeBytes), RIGHT),
  column("Unused for", ({ candidate }) => humanDuration(candidate.unusedFor), RIGHT),
  column(
    "Why",
    ({ candidate }) => candidate.triggers.map(imageTrigger.text).join("; ") || "unused",
  ),
];

export function nextSection(plan: ImagePlan): Html {
  const expected = plan.candidates.filter((it) => it.expected).length;
  const young = youngWords(plan);
  const end =
    expected === 0
      ? "No image is removed now."
      : `A pass is expected to remove ${expected} and to stop there; ${stopWords(plan.accounting)}.`;
  return html`<section aria-labelledby="next">
    <h2 id="next">What a pass would remove now</h2>
    ${
      plan.triggers.length === 0
        ? html`<p>No threshold exceeded.</p>`
        : plan.targets.map((target) => html`<p>Target: ${targetWords(target)}.</p>`)
    }
    ${
      plan.candidates.length === 0
        ? html`<p class="soft">No candidates.${young === "" ? "" : ` ${young}.`}</p>`
        : htmlTable(CANDIDATE_COLUMNS, placed(plan).slice(0, IMAGES_SHOWN), {
            caption: `Candidates (images that no rule keeps) in order of removal. ${end}`,
            isSoft: ({ candidate }) => !candidate.expected,
          })
    }
    ${more(plan.candidates.length - IMAGES_SHOWN)}
  </section>`;
}

const REMOVAL_COLUMNS: Columns<Removal> = [
  column("When", ({ at }) => moment(at)),
  column("Name", (row) => [
    html`${row.kind} ${breakable(removalName(row))}`,
    row.kind.endsWith("s") ? null : html` ${idOf(row.subject)}`,
    isGone(row) ? null : html` <strong>${row.result}</strong>`,
    row.message === null ? null : html` <span class="soft">${row.message}</span>`,
  ]),
  column("Estimate", ({ freesBytes }) => bytesCell(freesBytes), RIGHT),
  column("Freed", ({ measuredBytes }) => bytesCell(measuredBytes), RIGHT),
  column("Reported", ({ reportedBytes }) => bytesCell(reportedBytes), RIGHT),
  column(
    "Why",
    ({ kind, reason, signal }) =>
      `${removalTitle(kind, reason)}${signal === null ? "" : ` (${signal})`}`,
  ),
];

interface RemovalGroup {
  readonly title: string;
  readonly count: number;
  readonly freedBytes: bigint;
  /** Percent of the largest group. */
  readonly share: number;
}

const GROUP_COLUMNS: Columns<RemovalGroup> = [
  column("Reason", ({ title, share }) => [title, bar(share, "freed")]),
  column("Removed", ({ count }) => count, RIGHT),
  column("Freed", ({ freedBytes }) => (freedBytes === 0n ? "-" : humanBytes(freedBytes)), RIGHT),
];

const bar = (percent: number, style = ""): Html =>
  html`<span class="share ${style}" style="width:${percent}%"></span>`;

export function removedSection(removals: readonly Removal[]): Html {
  const gone = removals.filter(isGone);
  const sorted = removals.toSorted((one, other) => compared(other.at, one.at));
  const older = sorted.slice(NEWEST_SHOWN, NEWEST_SHOWN + OLDER_SHOWN);
  return html`<section aria-labelledby="removed">
    <h2 id="removed">What was removed and why</h2>
    ${
      gone.length === 0
        ? html`<p>Nothing was removed in this period.</p>`
        : htmlTable(GROUP_COLUMNS, removalGroups(gone), {
            caption: `${counted(gone.length, "removal")}, ${humanBytes(freedBy(gone))} freed as measured.`,
          })
    }
    ${
      removals.length === 0
        ? null
        : html`<h3>Newest removals</h3>
            ${htmlTable(REMOVAL_COLUMNS, sorted.slice(0, NEWEST_SHOWN))}`
    }
    ${
      older.length === 0
        ? null
        : html`<details>
            <summary>${older.length} older removals</summary>
            ${htmlTable(REMOVAL_COLUMNS, older)} ${more(sorted.length - NEWEST_SHOWN - OLDER_SHOWN)}
          </details>`
    }
  </section>`;
}

function removalGroups(rows: readonly Removal[]): readonly RemovalGroup[] {
  const byTitle = Map.groupBy(rows, (row) => `${row.kind}: ${removalTitle(row.kind, row.reason)}`);
  const groups = [...byTitle].toSorted(([, one], [, other]) => other.length - one.length);
  const most = groups[0]?.[1].length ?? 1;
  return groups.map(([title, members]) => ({
    title,
    count: members.length,
    freedBytes: freedBy(members),
    share: Math.round((100 * members.length) / most),
  }));
}

const freedBy = (rows: readonly Removal[]): bigint =>
  rows.reduce((sum, row) => sum + (row.measuredBytes ?? 0n), 0n);

/** One group per rule, the largest in bytes first, with every image and its own reason inside. */
export function keptSection({ kept }: ImagePlan): Html {
  const groups = Array.from(
    Map.groupBy(kept, ({ reason }) => reason.kind),
    ([kind, members]) => ({ title: imageKeep.title(kind), members, bytes: sizeOf(members) }),
  ).toSorted((one, other) => compared(other.bytes, one.bytes));
  const most = groups[0]?.bytes ?? 0n;
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
            <strong>${title}</strong>: ${counted(members.length, "image")},
            ${humanBytes(bytes)}${bar(most === 0n ? 0 : Number((bytes * 100n) / most))}
          </summary>
          <ul>
            ${members
              .toSorted((one, other) => compared(other.image.sizeBytes, one.image.sizeBytes))
              .slice(0, IMAGES_SHOWN)
              .map(
                ({ image, reason }) =>
                  html`<li>
                    <strong>${breakable(imageName(image))}</strong> ${idOf(image.id)},
                    ${humanBytes(image.sizeBytes)}<br /><span class="soft"
                      >${imageKeep.text(reason)}</span
                    >
                  </li>`,
              )}
          </ul>
          ${more(members.length - IMAGES_SHOWN)}
        </details>`,
    )}
  </section>`;
}

const sizeOf = (kept: readonly KeptImage[]): bigint =>
  kept.reduce((sum, it) => sum + it.image.sizeBytes, 0n);

interface KindCounts {
  readonly name: string;
  readonly removed: number;
  readonly kept: number;
}

const KIND_COLUMNS: Columns<KindCounts> = [
  column("Kind", ({ name }) => name),
  column("Would be removed", ({ removed }) => removed, RIGHT),
  column("Kept", ({ kept }) => kept, RIGHT),
];

export function containersSection(plan: ContainerPlan): Html {
  const kinds = [
    { name: "Containers", members: plan.containers },
    { name: "Sandboxes", members: plan.sandboxes },
    { name: "Pod logs", members: plan.podLogs },
  ].map(({ name, members }) => {
    const removed = members.filter(({ decision }) => decision.kind === "remove").length;
    return { name, removed, kept: members.length - removed };
  });
  return html`<section aria-labelledby="containers">
    <h2 id="containers">Containers, sandboxes and pod logs</h2>
    <p>${capitalised(podSourceWords(plan.podSource))}.</p>
    ${
      plan.logsError === null
        ? null
        : html`<p class="notice alarm">
            <strong>Logs:</strong> ${logsErrorWords(plan.logsError)}.
          </p>`
    }
    ${htmlTable(KIND_COLUMNS, kinds)}
  </section>`;
}

export function eventsSection(events: readonly Event[]): Html | null {
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
