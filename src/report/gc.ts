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
import type { Pass, Step } from "../model/pass.ts";
import { since, toMs } from "../model/time.ts";
import { bytesCell, counted, humanBytes, humanDuration, usedPercent } from "./bytes.ts";
import { containerReasons, logReasons, removalWords, sandboxReasons } from "./container-reasons.ts";
import {
  containerJson,
  document,
  eventJson,
  imageJson,
  type JsonObject,
  lazily,
  picked,
  sandboxJson,
  timeOf,
} from "./document.ts";
import { imageKeep, imageTrigger, triggerCode } from "./image-reasons.ts";
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
import { containerPlanLines } from "./plan-containers.ts";
import { imagePlanLines } from "./plan-table.ts";
import { expectedBytes, freesJson, planBody } from "./plan.ts";
import {
  column,
  type ItemColumn,
  itemLines,
  NAME,
  painted,
  RIGHT,
  text,
  wrapped,
} from "./table.ts";
import { clean, present, type Screen } from "./terminal.ts";

export const gcDocument = (pass: Pass): JsonObject =>
  document("GcReport", {
    ...passHeadJson(pass),
    error: pass.error,
    images: pass.images === null ? null : imageOutcomeJson(pass.images, pass),
    containers: pass.containers === null ? null : containerOutcomeJson(pass.containers, pass),
    events: pass.events.map(eventJson),
    steps: pass.steps.map(stepJson),
    plan: planBody(pass.plan),
  });

export const passHeadJson = (pass: Pass): JsonObject => ({
  passId: pass.id,
  passKind: pass.kind,
  purpose: pass.purpose.kind,
  signals: pass.purpose.kind === "pressure" ? pass.purpose.signals : undefined,
  dryRun: pass.dryRun,
  startedAt: timeOf(pass.startedAt),
  endedAt: timeOf(pass.endedAt),
  tookMs: toMs(since(pass.endedAt, pass.startedAt)),
});

export const stepJson = (step: Step): JsonObject => ({
  name: step.name,
  startedAt: timeOf(step.startedAt),
  tookMs: toMs(step.took),
  error: step.error,
});

const imageOutcomeJson = (outcome: ImageOutcome, pass: Pass): JsonObject => ({
  end: outcome.end,
  endText: imagePassWords(pass),
  ...picked(outcome, "wantedBytes", "reportedFreedBytes", "measuredFreedBytes", "capacityBytes"),
  estimatedFreedBytes: estimatedBytes(outcome),
  availableBeforeBytes: outcome.availableBefore,
  availableAfterBytes: outcome.availableAfter,
  error: outcome.error,
  nothingFreed: outcome.nothingFreed && { ...outcome.nothingFreed },
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
  ...picked(candidate.image, "repoTags", "sizeBytes"),
  ...freesJson(candidate),
  unusedForMs: toMs(candidate.unusedFor),
  trigger: imageTrigger.json(trigger),
  result: {
    ...(result.kind === "skipped"
      ? { kind: result.kind, reason: imageKeep.json(result.reason) }
      : result),
    text: imageResultWords(result),
  },
  startedAt: timeOf(startedAt),
  tookMs: toMs(took),
});

const containerOutcomeJson = (outcome: ContainerOutcome, pass: Pass): JsonObject => ({
  ...picked(outcome, "end", "measuredFreedBytes", "errors"),
  endText: containerPassWords(pass),
  containers: lazily(outcome.containers, (item) => ({
    ...containerJson(item.planned.container),
    reason: containerReasons.json(item.reason),
    result: removalJson(item.result),
    ...picked(item, "stopped", "logFiles", "logBytes", "logError"),
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
  const { plan, images, containers } = pass;
  const body = pass.dryRun
    ? [
        ...(plan.images === null ? [] : imagePlanLines(plan.images, screen)),
        ...(plan.containers === null ? [] : containerPlanLines(plan.containers, screen)),
      ]
    : [
        ...(containers === null ? [] : containerLines(pass, containers, screen)),
        ...(images === null ? [] : imageLines(pass, images, screen)),
      ];
  const took = humanDuration(since(pass.endedAt, pass.startedAt));
  const what = pass.dryRun ? "dry run, nothing removed" : `took ${took}`;
  const head = `Pass ${pass.id}: ${passTitle(pass.kind)}${purposeWords(pass.purpose)}, ${what}`;
  return text([
    ...wrapped(head, screen),
    ...(pass.error === null ? [] : painted(screen, "red", `Failed: ${clean(pass.error)}`)),
    "",
    ...body,
    ...pass.events.flatMap((event) => painted(screen, "yellow", `Warning ${eventWords(event)}`)),
  ]);
}

const IMAGE_COLUMNS: readonly ItemColumn<ImageItem>[] = [
  column("IMAGE", ({ candidate }) => imageName(candidate.image), NAME),
  column("SIZE", ({ candidate }) => humanBytes(candidate.image.sizeBytes), RIGHT),
  // Estimated by layers, next to what was freed.
  column("ESTIMATE", ({ candidate }) => bytesCell(candidate.frees?.estimateBytes), {
    ...RIGHT,
    optional: true,
  }),
  column(
    "FREED",
    ({ result }) => bytesCell(result.kind === "removed" ? result.measuredBytes : null),
    RIGHT,
  ),
  column("TOOK", ({ took }) => humanDuration(took), RIGHT),
  column("WHY", ({ trigger }) => triggerCode(trigger), { minimumWidth: 10 }),
  column("RESULT", ({ result }) => resultTitle(result), { minimumWidth: 16 }),
];

/** The result without its bytes, which have their own column. */
function resultTitle(result: ImageResult): string {
  if (result.kind !== "removed") return imageResultWords(result);
  return result.settled === "afterwards" ? "removed, freed after a wait" : "removed";
}

function imageLines(pass: Pass, outcome: ImageOutcome, screen: Screen): readonly string[] {
  const { items, wantedBytes } = outcome;
  const error = outcome.error === null ? "" : ` (${clean(outcome.error)})`;
  return [
    ...wrapped(`Images: ${imagePassWords(pass)}${error}.`, screen),
    ...(items.length === 0 && (wantedBytes ?? 0n) <= 0n
      ? []
      : wrapped(freedSentence(outcome), screen)),
    ...(items.length === 0
      ? []
      : itemLines(
          {
            columns: IMAGE_COLUMNS,
            items,
            groupOf: ({ result, trigger }) => `${result.kind}: ${triggerCode(trigger)}`,
            matters: ({ result }) => result.kind !== "removed",
          },
          screen,
        )),
    "",
  ];
}

/** Measured freed bytes, the target, and free space. */
function freedSentence(outcome: ImageOutcome): string {
  const { items, wantedBytes, reportedFreedBytes, measuredFreedBytes } = outcome;
  const removed = items.filter((it) => it.result.kind === "removed").length;
  const estimated = estimatedBytes(outcome);
  const estimate = estimated === null ? "" : `${humanBytes(estimated)} estimated, `;
  const parts = present([
    `${counted(removed, "image")} removed`,
    removed > 0 &&
      `${humanBytes(measuredFreedBytes)} freed (${estimate}${humanBytes(reportedFreedBytes)} reported)`,
    failureWords(items),
    wantedBytes !== null && wantedBytes > 0n && `target ${humanBytes(wantedBytes)}`,
  ]);
  return `${parts.join(", ")}.${diskSentence(outcome)}`;
}

function diskSentence({ availableBefore, availableAfter, capacityBytes }: ImageOutcome): string {
  if (availableAfter === null || capacityBytes === null) return "";
  const percent = usedPercent(capacityBytes, availableAfter);
  const before =
    availableBefore === null || availableBefore === availableAfter
      ? ""
      : ` (${humanBytes(availableBefore)} before)`;
  return ` Disk: ${percent}% used, ${humanBytes(availableAfter)} of ${humanBytes(capacityBytes)} free${before}.`;
}

type PodItem = ContainerItem | SandboxItem | LogItem;

const POD_COLUMNS: readonly ItemColumn<PodItem>[] = [
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

function containerLines(pass: Pass, outcome: ContainerOutcome, screen: Screen): readonly string[] {
  const items = outcomeItems(outcome);
  const isNothing = items.length === 0 && outcome.end === "done";
  const end = isNothing
    ? "nothing to remove"
    : `${containerPassWords(pass)}. ${containerCounts(outcome)}`;
  return [
    ...wrapped(`Containers: ${end}.`, screen),
    ...(items.length === 0
      ? []
      : itemLines(
          {
            columns: POD_COLUMNS,
            items,
            groupOf: (item) => {
              const { kind, why } = removalWords(item);
              return `${kind} ${item.result.kind}: ${why}`;
            },
            matters: (item) => !isGone(item),
          },
          screen,
        )),
    ...outcome.errors.flatMap((error) => wrapped(`Failed: ${clean(error)}.`, screen)),
    "",
  ];
}

function containerCounts(outcome: ContainerOutcome): string {
  const { measuredFreedBytes: freed } = outcome;
  return present([
    `${goneCounts(outcome).join(", ")} removed`,
    freed !== null && `${humanBytes(freed)} freed`,
    failureWords(outcomeItems(outcome)),
  ]).join(", ");
}
