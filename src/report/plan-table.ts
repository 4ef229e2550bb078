/** The output of `crigc plan`, from its document: what would be removed in which order, the estimated stop, and what is kept. */

import { capitalised, compared } from "../model/values.ts";
import { logsErrorWords } from "./container-reasons.ts";
import { breakdownWords, printUsage } from "./disk.ts";
import { triggerTitle } from "./image-reasons.ts";
import {
  type CandidateJson,
  type ContainerPlanJson,
  type DecisionJson,
  type ImagePlanJson,
  type KeptJson,
  type PlanDocument,
  STOP_WORDS,
} from "./plan.ts";
import { column, type Columns, OPTIONAL, Printer, RIGHT, tableLines } from "./printer.ts";
import { clean, type Screen } from "./terminal.ts";
import {
  bytesCell,
  containerName,
  counted,
  dayOf,
  humanBytes,
  humanMs,
  sandboxName,
  shortId,
} from "./words.ts";

export function planTable(plan: PlanDocument, screen: Screen): string {
  const printer = new Printer(screen);
  printer.node(plan);
  printer.gap();
  printPlan(printer, plan);
  printer.gap();
  printer.say(`Next: ${nextWords(plan)}.`);
  return printer.text();
}

function nextWords({ images }: PlanDocument): string {
  if (images !== null && images.blocks.length > 0) return "crigc doctor says what to do";
  return images === null || images.expectedRemovals > 0
    ? "crigc gc removes what would be removed; crigc explain REF shows the rules for one"
    : "crigc plan --all-unused shows all that may go; crigc explain REF shows the rules for one";
}

/** Both halves. */
export function printPlan(
  printer: Printer,
  { images, containers }: Pick<PlanDocument, "images" | "containers">,
): void {
  if (images !== null) printImagePlan(printer, images);
  const explained = images?.blocks.map(({ code }) => code);
  if (containers !== null) printContainerPlan(printer, containers, explained);
}

function printImagePlan(printer: Printer, plan: ImagePlanJson): void {
  for (const { text } of plan.blocks) printer.say(`No image is removed now: ${text}.`, "red");
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
  if (plan.candidates.length > 0) printCandidates(printer, plan);
  if (plan.kept.length > 0) {
    printer.line(`${counted(plan.kept.length, "image")} kept:`);
    printer.table(KEPT_COLUMNS, [...plan.kept]);
    printer.gap();
  }
  for (const note of plan.notes) printer.say(`Note: ${note}`);
}

export const KEPT_COLUMNS: Columns<KeptJson> = [
  column("KEPT", ({ name }) => name),
  column("SIZE", ({ sizeBytes }) => humanBytes(sizeBytes), RIGHT),
  column("WHY", ({ reason }) => reason.text),
];

function printTargets(printer: Printer, plan: ImagePlanJson): void {
  for (const line of targetLines(plan)) printer.say(line);
  // A block names its trigger itself.
  if (plan.targets.length === 0 && plan.triggers.length === 0)
    printer.line("No threshold that images can relieve is exceeded, so no image is removed.");
  if (plan.targets.length > 0 && isShort(plan) && plan.youngText !== null)
    printer.say(`${plan.youngText}.`);
  printer.gap();
}

/** The strictest target of each filesystem, and what else is exceeded there. */
export function targetLines({ targets }: ImagePlanJson): readonly string[] {
  const places = Map.groupBy(targets, (it) => `${it.kind} ${"path" in it ? it.path : ""}`);
  return [...places.values()].flatMap((all) => {
    const [strictest, ...others] = all.toSorted((a, b) => compared(wanted(b), wanted(a)));
    if (strictest === undefined) return [];
    const also = [...new Set(others.map(({ trigger }) => triggerTitle(trigger)))];
    const rest = also.length === 0 ? "" : `; also exceeded: ${also.join(", ")}`;
    return [`Target: ${strictest.text}${rest}.`];
  });
}

const wanted = (target: ImagePlanJson["targets"][number]): bigint =>
  "wantedBytes" in target
    ? target.wantedBytes
    : "wantedInodes" in target
      ? target.wantedInodes
      : 0n;

/** By the estimate; the pass measures. */
const isShort = ({ targets, expectedFreedBytes, candidates }: ImagePlanJson): boolean =>
  targets.some((it) => it.kind === "available-bytes" && it.wantedBytes > expectedFreedBytes) ||
  candidates.length === 0;

function printCandidates(printer: Printer, plan: ImagePlanJson): void {
  const { screen } = printer;
  const { expectedRemovals: expected } = plan;
  const [title = "", ...rows] = tableLines(candidateColumns(plan), [...plan.candidates], screen);
  printer.say(headline(plan));
  printer.line(title);
  for (const [index, row] of rows.entries()) {
    if (index === expected) printer.line(stopLine(plan, screen), "cyan");
    printer.line(row, index >= expected ? "dim" : undefined);
  }
  printer.gap();
}

function headline(plan: ImagePlanJson): string {
  const { expectedRemovals: expected, expectedFreedBytes } = plan;
  const total = counted(plan.candidates.length + plan.kept.length, "image");
  if (expected === 0) return `None of ${total} would be removed now. Order of removal:`;
  return `${expected} of ${total} would be removed, in this order, freeing about ${humanBytes(expectedFreedBytes)}${isShort(plan) ? ", less than the target" : ""}:`;
}

/** WHY: only triggers that are not those of the targets above. */
export const candidateColumns = ({
  targets,
}: Pick<ImagePlanJson, "targets">): Columns<CandidateJson> => [
  column("#", ({ place }) => String(place), RIGHT),
  column("IMAGE", ({ name }) => name),
  column("SIZE", ({ sizeBytes }) => humanBytes(sizeBytes), RIGHT),
  // Estimated by layers.
  column("FREES", ({ estimateBytes }) => bytesCell(estimateBytes), OPTIONAL),
  column("UNUSED FOR", ({ unusedForMs }) => humanMs(unusedForMs), RIGHT),
  // An image that was never seen in use is unused since crigc first saw it.
  column("LAST USED", ({ lastUsedAt }) => (lastUsedAt === null ? "-" : dayOf(lastUsedAt)), {
    optional: true,
  }),
  column("WHY", ({ triggers }) => ownTriggers(triggers, targets).join(", ") || "-", {
    optional: true,
  }),
];

function ownTriggers(
  triggers: CandidateJson["triggers"],
  targets: ImagePlanJson["targets"],
): readonly string[] {
  const above = new Set(targets.map(({ trigger }) => triggerTitle(trigger)));
  return triggers.map(triggerTitle).filter((title) => !above.has(title));
}

function stopLine({ expectedRemovals, targets }: ImagePlanJson, screen: Screen): string {
  const dash = (screen.unicode ? "─" : "-").repeat(4);
  const words = expectedRemovals === 0 ? "nothing is removed now" : "estimated stop";
  const rest = expectedRemovals === 0 || targets.length === 0 ? "" : `; ${STOP_WORDS}`;
  return `${dash} ${words}${rest} ${dash}`;
}

/** `explained`: blocks that the image half has explained. */
export function printContainerPlan(
  printer: Printer,
  plan: ContainerPlanJson,
  explained: readonly string[] = [],
): void {
  const { blocks, logsError, danglingLinks: links, strays, podSource } = plan;
  const nothing = "No container, sandbox or log is removed now";
  for (const { code, text } of blocks)
    printer.say(explained.includes(code) ? `${nothing} either.` : `${nothing}: ${text}.`, "red");
  if (logsError !== null) printer.say(`${capitalised(logsErrorWords(logsError))}.`, "red");
  printer.say(`${capitalised(podSource.text)}.`);
  const containers = Array.from(plan.containers, (it) => ({ ...it, shown: containerName(it) }));
  const sandboxes = Array.from(plan.sandboxes, (it) => ({ ...it, shown: sandboxName(it) }));
  const podLogs = Array.from(plan.podLogs, (it) => ({ ...it, shown: clean(it.entry) }));
  printDecisions(printer, containers, ["container", "containers"]);
  printDecisions(printer, sandboxes, ["sandbox", "sandboxes"]);
  printDecisions(printer, podLogs, ["pod log directory", "pod log directories"]);
  printer.gap();
  if (links.length > 0) printer.say(`${counted(links.length, "dangling log link")} to delete.`);
  if (strays.length > 0) printer.say(`Not pod logs, kept: ${strays.map(clean).join(", ")}.`);
  printer.gap();
}

/** A container, a sandbox or pod logs; the latter have neither ID nor state. */
interface DecisionRow extends DecisionJson {
  /** The name in a table. */
  readonly shown: string;
  readonly id?: string;
  readonly state?: string;
  readonly stopFirst?: boolean;
}

const DECISION_COLUMNS: Columns<DecisionRow> = [
  column("ID", ({ id = "-" }) => shortId(id), { optional: true }),
  column("NAME", ({ shown }) => shown),
  column(
    "STATE",
    ({ state = "-", stopFirst = false }) => state + (stopFirst ? ", stopped first" : ""),
    { optional: true },
  ),
  column("WHY", ({ reason }) => reason.text),
];

function printDecisions(
  printer: Printer,
  items: readonly DecisionRow[],
  words: readonly [one: string, many: string],
): void {
  for (const [decision, done] of [
    ["remove", "would be removed"],
    ["keep", "kept"],
  ] as const) {
    const rows = items.filter((it) => it.decision === decision);
    if (rows.length === 0) continue;
    printer.gap();
    printer.line(`${rows.length} of ${counted(items.length, ...words)} ${done}:`);
    printer.table(DECISION_COLUMNS, rows);
  }
}
