/** Document `GcReport` and the output of `crigc gc`: how each half ended, what it freed, and each removal. */

import {
  type ContainerOutcome,
  type ImageItem,
  type ImageOutcome,
  type ImageResult,
  type Pass,
  type RemovalResult,
} from "../model/pass.ts";
import { since, toMs } from "../model/time.ts";
import { podReasons } from "./container-reasons.ts";
import { containerJson, document, eventJson, imageJson, jsonOf, sandboxJson } from "./document.ts";
import { imageKeep, imageTrigger, triggerTitle } from "./image-reasons.ts";
import {
  containerPassWords,
  eventWords,
  failureWords,
  goneCounts,
  imagePassWords,
  imageResultWords,
  passTitle,
  removalResultWords,
} from "./pass-words.ts";
import { KEPT_COLUMNS, planBody, printPlan } from "./plan.ts";
import { column, type Columns, OPTIONAL, Printer, RIGHT } from "./printer.ts";
import { clean, present, type Screen } from "./terminal.ts";
import {
  bytesCell,
  changeCell,
  containerName,
  counted,
  humanBytes,
  humanMs,
  imageName,
  kindTitle,
  sandboxName,
  spaceWords,
} from "./words.ts";

export type GcDocument = ReturnType<typeof gcDocument>;

export const gcDocument = (pass: Pass) =>
  document("GcReport", {
    ...passHeadJson(pass),
    error: pass.error,
    images: pass.images === null ? null : imageOutcomeJson(pass.images, pass),
    containers: pass.containers === null ? null : containerOutcomeJson(pass.containers, pass),
    events: pass.events.map(eventJson),
    plan: planBody(pass.plan),
  });

export const passHeadJson = ({ id, kind, purpose, ...pass }: Pass) => ({
  passId: id,
  passKind: kind,
  purpose: purpose.kind,
  signals: purpose.kind === "pressure" ? purpose.signals : undefined,
  /** Whether images were selected by hand. */
  selected: purpose.kind === "all-unused" ? purpose.only !== undefined : undefined,
  ...jsonOf(pass, "requestedBy", "dryRun", "startedAt", "endedAt"),
  tookMs: toMs(since(pass.endedAt, pass.startedAt)),
});

type ImageOutcomeJson = ReturnType<typeof imageOutcomeJson>;

const imageOutcomeJson = (outcome: ImageOutcome, pass: Pass) => ({
  end: outcome.end,
  endText: imagePassWords(pass),
  ...jsonOf(outcome, "wantedBytes", "reportedFreedBytes", "measuredFreedBytes", "capacityBytes"),
  ...jsonOf(outcome, "error", "nothingFreed"),
  estimatedFreedBytes: estimatedBytes(outcome),
  availableBeforeBytes: outcome.availableBefore,
  availableAfterBytes: outcome.availableAfter,
  items: outcome.items.map(imageItemJson),
  ghosts: outcome.ghosts.map(imageJson),
});

/** About what the removals free, by the estimates. */
const estimatedBytes = ({ items }: ImageOutcome): bigint =>
  items.reduce(
    (sum, { result, candidate }) =>
      result.kind === "removed" ? sum + candidate.estimateBytes : sum,
    0n,
  );

type ImageItemJson = ReturnType<typeof imageItemJson>;

const imageItemJson = ({ candidate, trigger, result, ...item }: ImageItem) => ({
  id: candidate.image.id,
  name: imageName(candidate.image),
  ...jsonOf(candidate.image, "repoTags", "sizeBytes"),
  ...jsonOf(candidate, "estimateBytes", "unusedFor"),
  trigger: imageTrigger.json(trigger),
  result: imageResultJson(result),
  ...jsonOf(item, "startedAt", "took"),
});

const imageResultJson = (result: ImageResult) => ({
  ...(result.kind === "skipped"
    ? { kind: result.kind, reason: imageKeep.json(result.reason) }
    : result),
  text: imageResultWords(result),
});

type ContainerOutcomeJson = ReturnType<typeof containerOutcomeJson>;

const containerOutcomeJson = (outcome: ContainerOutcome, pass: Pass) => ({
  ...jsonOf(outcome, "end", "measuredFreedBytes", "errors"),
  endText: containerPassWords(pass),
  containers: outcome.containers.map((item) => ({
    ...containerJson(item.planned.container),
    reason: podReasons.json(item.reason),
    result: removalJson(item.result),
    ...jsonOf(item, "stopped", "logFiles", "logBytes", "logError"),
  })),
  sandboxes: outcome.sandboxes.map(({ sandbox, reason, result }) => ({
    ...sandboxJson(sandbox),
    reason: podReasons.json(reason),
    result: removalJson(result),
  })),
  logs: outcome.logs.map(({ kind, entry, reason, result, bytes }) => ({
    kind,
    entry,
    reason: podReasons.json(reason),
    result: removalJson(result),
    logBytes: bytes,
  })),
});

const removalJson = (result: RemovalResult) => ({ ...result, text: removalResultWords(result) });

const isSkipped = ({ result }: { readonly result: { readonly kind: string } }): boolean =>
  result.kind === "skipped";

/** `isBrief`: each removal that was tried has been printed as it happened. */
export function gcTable(pass: GcDocument, screen: Screen, isBrief = false): string {
  const { plan, images, containers, dryRun, selected = false } = pass;
  const printer = new Printer(screen);
  const what = dryRun ? "dry run, nothing removed" : `took ${humanMs(pass.tookMs)}`;
  printer.say(`Pass ${pass.passId}: ${passTitle(pass.passKind)}${purposeWords(pass)}, ${what}`);
  if (pass.error !== null) printer.say(`Failed: ${clean(pass.error)}`, "red");
  printer.gap();
  if (dryRun) printPlan(printer, plan);
  if (!dryRun && containers !== null) printContainers(printer, containers, isBrief);
  if (!dryRun && images !== null) printImages(printer, images, isBrief);
  for (const event of pass.events) printer.say(`Warning ${eventWords(event)}`, "yellow");
  const kept = selected && plan.images !== null ? plan.images.kept : [];
  printer.table(
    KEPT_COLUMNS,
    kept.filter(({ reason }) => reason.code !== "not-selected"),
  );
  return printer.text();
}

/** What a pass is for, in brackets; "" for a periodic one. */
function purposeWords({ purpose, signals = [], selected = false }: GcDocument): string {
  if (purpose === "periodic") return "";
  if (purpose === "pressure") return ` (disk pressure: ${signals.join(", ")})`;
  return selected ? " (selected)" : " (all unused)";
}

const IMAGE_COLUMNS: Columns<ImageItemJson> = [
  column("IMAGE", ({ name }) => name),
  column("SIZE", ({ sizeBytes }) => humanBytes(sizeBytes), RIGHT),
  // Estimated by layers, next to what was freed.
  column("ESTIMATE", ({ estimateBytes }) => bytesCell(estimateBytes), OPTIONAL),
  column(
    "FREED",
    ({ result }) => changeCell(result.kind === "removed" ? result.measuredBytes : null),
    RIGHT,
  ),
  column("TOOK", ({ tookMs }) => humanMs(tookMs), RIGHT),
  column("WHY", ({ trigger }) => triggerTitle(trigger)),
  column("RESULT", ({ result }) => resultTitle(result)),
];

/** The result without its bytes, which have their own column. */
const resultTitle = (result: ImageItemJson["result"]): string =>
  result.kind === "removed" ? "removed" : result.text;

function printImages(printer: Printer, outcome: ImageOutcomeJson, isBrief: boolean): void {
  const { items } = outcome;
  const error = outcome.error === null ? "" : ` (${clean(outcome.error)})`;
  printer.say(`Images: ${outcome.endText}${error}.`);
  if (items.length > 0 || (outcome.wantedBytes ?? 0n) > 0n)
    printer.say(freedSentence(outcome, items));
  printer.table(IMAGE_COLUMNS, isBrief ? items.filter(isSkipped) : items);
  printer.gap();
}

/** Measured freed bytes, the target, and free space. */
function freedSentence(outcome: ImageOutcomeJson, items: readonly ImageItemJson[]): string {
  const { wantedBytes, reportedFreedBytes, measuredFreedBytes, estimatedFreedBytes } = outcome;
  const { availableBeforeBytes: before, availableAfterBytes: after, capacityBytes } = outcome;
  const removed = items.filter(({ result }) => result.kind === "removed").length;
  const estimate =
    estimatedFreedBytes === null ? "" : `${humanBytes(estimatedFreedBytes)} estimated, `;
  const parts = present([
    `${counted(removed, "image")} removed`,
    removed > 0 &&
      `${humanBytes(measuredFreedBytes)} freed (${estimate}${humanBytes(reportedFreedBytes)} reported)`,
    failureWords(items),
    wantedBytes !== null && wantedBytes > 0n && `target ${humanBytes(wantedBytes)}`,
  ]).join(", ");
  if (after === null || capacityBytes === null) return `${parts}.`;
  const earlier = before === null || before === after ? "" : ` (${humanBytes(before)} before)`;
  return `${parts}. Disk: ${spaceWords({ capacityBytes, availableBytes: after })}${earlier}.`;
}

interface PodRow {
  readonly kind: string;
  readonly name: string;
  readonly reason: { readonly text: string };
  readonly result: ReturnType<typeof removalJson>;
  readonly logError?: string | null;
}

const rowsOf = ({ containers, sandboxes, logs }: ContainerOutcomeJson): readonly PodRow[] => [
  ...containers.map((it) => ({ ...it, kind: "container", name: containerName(it) })),
  ...sandboxes.map((it) => ({ ...it, kind: "sandbox", name: sandboxName(it) })),
  ...logs.map((it) => ({ ...it, kind: kindTitle(it.kind), name: clean(it.entry) })),
];

const POD_COLUMNS: Columns<PodRow> = [
  column("KIND", ({ kind }) => kind),
  column("NAME", ({ name }) => name),
  column("WHY", ({ reason }) => reason.text),
  column(
    "RESULT",
    ({ result, logError = null }) =>
      result.text + (logError === null ? "" : `, logs: ${clean(logError)}`),
  ),
];

function printContainers(printer: Printer, outcome: ContainerOutcomeJson, isBrief: boolean): void {
  const rows = rowsOf(outcome);
  const { endText, measuredFreedBytes: freed } = outcome;
  const counts = present([
    `${goneCounts(outcome).join(", ")} removed`,
    freed !== null && `${humanBytes(freed)} freed`,
    failureWords(rows),
  ]).join(", ");
  printer.say(`Containers: ${endText}${rows.length === 0 ? "" : `. ${counts}`}.`);
  printer.table(POD_COLUMNS, isBrief ? rows.filter(isSkipped) : rows);
  for (const error of outcome.errors) printer.say(`Failed: ${clean(error)}.`);
  printer.gap();
}
