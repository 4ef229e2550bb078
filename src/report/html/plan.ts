/** What would be removed next and what is kept, as parts of the HTML report. */

import type { ContainerPlan, ImageCandidate, ImagePlan, KeptImage } from "../../model/plan.ts";
import { capitalised, compared } from "../../model/values.ts";
import { counted, humanBytes, humanDuration } from "../bytes.ts";
import { logsErrorWords, podSourceWords } from "../container-reasons.ts";
import { imageBlock, imageKeep, imageTrigger } from "../image-reasons.ts";
import { imageName } from "../names.ts";
import { breakdownWords, stopWords, targetWords, youngWords } from "../pass-words.ts";
import { type HtmlColumns, htmlRow, htmlTable } from "./table.ts";
import { breakable, type Html, html, idOf } from "./text.ts";

const CANDIDATES_SHOWN = 100;
const KEPT_SHOWN = 100;

/** Why nothing is removed now, and what fills the disk. */
export function blockNotices(plan: ImagePlan): Html {
  const blocks = plan.blocks.map(
    (block) =>
      html`<p class="notice alarm">
        <strong>No image is removed now:</strong> ${imageBlock.text(block)}.
      </p>`,
  );
  const futile = plan.futility
    .filter((it) => it.futile)
    .map(
      (it) =>
        html`<p class="notice">What fills ${it.filesystem}: ${breakdownWords(it.breakdown)}.</p>`,
    );
  return html`${[...blocks, ...futile]}`;
}

export function nextSection(plan: ImagePlan): Html {
  const expected = plan.candidates.filter((it) => it.expected).length;
  const shown = plan.candidates.slice(0, CANDIDATES_SHOWN);
  const wanted = plan.targets.map((target) => html`<p>Target: ${targetWords(target)}.</p>`);
  return html`<section aria-labelledby="next">
    <h2 id="next">What a pass would remove now</h2>
    ${plan.triggers.length === 0 ? html`<p>No threshold exceeded.</p>` : wanted}
    ${
      shown.length === 0
        ? html`<p class="soft">No candidates.${young(plan)}</p>`
        : html`${candidateTable(plan, shown, expected)}
          ${more(plan.candidates.length - shown.length)}`
    }
  </section>`;
}

const COLUMNS: HtmlColumns = {
  titles: ["Place", "Image", "Size", "Unused for", "Why"],
  numbers: [0, 2, 3],
};

function candidateTable(plan: ImagePlan, shown: readonly ImageCandidate[], expected: number): Html {
  const caption = `Candidates (images that no rule keeps) in order of removal${expected === 0 ? "" : `; a pass is expected to remove ${expected}`}.`;
  const stop = html`<tr class="stop">
    <td colspan="5">
      ${expected === 0 ? "No image is removed now. Order of removal:" : `Estimated stop: ${stopWords(plan.accounting)}`}
    </td>
  </tr>`;
  const rows = shown.map(({ image, unusedFor, triggers, expected: isExpected }, index) => [
    index === expected ? stop : null,
    htmlRow(
      COLUMNS,
      [
        index + 1,
        html`<span>${breakable(imageName(image))} ${idOf(image.id)}</span>`,
        humanBytes(image.sizeBytes),
        humanDuration(unusedFor),
        html`<span>${triggers.map(imageTrigger.text).join("; ") || "unused"}</span>`,
      ],
      isExpected ? undefined : "behind",
    ),
  ]);
  return htmlTable(COLUMNS, rows, { caption, isCards: true });
}

/** One group per rule, the largest in bytes first, with every image and its own reason inside. */
export function keptSection(plan: ImagePlan): Html {
  const groups = keptGroups(plan.kept);
  const most = groups[0]?.bytes ?? 0n;
  return html`<section aria-labelledby="kept">
    <h2 id="kept">What is kept and by which rule</h2>
    <p class="soft">
      ${counted(plan.kept.length, "image")}, ${humanBytes(sizeOf(plan.kept))} as reported. The first
      rule that applies decides.
    </p>
    ${groups.map((group) => keptGroup(group, most))}
  </section>`;
}

interface KeptGroup {
  readonly title: string;
  readonly members: readonly KeptImage[];
  readonly bytes: bigint;
}

const keptGroups = (kept: readonly KeptImage[]): readonly KeptGroup[] =>
  Array.from(
    Map.groupBy(kept, ({ reason }) => reason.kind),
    ([kind, members]) => ({ title: imageKeep.title(kind), members, bytes: sizeOf(members) }),
  ).toSorted((one, other) => compared(other.bytes, one.bytes));

function keptGroup(group: KeptGroup, most: bigint): Html {
  const share = most === 0n ? 0 : Number((group.bytes * 100n) / most);
  const sorted = group.members.toSorted((one, other) =>
    compared(other.image.sizeBytes, one.image.sizeBytes),
  );
  const shown = sorted.slice(0, KEPT_SHOWN);
  return html`<details>
    <summary>
      <strong>${group.title}</strong>: ${counted(group.members.length, "image")},
      ${humanBytes(group.bytes)}<span class="share" style="width:${share}%"></span>
    </summary>
    <ul>
      ${shown.map((it) => html`<li><strong>${breakable(imageName(it.image))}</strong> ${idOf(it.image.id)}, ${humanBytes(it.image.sizeBytes)}<br /><span class="soft">${imageKeep.text(it.reason)}</span></li>`)}
    </ul>
    ${more(sorted.length - shown.length)}
  </details>`;
}

const sizeOf = (kept: readonly KeptImage[]): bigint =>
  kept.reduce((sum, it) => sum + it.image.sizeBytes, 0n);

export function containersSection(plan: ContainerPlan): Html {
  const kinds = [
    ["Containers", plan.containers],
    ["Sandboxes", plan.sandboxes],
    ["Pod logs", plan.podLogs],
  ] as const;
  const rows = kinds.map(([name, members]) => {
    const removed = members.filter((it) => it.decision.kind === "remove").length;
    return htmlRow(KIND_COLUMNS, [name, removed, members.length - removed]);
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
    ${htmlTable(KIND_COLUMNS, rows)}
  </section>`;
}

const KIND_COLUMNS: HtmlColumns = {
  titles: ["Kind", "Would be removed", "Kept"],
  numbers: [1, 2],
};

const young = (plan: ImagePlan): string => {
  const words = youngWords(plan);
  return words === "" ? "" : ` ${words}.`;
};

export const more = (count: number): Html | null =>
  count <= 0 ? null : html`<p class="soft">and ${count} more.</p>`;
