/** The output of `crigc plan`: candidates in order of removal, the estimated stop, reasons, and what is kept. */

import type { ImagePlan, ImageTarget } from "../model/plan.ts";
import { bytesCell, counted, dayCell, humanBytes, humanDuration } from "./bytes.ts";
import { usageLines } from "./disk.ts";
import { imageBlock, imageKeep, planNote, triggerCode } from "./image-reasons.ts";
import { imageName } from "./names.ts";
import { breakdownWords, stopWords, targetWords, youngWords } from "./pass-words.ts";
import { containerPlanLines } from "./plan-containers.ts";
import { type ImageOrder, type Placed, placed, plannedBytes, type PlanReport } from "./plan.ts";
import {
  column,
  grouped,
  groupLines,
  type ItemColumn,
  itemLines,
  NAME,
  nodeLine,
  painted,
  RIGHT,
  shortened,
  text,
  wrapped,
} from "./table.ts";
import { clean, paint, type Screen } from "./terminal.ts";

export function planTable(report: PlanReport, screen: Screen): string {
  const { containers, images } = report.plan;
  const explained = images?.blocks.map(({ kind }) => kind);
  return text([
    nodeLine(report.runtime, report.observedAt, screen),
    "",
    ...(images === null ? [] : imagePlanLines(images, screen, report.sorted)),
    ...(containers === null ? [] : containerPlanLines(containers, screen, explained)),
  ]);
}

/** `sorted`: a different order from that of removal. */
export function imagePlanLines(
  plan: ImagePlan,
  screen: Screen,
  sorted?: ImageOrder,
): readonly string[] {
  return [
    ...plan.blocks.flatMap((block) =>
      painted(screen, "red", `No image is removed now: ${imageBlock.text(block)}.`),
    ),
    "",
    ...plan.usage.flatMap((usage) => [...usageLines(usage, screen), ""]),
    ...targetLines(plan, screen),
    ...futilityLines(plan, screen),
    ...candidateLines(plan, screen, sorted),
    ...keptLines(plan, screen, sorted),
    ...plan.notes.flatMap((note) => wrapped(`Note: ${planNote.text(note)}`, screen)),
  ];
}

function targetLines(plan: ImagePlan, screen: Screen): readonly string[] {
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
  const fills = plan.futility
    .filter((it) => it.futile)
    .map((it) => `What fills ${clean(it.filesystem)}: ${breakdownWords(it.breakdown)}.`);
  // Several thresholds of one filesystem may be out of reach.
  return [...[...new Set(fills)].flatMap((line) => wrapped(line, screen)), ""];
}

/** Candidates shown after the estimated stop, on a terminal. */
const NEXT_SHOWN = 5;

/** In another order than that of removal, no estimated stop is shown. */
function candidateLines(
  plan: ImagePlan,
  screen: Screen,
  sorted: ImageOrder | undefined,
): readonly string[] {
  if (plan.candidates.length === 0) return [];
  const all = placed(plan, sorted);
  const expected = plan.candidates.filter((candidate) => candidate.expected).length;
  const isInOrder = sorted === undefined;
  const next =
    !isInOrder || screen.width === null || screen.all === true ? Infinity : expected + NEXT_SHOWN;
  const { shown, hidden } = shortened(
    all.slice(0, next),
    screen,
    ({ place }) => isInOrder && Math.abs(place - expected - 0.5) < NEXT_SHOWN,
  );
  const [title = "", ...rows] = itemLines({ columns: columnsOf(screen), items: shown }, screen);
  if (!isInOrder)
    return [
      ...wrapped(headline(plan, false), screen),
      title,
      ...rows,
      ...hiddenLine(hidden.length, "after them", screen),
      "",
    ];
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
    ...hiddenLine(all.length - shown.length - between, "after them", screen),
    "",
  ];
}

function headline(plan: ImagePlan, isInOrder: boolean): string {
  const total = counted(plan.candidates.length + plan.kept.length, "image");
  const expected = plan.candidates.filter((candidate) => candidate.expected).length;
  if (expected === 0)
    return `None of ${total} would be removed now${isInOrder ? ". Order of removal" : ""}:`;
  return `${expected} of ${total} would be removed${isInOrder ? ", in this order" : ""}, freeing about ${humanBytes(plannedBytes(plan))}${isShort(plan) ? ", less than the target" : ""}:`;
}

/** By the estimate; the pass measures. */
const isShort = (plan: ImagePlan): boolean =>
  plan.targets.some((it) => it.kind === "available-bytes" && it.wantedBytes > plannedBytes(plan)) ||
  plan.candidates.length === 0;

const COLUMNS: readonly ItemColumn<Placed>[] = [
  column("#", ({ place }) => String(place), RIGHT),
  column("IMAGE", ({ candidate }) => imageName(candidate.image), NAME),
  column("SIZE", ({ candidate }) => humanBytes(candidate.image.sizeBytes), RIGHT),
  // Estimated by layers.
  column("FREES", (it) => bytesCell(it.candidate.frees?.estimateBytes), {
    ...RIGHT,
    optional: true,
  }),
  column("UNUSED FOR", ({ candidate }) => humanDuration(candidate.unusedFor), RIGHT),
  column("LAST USED", ({ candidate: { record } }) => dayCell(record.lastUsedAt)),
  column("WHY", ({ candidate }) => candidate.triggers.map(triggerCode).join(", ") || "-", {
    minimumWidth: 10,
  }),
];

const columnsOf = (screen: Screen): readonly ItemColumn<Placed>[] =>
  screen.wide === true
    ? [...COLUMNS, column("ID", ({ candidate }) => clean(candidate.image.id))]
    : COLUMNS;

function stopLine(plan: ImagePlan, expected: number, screen: Screen): string {
  const dash = (screen.unicode ? "─" : "-").repeat(4);
  const words = expected === 0 ? "nothing is removed now" : "estimated stop";
  const rest = expected === 0 || plan.targets.length === 0 ? "" : `; ${stopWords(plan.accounting)}`;
  return paint(screen, "cyan", `${dash} ${words}${rest} ${dash}`);
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
