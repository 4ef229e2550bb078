/** What `crigc gc` prints at its end: how each half ended, what was freed, and every thing that was tried. */

import type {
  ContainerOutcome,
  ImageItem,
  ImageOutcome,
  ImageResult,
  RemovalResult,
} from "../../model/outcome.ts";
import type { Pass } from "../../model/pass.ts";
import { since } from "../../model/time.ts";
import { counted, humanBytes, humanDuration, usedPercent } from "../bytes.ts";
import { containerRemove, logRemove, sandboxRemove } from "../container-reasons.ts";
import { imageBlock, triggerCode } from "../image-reasons.ts";
import { containerName, imageName, sandboxName } from "../names.ts";
import {
  containerEndWords,
  eventTitle,
  imageEndWords,
  imageResultWords,
  passTitle,
  purposeWords,
  removalResultWords,
} from "../pass-words.ts";
import { clean, paint, type Screen } from "../terminal.ts";
import { containerPlanLines } from "./plan-containers.ts";
import { imagePlanLines } from "./plan-images.ts";
import { text } from "./plan.ts";
import { type Column, tableLines, wrapped } from "./table.ts";

const IMAGE_COLUMNS: readonly Column[] = [
  { title: "IMAGE", minimumWidth: 16, cut: "middle" },
  { title: "SIZE", align: "right" },
  { title: "FREED", align: "right" },
  { title: "TOOK", align: "right" },
  { title: "WHY", minimumWidth: 8 },
  { title: "RESULT", minimumWidth: 16 },
];

const THING_COLUMNS: readonly Column[] = [
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
  const what = pass.dryRun ? "dry run, nothing was removed" : `took ${took}`;
  const head = `Pass ${pass.id}: ${passTitle(pass.kind)} (${purposeWords(pass.purpose)}), ${what}`;
  const error = pass.error === null ? [] : wrapped(`It failed: ${clean(pass.error)}`, screen);
  return [...wrapped(head, screen), ...error.map((line) => paint(screen, "red", line))];
}

function imageLines(pass: Pass, outcome: ImageOutcome, screen: Screen): readonly string[] {
  const blocks = pass.plan.images?.blocks ?? [];
  const why =
    outcome.end === "blocked" && blocks.length > 0
      ? blocks.map(imageBlock.text).join("; ")
      : imageEndWords(outcome.end, pass.purpose.kind);
  const error = outcome.error === null ? "" : ` (${clean(outcome.error)})`;
  return [
    ...wrapped(`Images: ${why}${error}.`, screen),
    ...wrapped(freedSentence(outcome), screen),
    ...(outcome.items.length === 0
      ? []
      : tableLines(IMAGE_COLUMNS, outcome.items.map(imageRow), screen)),
    "",
  ];
}

/** What was freed, as measured, beside what was wanted and how the disk stands now. */
function freedSentence(outcome: ImageOutcome): string {
  const removed = outcome.items.filter((it) => it.result.kind === "removed");
  const failed = outcome.items.filter((it) => it.result.kind === "failed").length;
  const measured = removed.some(
    (it) => it.result.kind === "removed" && it.result.measuredBytes !== null,
  );
  const freed =
    removed.length === 0
      ? ""
      : measured
        ? `, ${humanBytes(outcome.measuredFreedBytes)} freed (${humanBytes(outcome.reportedFreedBytes)} by the runtime's figures)`
        : `, ${humanBytes(outcome.reportedFreedBytes)} freed by the runtime's figures`;
  const wanted =
    outcome.wantedBytes === null || outcome.wantedBytes <= 0n
      ? ""
      : ` of ${humanBytes(outcome.wantedBytes)} wanted`;
  const failures = failed === 0 ? "" : `, ${counted(failed, "removal")} failed`;
  return `${counted(removed.length, "image")} removed${freed}${wanted}${failures}.${diskSentence(outcome)}`;
}

function diskSentence(outcome: ImageOutcome): string {
  if (outcome.availableAfter === null || outcome.capacityBytes === null) return "";
  const percent = usedPercent(outcome.capacityBytes, outcome.availableAfter);
  const before =
    outcome.availableBefore === null || outcome.availableBefore === outcome.availableAfter
      ? ""
      : `, ${humanBytes(outcome.availableBefore)} before`;
  return ` ${humanBytes(outcome.availableAfter)} of ${humanBytes(outcome.capacityBytes)} are free now (${percent}% used)${before}.`;
}

const imageRow = (item: ImageItem): readonly string[] => [
  imageName(item.candidate.image),
  humanBytes(item.candidate.image.sizeBytes),
  item.result.kind === "removed" && item.result.measuredBytes !== null
    ? humanBytes(item.result.measuredBytes)
    : "-",
  humanDuration(item.took),
  triggerCode(item.trigger),
  resultTitle(item.result),
];

/** The sentence of the result without the bytes, which have a column of their own. */
const resultTitle = (result: ImageResult): string =>
  result.kind === "removed"
    ? result.settled === "afterwards"
      ? "removed, freed after a wait"
      : "removed"
    : imageResultWords(result);

function containerLines(pass: Pass, outcome: ContainerOutcome, screen: Screen): readonly string[] {
  const rows = containerRows(outcome);
  const blocks = pass.plan.containers?.blocks ?? [];
  const why =
    outcome.end === "blocked" && blocks.length > 0
      ? blocks.map(imageBlock.text).join("; ")
      : containerEndWords(outcome.end);
  return [
    ...wrapped(
      `Containers: ${rows.length === 0 && outcome.end === "done" ? "nothing had to go" : `${why}. ${containerCounts(outcome)}`}.`,
      screen,
    ),
    ...(rows.length === 0 ? [] : tableLines(THING_COLUMNS, rows, screen)),
    ...outcome.errors.flatMap((error) => wrapped(`Not done: ${clean(error)}.`, screen)),
    "",
  ];
}

function containerCounts(outcome: ContainerOutcome): string {
  const counts = [
    counted(gone(outcome.containers), "container"),
    counted(gone(outcome.sandboxes), "sandbox", "sandboxes"),
    counted(gone(outcome.logs), "log entry", "log entries"),
  ];
  const freed =
    outcome.measuredFreedBytes === null ? "" : `, ${humanBytes(outcome.measuredFreedBytes)} freed`;
  return `${counts.join(", ")} removed${freed}`;
}

const gone = (items: readonly { readonly result: RemovalResult }[]): number =>
  items.filter((it) => it.result.kind === "removed" || it.result.kind === "already-gone").length;

const containerRows = (outcome: ContainerOutcome): readonly (readonly string[])[] => [
  ...outcome.containers.map((it) => [
    "container",
    containerName(it.planned.container),
    containerRemove.text(it.reason),
    removalResultWords(it.result) + (it.logError === null ? "" : `, logs: ${clean(it.logError)}`),
  ]),
  ...outcome.sandboxes.map((it) => [
    "sandbox",
    sandboxName(it.sandbox),
    sandboxRemove.text(it.reason),
    removalResultWords(it.result),
  ]),
  ...outcome.logs.map((it) => [
    it.kind === "pod-logs" ? "pod logs" : "log link",
    clean(it.entry),
    logRemove.text(it.reason),
    removalResultWords(it.result),
  ]),
];

const eventLines = (pass: Pass, screen: Screen): readonly string[] =>
  pass.events.flatMap((event) =>
    wrapped(
      `Warning ${event.reason}, ${eventTitle(event.reason)}: ${clean(event.message)}`,
      screen,
    ).map((line) => paint(screen, "yellow", line)),
  );
