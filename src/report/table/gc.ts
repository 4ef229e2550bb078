/** The output of `crigc gc`: how each half ended, what was freed, and the result of each removal. */

import {
  type ContainerItem,
  type ContainerOutcome,
  type ImageItem,
  type ImageOutcome,
  type ImageResult,
  isGone,
  type LogItem,
  outcomeItems,
  type SandboxItem,
} from "../../model/outcome.ts";
import type { Pass } from "../../model/pass.ts";
import { since } from "../../model/time.ts";
import { counted, humanBytes, humanDuration, usedPercent } from "../bytes.ts";
import { removalWords } from "../container-reasons.ts";
import { estimatedBytes } from "../document/gc.ts";
import { triggerCode } from "../image-reasons.ts";
import { imageName } from "../names.ts";
import {
  containerPassWords,
  eventWords,
  failureWords,
  imagePassWords,
  imageResultWords,
  passTitle,
  purposeWords,
  removalResultWords,
} from "../pass-words.ts";
import { clean, present, type Screen } from "../terminal.ts";
import { hiddenLines, shortened } from "./groups.ts";
import { containerPlanLines } from "./plan-containers.ts";
import { imagePlanLines } from "./plan-images.ts";
import { text } from "./plan.ts";
import { type Column, painted, tableLines, wrapped } from "./table.ts";

const IMAGE_COLUMNS: readonly Column[] = [
  { title: "IMAGE", minimumWidth: 16, cut: "middle" },
  { title: "SIZE", align: "right" },
  // Estimated by layers, next to what was freed.
  { title: "ESTIMATE", align: "right", optional: true },
  { title: "FREED", align: "right" },
  { title: "TOOK", align: "right" },
  { title: "WHY", minimumWidth: 10 },
  { title: "RESULT", minimumWidth: 16 },
];

const CONTAINER_COLUMNS: readonly Column[] = [
  { title: "KIND" },
  { title: "NAME", minimumWidth: 16, cut: "middle" },
  { title: "WHY", minimumWidth: 12 },
  { title: "RESULT", minimumWidth: 12 },
];

export function gcTable(pass: Pass, screen: Screen): string {
  const plan = pass.plan;
  const body = pass.dryRun
    ? [
        ...(plan.images === null ? [] : imagePlanLines(plan.images, screen)),
        ...(plan.containers === null ? [] : containerPlanLines(plan.containers, screen)),
      ]
    : [
        ...(pass.containers === null ? [] : containerLines(pass, pass.containers, screen)),
        ...(pass.images === null ? [] : imageLines(pass, pass.images, screen)),
      ];
  return text([...headLines(pass, screen), "", ...body, ...eventLines(pass, screen)]);
}

function headLines(pass: Pass, screen: Screen): readonly string[] {
  const took = humanDuration(since(pass.endedAt, pass.startedAt));
  const what = pass.dryRun ? "dry run, nothing removed" : `took ${took}`;
  const head = `Pass ${pass.id}: ${passTitle(pass.kind)}${purposeWords(pass.purpose)}, ${what}`;
  const error = pass.error === null ? [] : painted(screen, "red", `Failed: ${clean(pass.error)}`);
  return [...wrapped(head, screen), ...error];
}

function imageLines(pass: Pass, outcome: ImageOutcome, screen: Screen): readonly string[] {
  const error = outcome.error === null ? "" : ` (${clean(outcome.error)})`;
  const { shown, hidden } = shortened(
    outcome.items,
    screen,
    ({ result }) => result.kind !== "removed",
  );
  return [
    ...wrapped(`Images: ${imagePassWords(pass)}${error}.`, screen),
    ...(outcome.items.length === 0 && (outcome.wantedBytes ?? 0n) <= 0n
      ? []
      : wrapped(freedSentence(outcome), screen)),
    ...(outcome.items.length === 0 ? [] : tableLines(IMAGE_COLUMNS, shown.map(imageRow), screen)),
    ...hiddenLines(hidden, (it) => `${it.result.kind}: ${triggerCode(it.trigger)}`, screen),
    "",
  ];
}

/** Measured freed bytes, the target, and free space. */
function freedSentence(outcome: ImageOutcome): string {
  const removed = outcome.items.filter((it) => it.result.kind === "removed");
  const estimated = estimatedBytes(outcome);
  const estimate = estimated === null ? "" : `${humanBytes(estimated)} estimated, `;
  const freed =
    removed.length === 0
      ? ""
      : `, ${humanBytes(outcome.measuredFreedBytes)} freed (${estimate}${humanBytes(outcome.reportedFreedBytes)} reported)`;
  const wanted =
    outcome.wantedBytes === null || outcome.wantedBytes <= 0n
      ? false
      : `target ${humanBytes(outcome.wantedBytes)}`;
  const done = `${counted(removed.length, "image")} removed${freed}`;
  return `${present([done, failureWords(outcome.items), wanted]).join(", ")}.${diskSentence(outcome)}`;
}

function diskSentence(outcome: ImageOutcome): string {
  if (outcome.availableAfter === null || outcome.capacityBytes === null) return "";
  const percent = usedPercent(outcome.capacityBytes, outcome.availableAfter);
  const before =
    outcome.availableBefore === null || outcome.availableBefore === outcome.availableAfter
      ? ""
      : ` (${humanBytes(outcome.availableBefore)} before)`;
  return ` Disk: ${percent}% used, ${humanBytes(outcome.availableAfter)} of ${humanBytes(outcome.capacityBytes)} free${before}.`;
}

const imageRow = (item: ImageItem): readonly string[] => [
  imageName(item.candidate.image),
  humanBytes(item.candidate.image.sizeBytes),
  item.candidate.frees === undefined ? "-" : humanBytes(item.candidate.frees.estimateBytes),
  item.result.kind === "removed" ? humanBytes(item.result.measuredBytes) : "-",
  humanDuration(item.took),
  triggerCode(item.trigger),
  resultTitle(item.result),
];

/** The result without its bytes, which have their own column. */
const resultTitle = (result: ImageResult): string =>
  result.kind === "removed"
    ? result.settled === "afterwards"
      ? "removed, freed after a wait"
      : "removed"
    : imageResultWords(result);

function containerLines(pass: Pass, outcome: ContainerOutcome, screen: Screen): readonly string[] {
  const rows = outcomeItems(outcome).map(containerRow);
  const { shown, hidden } = shortened(rows, screen, (row) => !isGone(row));
  const cells = shown.map(({ kind, name, why, words }) => [kind, name, why, words]);
  return [
    ...wrapped(
      `Containers: ${rows.length === 0 && outcome.end === "done" ? "nothing to remove" : `${containerPassWords(pass)}. ${containerCounts(outcome)}`}.`,
      screen,
    ),
    ...(cells.length === 0 ? [] : tableLines(CONTAINER_COLUMNS, cells, screen)),
    ...hiddenLines(hidden, ({ kind, result, why }) => `${kind} ${result.kind}: ${why}`, screen),
    ...outcome.errors.flatMap((error) => wrapped(`Failed: ${clean(error)}.`, screen)),
    "",
  ];
}

function containerCounts(outcome: ContainerOutcome): string {
  const counts = [
    counted(outcome.containers.filter(isGone).length, "container"),
    counted(outcome.sandboxes.filter(isGone).length, "sandbox", "sandboxes"),
    counted(outcome.logs.filter(isGone).length, "log entry", "log entries"),
  ];
  const freed =
    outcome.measuredFreedBytes === null ? "" : `, ${humanBytes(outcome.measuredFreedBytes)} freed`;
  return present([
    `${counts.join(", ")} removed${freed}`,
    failureWords(outcomeItems(outcome)),
  ]).join(", ");
}

function containerRow(item: ContainerItem | SandboxItem | LogItem) {
  const { result } = item;
  const logError = "logError" in item ? item.logError : null;
  const words =
    removalResultWords(result) + (logError === null ? "" : `, logs: ${clean(logError)}`);
  return { ...removalWords(item), result, words };
}

const eventLines = (pass: Pass, screen: Screen): readonly string[] =>
  pass.events.flatMap((event) => painted(screen, "yellow", `Warning ${eventWords(event)}`));
