/** The output of `crigc plan`: what would be removed in which order, the estimated stop, reasons, and what is kept. */

import { frequencyOf } from "../model/frequency.ts";
import type {
  ContainerPlan,
  Decision,
  ImageCandidate,
  ImagePlan,
  ImageTarget,
} from "../model/plan.ts";
import type { ImageBlock } from "../model/reason.ts";
import { capitalised } from "../model/values.ts";
import { bytesCell, counted, dayOf, humanBytes, humanDuration } from "./bytes.ts";
import {
  containerReasons,
  logReasons,
  logsErrorWords,
  podSourceWords,
  sandboxReasons,
} from "./container-reasons.ts";
import { printUsage } from "./disk.ts";
import { imageBlock, imageKeep, planNote, triggerTitle } from "./image-reasons.ts";
import { containerName, imageName, sandboxName, shortId } from "./names.ts";
import { breakdownWords, stopWords, targetWords } from "./pass-words.ts";
import {
  type ImageOrder,
  type Placed,
  placed,
  plannedBytes,
  type PlanReport,
  preloadedWords,
  youngWords,
} from "./plan.ts";
import {
  column,
  type Columns,
  NAME,
  OPTIONAL,
  Printer,
  RIGHT,
  shortened,
  tableLines,
} from "./printer.ts";
import type { Kind, Reasons } from "./reasons.ts";
import { clean, type Screen } from "./terminal.ts";

export function planTable(report: PlanReport, screen: Screen): string {
  const { containers, images } = report.plan;
  const printer = new Printer(screen);
  printer.node(report);
  printer.gap();
  if (images !== null) printImagePlan(printer, images, report.sorted);
  if (containers !== null)
    printContainerPlan(
      printer,
      containers,
      images?.blocks.map(({ kind }) => kind),
    );
  return printer.text();
}

/** `sorted`: a different order from that of removal. */
export function printImagePlan(printer: Printer, plan: ImagePlan, sorted?: ImageOrder): void {
  for (const block of plan.blocks)
    printer.say(`No image is removed now: ${imageBlock.text(block)}.`, "red");
  printer.gap();
  for (const usage of plan.usage) {
    printUsage(printer, usage);
    printer.gap();
  }
  printTargets(printer, plan);
  // Several thresholds of one filesystem may be out of reach.
  const fills = plan.futility
    .filter((it) => it.futile)
    .map((it) => `What fills ${clean(it.filesystem)}: ${breakdownWords(it.breakdown)}.`);
  for (const line of new Set(fills)) printer.say(line);
  printer.gap();
  if (plan.candidates.length > 0) printCandidates(printer, plan, sorted);
  if (plan.kept.length > 0) {
    printer.line(`${counted(plan.kept.length, "image")} kept (crigc explain IMAGE shows why):`);
    printer.groups(
      sorted === undefined ? plan.kept : plan.kept.toSorted(sorted),
      ({ reason }) => imageKeep.title(reason.kind),
      ({ image }) => imageName(image),
    );
    const preloaded = preloadedWords(plan);
    if (preloaded !== "") printer.say(`${preloaded}.`);
    printer.gap();
  }
  for (const note of plan.notes) printer.say(`Note: ${planNote.text(note)}`);
}

function printTargets(printer: Printer, plan: ImagePlan): void {
  for (const target of plan.targets)
    printer.say(`Target: ${targetWords(atMountpoint(target, plan))}.`);
  // A block names its trigger itself.
  if (plan.targets.length === 0 && plan.triggers.length === 0)
    printer.line("No threshold exceeded, no image is removed.");
  const young = plan.targets.length > 0 && isShort(plan) ? youngWords(plan) : "";
  if (young !== "") printer.say(`${young}.`);
  printer.gap();
}

/** With the mount point instead of the path that the runtime reports, as above it. */
function atMountpoint(target: ImageTarget, { usage }: ImagePlan): ImageTarget {
  if (!("path" in target)) return target;
  const at = usage.find(({ filesystem }) => filesystem.path === target.path);
  return at === undefined ? target : { ...target, path: at.filesystem.mountpoint };
}

/** By the estimate; the pass measures. */
const isShort = (plan: ImagePlan): boolean =>
  plan.targets.some((it) => it.kind === "available-bytes" && it.wantedBytes > plannedBytes(plan)) ||
  plan.candidates.length === 0;

/** Candidates shown after the estimated stop, on a terminal. */
const NEXT_SHOWN = 5;

/** In another order than that of removal, no estimated stop is shown. */
function printCandidates(printer: Printer, plan: ImagePlan, sorted?: ImageOrder): void {
  const { screen } = printer;
  const all = placed(plan, sorted);
  const expected = plan.candidates.filter((candidate) => candidate.expected).length;
  const isInOrder = sorted === undefined;
  const isCut = isInOrder && screen.width !== null && screen.all !== true;
  const { shown, hidden } = shortened(
    isCut ? all.slice(0, expected + NEXT_SHOWN) : all,
    screen,
    ({ place }) => isInOrder && Math.abs(place - expected - 0.5) < NEXT_SHOWN,
  );
  const [title = "", ...rows] = tableLines(candidateColumns(screen), shown, screen);
  const more = (count: number, where: string): void => {
    if (count > 0) printer.line(`${count} more ${where} (--all or -o json shows all)`, "dim");
  };
  printer.say(headline(plan, isInOrder));
  printer.line(title);
  const between = isInOrder ? hidden.filter(({ place }) => place <= expected).length : 0;
  for (const [index, row] of rows.entries()) {
    const place = shown[index]?.place ?? 0;
    if (isInOrder && place > (shown[index - 1]?.place ?? 0) + 1) more(between, "between");
    if (isInOrder && place === expected + 1) printer.line(stopLine(plan, expected, screen), "cyan");
    printer.line(row, isInOrder && place > expected ? "dim" : undefined);
  }
  more(all.length - shown.length - between, "after them");
  printer.gap();
}

function headline(plan: ImagePlan, isInOrder: boolean): string {
  const total = counted(plan.candidates.length + plan.kept.length, "image");
  const expected = plan.candidates.filter((candidate) => candidate.expected).length;
  if (expected === 0)
    return `None of ${total} would be removed now${isInOrder ? ". Order of removal" : ""}:`;
  return `${expected} of ${total} would be removed${isInOrder ? ", in this order" : ""}, freeing about ${humanBytes(plannedBytes(plan))}${isShort(plan) ? ", less than the target" : ""}:`;
}

export const candidateColumns = (screen: Screen): Columns<Placed> => [
  column("#", ({ place }) => String(place), RIGHT),
  column("IMAGE", ({ candidate }) => imageName(candidate.image), NAME),
  column("SIZE", ({ candidate }) => humanBytes(candidate.image.sizeBytes), RIGHT),
  // Estimated by layers.
  column("FREES", ({ candidate }) => bytesCell(candidate.frees?.estimateBytes), OPTIONAL),
  // In the order `frequent`.
  column(
    "USES",
    ({ candidate }) => usesCell(candidate, frequencyOf(candidate.record).uses),
    OPTIONAL,
  ),
  column("KEY", ({ candidate }) => usesCell(candidate, candidate.orderKey), OPTIONAL),
  column("UNUSED FOR", ({ candidate }) => humanDuration(candidate.unusedFor), RIGHT),
  // An image that was never seen in use is unused since crigc first saw it.
  column(
    "LAST USED",
    ({ candidate: { record } }) => (record.lastUsedAt === null ? "-" : dayOf(record.lastUsedAt)),
    { optional: true },
  ),
  column("WHY", ({ candidate }) => candidate.triggers.map(triggerTitle).join(", ") || "-", {
    minimumWidth: 10,
  }),
  ...(screen.wide === true
    ? [column<Placed>("ID", ({ candidate }) => clean(candidate.image.id))]
    : []),
];

const usesCell = ({ orderKey }: ImageCandidate, value: number | undefined): string =>
  orderKey === undefined ? "-" : String(value);

function stopLine(plan: ImagePlan, expected: number, screen: Screen): string {
  const dash = (screen.unicode ? "─" : "-").repeat(4);
  const words = expected === 0 ? "nothing is removed now" : "estimated stop";
  const rest = expected === 0 || plan.targets.length === 0 ? "" : `; ${stopWords(plan.accounting)}`;
  return `${dash} ${words}${rest} ${dash}`;
}

/** `explained`: blocks that the image half has explained. */
export function printContainerPlan(
  printer: Printer,
  plan: ContainerPlan,
  explained: readonly ImageBlock["kind"][] = [],
): void {
  const { blocks, logsError, links, strays } = plan;
  const nothing = "No container, sandbox or log is removed now";
  for (const block of blocks)
    printer.say(
      explained.includes(block.kind)
        ? `${nothing} either.`
        : `${nothing}: ${imageBlock.text(block)}.`,
      "red",
    );
  if (logsError !== null) printer.say(`${capitalised(logsErrorWords(logsError))}.`, "red");
  printer.say(`${capitalised(podSourceWords(plan.podSource))}.`);
  printDecisions(printer, {
    one: "container",
    many: "containers",
    reasons: containerReasons,
    items: plan.containers.map(({ container, decision, stopFirst }) => ({
      decision,
      name: containerName(container),
      id: shortId(container.id),
      state: stopFirst ? `${container.state}, stopped first` : container.state,
    })),
  });
  printDecisions(printer, {
    one: "sandbox",
    many: "sandboxes",
    reasons: sandboxReasons,
    items: plan.sandboxes.map(({ sandbox, decision }) => ({
      decision,
      name: sandboxName(sandbox),
      id: shortId(sandbox.id),
      state: sandbox.state,
    })),
  });
  printDecisions(printer, {
    one: "pod log directory",
    many: "pod log directories",
    reasons: logReasons,
    items: plan.podLogs.map(({ directory, decision }) => ({
      decision,
      name: clean(directory.entry),
    })),
  });
  printer.gap();
  if (links.length > 0)
    printer.say(
      `${counted(links.length, "dangling log link")}: a pass checks each with the runtime.`,
    );
  if (strays.length > 0) printer.say(`Not pod logs, kept: ${strays.map(clean).join(", ")}.`);
  printer.gap();
}

/** Containers, sandboxes or pod logs. */
interface Decisions<Reason extends Kind> {
  readonly one: string;
  readonly many: string;
  readonly reasons: Reasons<Reason>;
  readonly items: readonly {
    readonly decision: Decision<Reason, Reason>;
    readonly name: string;
    /** Logs have none, and no state. */
    readonly id?: string;
    readonly state?: string;
  }[];
}

/** Rows for what is removed, titles for what is kept. */
function printDecisions<Reason extends Kind>(
  printer: Printer,
  { one, many, reasons, items }: Decisions<Reason>,
): void {
  const removed = items.filter(({ decision }) => decision.kind === "remove");
  const kept = items.filter(({ decision }) => decision.kind === "keep");
  type Item = (typeof items)[number];
  const why = ({ decision }: Item): string => reasons.text(decision.reason);
  const columns: Columns<Item> = [
    column("ID", ({ id = "-" }) => id, { optional: true }),
    column("NAME", ({ name }) => name, { minimumWidth: 12, cut: "middle" }),
    column("STATE", ({ state = "-" }) => state, { optional: true }),
    column("WHY", why, { minimumWidth: 12 }),
  ];
  if (removed.length > 0) {
    printer.gap();
    printer.line(`${removed.length} of ${counted(items.length, one, many)} would be removed:`);
    printer.table(columns, removed, { groupOf: why });
  }
  if (kept.length > 0) {
    printer.gap();
    printer.line(`${counted(kept.length, one, many)} kept:`);
    printer.groups(
      kept,
      ({ decision }) => reasons.title(decision.reason.kind),
      ({ name }) => name,
    );
  }
}
