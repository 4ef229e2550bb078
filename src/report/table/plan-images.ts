/** The image half of a plan for people: what is wanted, what would go in which order and why, where it would stop, what stays. */

import type { ImageCandidate, ImagePlan } from "../../model/plan.ts";
import { type Instant, toRfc3339 } from "../../model/time.ts";
import { counted, humanBytes, humanDuration } from "../bytes.ts";
import { expectedBytes } from "../document/plan.ts";
import { imageBlock, imageKeep, triggerCode } from "../image-reasons.ts";
import { imageName } from "../names.ts";
import { breakdownWords, stopWords, targetWords } from "../pass-words.ts";
import { clean, paint, type Screen } from "../terminal.ts";
import { usageLines } from "./disk.ts";
import { grouped, groupLines } from "./groups.ts";
import { type Column, tableLines, wrapped } from "./table.ts";

/** Candidates behind the estimated stop that are shown on a terminal. */
const NEXT_SHOWN = 5;

const COLUMNS: readonly Column[] = [
  { title: "#", align: "right" },
  { title: "IMAGE", minimumWidth: 16, cut: "middle" },
  { title: "SIZE", align: "right" },
  { title: "UNUSED FOR", align: "right" },
  { title: "LAST USED" },
  { title: "WHY", minimumWidth: 8 },
];

/** What layers let expect, where they are known of any candidate. */
const FREES: Column = { title: "FREES", align: "right" };
/** Where it stands: after the size. */
const FREES_AT = 3;

export function imagePlanLines(plan: ImagePlan, screen: Screen): readonly string[] {
  return [
    ...blockLines(plan, screen),
    ...plan.usage.flatMap((usage) => [...usageLines(usage, screen), ""]),
    ...wantedLines(plan, screen),
    ...futilityLines(plan, screen),
    ...candidateLines(plan, screen),
    ...keptLines(plan, screen),
    ...plan.notes.flatMap((note) => wrapped(`Note: ${clean(note)}`, screen)),
  ];
}

function blockLines(plan: ImagePlan, screen: Screen): readonly string[] {
  if (plan.blocks.length === 0) return [];
  const lines = plan.blocks.flatMap((block) =>
    wrapped(`No image is removed now: ${imageBlock.text(block)}.`, screen),
  );
  return [...lines.map((line) => paint(screen, "red", line)), ""];
}

function wantedLines(plan: ImagePlan, screen: Screen): readonly string[] {
  if (plan.targets.length === 0) {
    // What asks in vain has been named with the block.
    return plan.triggers.length > 0 ? [] : ["Nothing asks for image removal now.", ""];
  }
  return [...plan.targets.flatMap((it) => wrapped(`Wanted: ${targetWords(it)}.`, screen)), ""];
}

function futilityLines(plan: ImagePlan, screen: Screen): readonly string[] {
  const lines = plan.futility
    .filter((it) => it.futile)
    .flatMap((it) =>
      wrapped(`What fills ${clean(it.filesystem)}, ${breakdownWords(it.breakdown)}.`, screen),
    );
  return lines.length === 0 ? [] : [...lines, ""];
}

function candidateLines(plan: ImagePlan, screen: Screen): readonly string[] {
  if (plan.candidates.length === 0) return [];
  const expected = plan.candidates.filter((it) => it.expected).length;
  const next = screen.width === null ? plan.candidates.length : expected + NEXT_SHOWN;
  const shown = plan.candidates.slice(0, next);
  const knowsLayers = shown.some(({ frees }) => frees !== undefined);
  const [title = "", ...rows] = tableLines(
    knowsLayers ? COLUMNS.toSpliced(FREES_AT, 0, FREES) : COLUMNS,
    shown.map((it, index) => {
      const row = candidateRow(it, index + 1);
      return knowsLayers ? row.toSpliced(FREES_AT, 0, freesWords(it)) : row;
    }),
    screen,
  );
  return [
    ...wrapped(headline(plan, expected), screen),
    title,
    ...rows.slice(0, expected),
    ...(shown.length > expected ? [stopLine(plan, expected, screen)] : []),
    ...rows.slice(expected).map((row) => paint(screen, "dim", row)),
    ...hiddenLine(plan.candidates.length - shown.length, screen),
    "",
  ];
}

function headline(plan: ImagePlan, expected: number): string {
  const total = plan.candidates.length + plan.kept.length;
  if (expected === 0)
    return `None of ${counted(total, "image")} would go now; this is the order if it came to that:`;
  const bytes = plan.candidates.slice(0, expected).reduce((sum, it) => sum + expectedBytes(it), 0n);
  const enough = plan.targets.every(
    (it) => it.kind !== "available-bytes" || it.wantedBytes <= bytes,
  );
  return `${expected} of ${counted(total, "image")} would go, in this order, about ${humanBytes(bytes)} by the runtime's figures${enough ? "" : ", which is less than wanted"}:`;
}

const candidateRow = (candidate: ImageCandidate, place: number): readonly string[] => [
  String(place),
  imageName(candidate.image),
  humanBytes(candidate.image.sizeBytes),
  humanDuration(candidate.unusedFor),
  candidate.record.lastUsedAt === null ? "never" : dayOf(candidate.record.lastUsedAt),
  candidate.triggers.map(triggerCode).join(", ") || "-",
];

const freesWords = ({ frees }: ImageCandidate): string =>
  frees === undefined ? "-" : humanBytes(frees.estimateBytes);

const dayOf = (at: Instant): string => toRfc3339(at).slice(0, 10);

function stopLine(plan: ImagePlan, expected: number, screen: Screen): string {
  const dash = screen.unicode ? "─" : "-";
  const text = expected === 0 ? "nothing goes now" : "estimated stop";
  const rest = expected === 0 || plan.targets.length === 0 ? "" : `; ${stopWords(plan.accounting)}`;
  return paint(screen, "cyan", `${dash.repeat(4)} ${text}${rest} ${dash.repeat(4)}`);
}

const hiddenLine = (count: number, screen: Screen): readonly string[] =>
  count === 0
    ? []
    : [paint(screen, "dim", `and ${count} more behind them (-o json lists every one)`)];

function keptLines(plan: ImagePlan, screen: Screen): readonly string[] {
  if (plan.kept.length === 0) return [];
  const groups = grouped(
    plan.kept,
    (kept) => imageKeep.title(kept.reason.kind),
    (kept) => imageName(kept.image),
  );
  return [
    `${counted(plan.kept.length, "image")} kept (crigc explain IMAGE tells more of one):`,
    ...groupLines(groups, screen),
    "",
  ];
}
