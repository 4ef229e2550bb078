/** Document `GcReport` and the output of `crigc gc`: how each half ended, what it freed, and each removal. */

import {
  type ContainerItem,
  type ContainerOutcome,
  type ImageItem,
  type ImageOutcome,
  type ImageResult,
  isGone,
  type LogItem,
  outcomeItems,
  type RemovalResult,
  type SandboxItem,
} from "../model/outcome.ts";
import type { Pass } from "../model/pass.ts";
import { expectedBytes } from "../model/plan.ts";
import { since } from "../model/time.ts";
import { bytesCell, counted, humanBytes, humanDuration, usedPercent } from "./bytes.ts";
import { containerReasons, logReasons, removalWords, sandboxReasons } from "./container-reasons.ts";
import {
  containerJson,
  document,
  eventJson,
  imageJson,
  type JsonObject,
  jsonOf,
  lazily,
  sandboxJson,
} from "./document.ts";
import { imageKeep, imageTrigger, triggerTitle } from "./image-reasons.ts";
import { imageName } from "./names.ts";
import {
  containerPassWords,
  eventWords,
  failureWords,
  goneCounts,
  imagePassWords,
  imageResultWords,
  passTitle,
  purposeWords,
  removalResultWords,
} from "./pass-words.ts";
import { printContainerPlan, printImagePlan } from "./plan-table.ts";
import { freesJson, planBody } from "./plan.ts";
import { column, type Columns, NAME, OPTIONAL, Printer, RIGHT } from "./printer.ts";
import { clean, present, type Screen } from "./terminal.ts";

export const gcDocument = (pass: Pass): JsonObject =>
  document("GcReport", {
    ...passHeadJson(pass),
    error: pass.error,
    images: pass.images === null ? null : imageOutcomeJson(pass.images, pass),
    containers: pass.containers === null ? null : containerOutcomeJson(pass.containers, pass),
    events: pass.events.map(eventJson),
    steps: pass.steps.map((step) => jsonOf(step)),
    plan: planBody(pass.plan),
  });

export const passHeadJson = (pass: Pass): JsonObject => ({
  passId: pass.id,
  passKind: pass.kind,
  purpose: pass.purpose.kind,
  signals: pass.purpose.kind === "pressure" ? pass.purpose.signals : undefined,
  ...jsonOf(pass, "dryRun", "startedAt", "endedAt"),
  ...jsonOf({ took: since(pass.endedAt, pass.startedAt) }),
});

const imageOutcomeJson = (outcome: ImageOutcome, pass: Pass): JsonObject => ({
  end: outcome.end,
  endText: imagePassWords(pass),
  ...jsonOf(outcome, "wantedBytes", "reportedFreedBytes", "measuredFreedBytes", "capacityBytes"),
  ...jsonOf(outcome, "error", "nothingFreed"),
  estimatedFreedBytes: estimatedBytes(outcome),
  availableBeforeBytes: outcome.availableBefore,
  availableAfterBytes: outcome.availableAfter,
  items: lazily(outcome.items, imageItemJson),
  ghosts: outcome.ghosts.map(imageJson),
});

/** The estimate of all removals by layers, else by reported sizes; `null` if no layers are known. */
function estimatedBytes({ items }: ImageOutcome): bigint | null {
  const removed = items.filter(({ result }) => result.kind === "removed");
  return removed.every(({ candidate }) => candidate.frees === undefined)
    ? null
    : removed.reduce((sum, { candidate }) => sum + expectedBytes(candidate), 0n);
}

const imageItemJson = ({ candidate, trigger, result, startedAt, took }: ImageItem): JsonObject => ({
  id: candidate.image.id,
  name: imageName(candidate.image),
  ...jsonOf(candidate.image, "repoTags", "sizeBytes"),
  ...freesJson(candidate),
  ...jsonOf(candidate, "unusedFor"),
  trigger: imageTrigger.json(trigger),
  result: {
    ...(result.kind === "skipped"
      ? { kind: result.kind, reason: imageKeep.json(result.reason) }
      : result),
    text: imageResultWords(result),
  },
  ...jsonOf({ startedAt, took }),
});

const containerOutcomeJson = (outcome: ContainerOutcome, pass: Pass): JsonObject => ({
  ...jsonOf(outcome, "end", "measuredFreedBytes", "errors"),
  endText: containerPassWords(pass),
  containers: lazily(outcome.containers, (item) => ({
    ...containerJson(item.planned.container),
    reason: containerReasons.json(item.reason),
    result: removalJson(item.result),
    ...jsonOf(item, "stopped", "logFiles", "logBytes", "logError"),
  })),
  sandboxes: lazily(outcome.sandboxes, ({ sandbox, reason, result }) => ({
    ...sandboxJson(sandbox),
    reason: sandboxReasons.json(reason),
    result: removalJson(result),
  })),
  logs: lazily(outcome.logs, ({ kind, entry, reason, result, bytes }) => ({
    kind,
    entry,
    reason: logReasons.json(reason),
    result: removalJson(result),
    logBytes: bytes,
  })),
});

const removalJson = (result: RemovalResult): JsonObject => ({
  ...result,
  text: removalResultWords(result),
});

export function gcTable(pass: Pass, screen: Screen): string {
  const { plan, images, containers, dryRun } = pass;
  const printer = new Printer(screen);
  const took = humanDuration(since(pass.endedAt, pass.startedAt));
  const what = dryRun ? "dry run, nothing removed" : `took ${took}`;
  printer.say(`Pass ${pass.id}: ${passTitle(pass.kind)}${purposeWords(pass.purpose)}, ${what}`);
  if (pass.error !== null) printer.say(`Failed: ${clean(pass.error)}`, "red");
  printer.gap();
  if (dryRun && plan.images !== null) printImagePlan(printer, plan.images);
  if (dryRun && plan.containers !== null) printContainerPlan(printer, plan.containers);
  if (!dryRun && containers !== null) printContainers(printer, pass, containers);
  if (!dryRun && images !== null) printImages(printer, pass, images);
  for (const event of pass.events) printer.say(`Warning ${eventWords(event)}`, "yellow");
  return printer.text();
}

const IMAGE_COLUMNS: Columns<ImageItem> = [
  column("IMAGE", ({ candidate }) => imageName(candidate.image), NAME),
  column("SIZE", ({ candidate }) => humanBytes(candidate.image.sizeBytes), RIGHT),
  // Estimated by layers, next to what was freed.
  column("ESTIMATE", ({ candidate }) => bytesCell(candidate.frees?.estimateBytes), OPTIONAL),
  column(
    "FREED",
    ({ result }) => bytesCell(result.kind === "removed" ? result.measuredBytes : null),
    RIGHT,
  ),
  column("TOOK", ({ took }) => humanDuration(took), RIGHT),
  column("WHY", ({ trigger }) => triggerTitle(trigger), { minimumWidth: 10 }),
  column("RESULT", ({ result }) => resultTitle(result), { minimumWidth: 16 }),
];

/** The result without its bytes, which have their own column. */
function resultTitle(result: ImageResult): string {
  if (result.kind !== "removed") return imageResultWords(result);
  return result.settled === "afterwards" ? "removed, freed after a wait" : "removed";
}

function printImages(printer: Printer, pass: Pass, outcome: ImageOutcome): void {
  const { items, wantedBytes } = outcome;
  const error = outcome.error === null ? "" : ` (${clean(outcome.error)})`;
  printer.say(`Images: ${imagePassWords(pass)}${error}.`);
  if (items.length > 0 || (wantedBytes ?? 0n) > 0n) printer.say(freedSentence(outcome));
  printer.table(IMAGE_COLUMNS, items, {
    groupOf: ({ result, trigger }) => `${result.kind}: ${triggerTitle(trigger)}`,
    matters: ({ result }) => result.kind !== "removed",
  });
  printer.gap();
}

/** Measured freed bytes, the target, and free space. */
function freedSentence(outcome: ImageOutcome): string {
  const { items, wantedBytes, reportedFreedBytes, measuredFreedBytes } = outcome;
  const { availableBefore, availableAfter, capacityBytes } = outcome;
  const removed = items.filter((it) => it.result.kind === "removed").length;
  const estimated = estimatedBytes(outcome);
  const estimate = estimated === null ? "" : `${humanBytes(estimated)} estimated, `;
  const parts = present([
    `${counted(removed, "image")} removed`,
    removed > 0 &&
      `${humanBytes(measuredFreedBytes)} freed (${estimate}${humanBytes(reportedFreedBytes)} reported)`,
    failureWords(items),
    wantedBytes !== null && wantedBytes > 0n && `target ${humanBytes(wantedBytes)}`,
  ]).join(", ");
  if (availableAfter === null || capacityBytes === null) return `${parts}.`;
  const percent = usedPercent(capacityBytes, availableAfter);
  const before =
    availableBefore === null || availableBefore === availableAfter
      ? ""
      : ` (${humanBytes(availableBefore)} before)`;
  return `${parts}. Disk: ${percent}% used, ${humanBytes(availableAfter)} of ${humanBytes(capacityBytes)} free${before}.`;
}

type PodItem = ContainerItem | SandboxItem | LogItem;

const POD_COLUMNS: Columns<PodItem> = [
  column("KIND", (item) => removalWords(item).kind),
  column("NAME", (item) => removalWords(item).name, NAME),
  column("WHY", (item) => removalWords(item).why, { minimumWidth: 12 }),
  column(
    "RESULT",
    (item) =>
      removalResultWords(item.result) +
      ("logError" in item && item.logError !== null ? `, logs: ${clean(item.logError)}` : ""),
    { minimumWidth: 12 },
  ),
];

function printContainers(printer: Printer, pass: Pass, outcome: ContainerOutcome): void {
  const items = outcomeItems(outcome);
  const { measuredFreedBytes: freed } = outcome;
  const counts = present([
    `${goneCounts(outcome).join(", ")} removed`,
    freed !== null && `${humanBytes(freed)} freed`,
    failureWords(items),
  ]).join(", ");
  const isNothing = items.length === 0 && outcome.end === "done";
  const end = isNothing ? "nothing to remove" : `${containerPassWords(pass)}. ${counts}`;
  printer.say(`Containers: ${end}.`);
  printer.table(POD_COLUMNS, items, {
    groupOf: (item) => {
      const { kind, why } = removalWords(item);
      return `${kind} ${item.result.kind}: ${why}`;
    },
    matters: (item) => !isGone(item),
  });
  for (const error of outcome.errors) printer.say(`Failed: ${clean(error)}.`);
  printer.gap();
}
