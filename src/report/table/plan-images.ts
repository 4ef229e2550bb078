/** The image half of a plan: the target, the candidates in order of removal, the estimated stop, and what is kept. */

import type { ImagePlan, ImageTarget } from "../../model/plan.ts";
import { counted, dayOf, humanBytes, humanDuration } from "../bytes.ts";
import { expectedBytes, type ImageOrder, type Placed, placed } from "../document/plan.ts";
import { imageBlock, imageKeep, planNote, triggerCode } from "../image-reasons.ts";
import { imageName } from "../names.ts";
import { breakdownWords, stopWords, targetWords, youngWords } from "../pass-words.ts";
import { clean, paint, type Screen } from "../terminal.ts";
import { usageLines } from "./disk.ts";
import { grouped, groupLines, shortened } from "./groups.ts";
import { type Column, painted, tableLines, wrapped } from "./table.ts";

/** Candidates shown after the estimated stop, on a terminal. */
const NEXT_SHOWN = 5;

const COLUMNS: readonly Column[] = [
  { title: "#", align: "right" },
  { title: "IMAGE", minimumWidth: 16, cut: "middle" },
  { title: "SIZE", align: "right" },
  // Estimated by layers.
  { title: "FREES", align: "right", optional: true },
  { title: "UNUSED FOR", align: "right" },
  { title: "LAST USED" },
  { title: "WHY", minimumWidth: 10 },
];

/** `sorted`: a different order from that of removal. */
export function imagePlanLines(
  plan: ImagePlan,
  screen: Screen,
  sorted?: ImageOrder,
): readonly string[] {
  return [
    ...blockLines(plan, screen),
    ...plan.usage.flatMap((usage) => [...usageLines(usage, screen), ""]),
    ...wantedLines(plan, screen),
    ...futilityLines(plan, screen),
    ...candidateLines(plan, screen, sorted),
    ...keptLines(plan, screen, sorted),
    ...plan.notes.flatMap((note) => wrapped(`Note: ${planNote.text(note)}`, screen)),
  ];
}

function blockLines(plan: ImagePlan, screen: Screen): readonly string[] {
  if (plan.blocks.length === 0) return [];
  const lines = plan.blocks.flatMap((block) =>
    painted(screen, "red", `No image is removed now: ${imageBlock.text(block)}.`),
  );
  return [...lines, ""];
}

function wantedLines(plan: ImagePlan, screen: Screen): readonly string[] {
  if (plan.targets.length === 0) {
    // The block already names this trigger.
    return plan.triggers.length > 0 ? [] : ["No threshold exceeded, no image is removed.", ""];
  }
  const young = isShort(plan) ? youngWords(plan) : "";
  return [
    ...plan.targets.flatMap((it) => wrapped(`Target: ${targetWords(atMount(it, plan))}.`, screen)),
    ...(young === "" ? [] : wrapped(`${young}.`, screen)),
    "",
  ];
}

/** With the mount point instead of the path that the runtime reports, as above it. */
function atMount(target: ImageTarget, { usage }: ImagePlan): ImageTarget {
  if (!("path" in target)) return target;
  const at = usage.find(({ filesystem }) => filesystem.path === target.path);
  return at === undefined ? target : { ...target, path: at.filesystem.mountpoint };
}

function futilityLines(plan: ImagePlan, screen: Screen): readonly string[] {
  const said = plan.futility
    .filter((it) => it.futile)
    .map((it) => `What fills ${clean(it.filesystem)}: ${breakdownWords(it.breakdown)}.`);
  // Several thresholds of one filesystem may be out of reach.
  const lines = [...new Set(said)].flatMap((line) => wrapped(line, screen));
  return lines.length === 0 ? [] : [...lines, ""];
}

function candidateLines(
  plan: ImagePlan,
  screen: Screen,
  sorted: ImageOrder | undefined,
): readonly string[] {
  if (plan.candidates.length === 0) return [];
  if (sorted !== undefined) return sortedLines(plan, placed(plan, sorted), screen);
  const rowsOfAll = placed(plan);
  const total = rowsOfAll.length;
  const expected = plan.candidates.filter((candidate) => candidate.expected).length;
  const next = screen.width === null || screen.all === true ? total : expected + NEXT_SHOWN;
  const { shown, hidden } = shortened(
    rowsOfAll.slice(0, next),
    screen,
    ({ place }) => place > expected - NEXT_SHOWN && place <= expected + NEXT_SHOWN,
  );
  const [title = "", ...rows] = rowLines(shown, screen);
  const before = shown.filter(({ place }) => place <= expected).length;
  const gap = shown.findIndex(({ place }, index) => place !== index + 1);
  const cut = gap < 0 || gap > before ? before : gap;
  const between = hidden.filter(({ place }) => place <= expected).length;
  return [
    ...wrapped(headline(plan, true), screen),
    title,
    ...rows.slice(0, cut),
    ...hiddenLine(between, "between", screen),
    ...rows.slice(cut, before),
    ...(shown.length > before ? [stopLine(plan, expected, screen)] : []),
    ...rows.slice(before).map((row) => paint(screen, "dim", row)),
    ...hiddenLine(total - shown.length - between, "after them", screen),
    "",
  ];
}

/** In another order than that of removal, no estimated stop is shown. */
function sortedLines(
  plan: ImagePlan,
  rowsOfAll: readonly Placed[],
  screen: Screen,
): readonly string[] {
  const { shown, hidden } = shortened(rowsOfAll, screen);
  return [
    ...wrapped(headline(plan, false), screen),
    ...rowLines(shown, screen),
    ...hiddenLine(hidden.length, "after them", screen),
    "",
  ];
}

const rowLines = (shown: readonly Placed[], screen: Screen): readonly string[] =>
  tableLines(
    screen.wide === true ? [...COLUMNS, { title: "ID" }] : COLUMNS,
    shown.map((it) => [...candidateRow(it), clean(it.candidate.image.id)]),
    screen,
  );

function headline(plan: ImagePlan, isInOrder: boolean): string {
  const total = counted(plan.candidates.length + plan.kept.length, "image");
  const expected = plan.candidates.filter((candidate) => candidate.expected).length;
  if (expected === 0)
    return `None of ${total} would be removed now${isInOrder ? ". Order of removal" : ""}:`;
  return `${expected} of ${total} would be removed${isInOrder ? ", in this order" : ""}, freeing about ${humanBytes(plannedBytes(plan))}${isShort(plan) ? ", less than the target" : ""}:`;
}

const plannedBytes = ({ candidates }: ImagePlan): bigint =>
  candidates.reduce((sum, it) => (it.expected ? sum + expectedBytes(it) : sum), 0n);

/** By the estimate; the pass measures. */
const isShort = (plan: ImagePlan): boolean =>
  plan.targets.some((it) => it.kind === "available-bytes" && it.wantedBytes > plannedBytes(plan)) ||
  plan.candidates.length === 0;

const candidateRow = ({ candidate, place }: Placed): readonly string[] => [
  String(place),
  imageName(candidate.image),
  humanBytes(candidate.image.sizeBytes),
  candidate.frees === undefined ? "-" : humanBytes(candidate.frees.estimateBytes),
  humanDuration(candidate.unusedFor),
  candidate.record.lastUsedAt === null ? "never" : dayOf(candidate.record.lastUsedAt),
  candidate.triggers.map(triggerCode).join(", ") || "-",
];

function stopLine(plan: ImagePlan, expected: number, screen: Screen): string {
  const dash = screen.unicode ? "─" : "-";
  const text = expected === 0 ? "nothing is removed now" : "estimated stop";
  const rest = expected === 0 || plan.targets.length === 0 ? "" : `; ${stopWords(plan.accounting)}`;
  return paint(screen, "cyan", `${dash.repeat(4)} ${text}${rest} ${dash.repeat(4)}`);
}

const hiddenLine = (count: number, where: string, screen: Screen): readonly string[] =>
  count === 0 ? [] : [paint(screen, "dim", `${count} more ${where} (--all or -o json shows all)`)];

function keptLines(plan: ImagePlan, screen: Screen, sorted?: ImageOrder): readonly string[] {
  if (plan.kept.length === 0) return [];
  const groups = grouped(
    sorted === undefined ? plan.kept : plan.kept.toSorted(sorted),
    (kept) => imageKeep.title(kept.reason.kind),
    (kept) => imageName(kept.image),
  );
  return [
    `${counted(plan.kept.length, "image")} kept (crigc explain IMAGE shows why):`,
    ...groupLines(groups, screen),
    "",
  ];
}
