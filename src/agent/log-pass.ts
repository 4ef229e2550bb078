/** Log lines of passes: each removal and event as it happens, and a finished pass with its steps and a summary. */

import type { PassId } from "../model/ids.ts";
import {
  type ContainerItem,
  type ImageItem,
  type LogItem,
  outcomeItems,
  type SandboxItem,
} from "../model/outcome.ts";
import type { Event, Pass } from "../model/pass.ts";
import type { ImageBlock } from "../model/reason.ts";
import { since, toMs } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { usedPercent } from "../report/bytes.ts";
import { removalWords } from "../report/container-reasons.ts";
import type { JsonObject } from "../report/document.ts";
import { stepJson } from "../report/gc.ts";
import { imageBlock, imageKeep, imageTrigger } from "../report/image-reasons.ts";
import { imageName } from "../report/names.ts";
import {
  containerEndWords,
  endWords,
  imageResultWords,
  passSummary,
  passTitle,
  removalResultWords,
} from "../report/pass-words.ts";
import { present } from "../report/terminal.ts";
import type { Log } from "./log.ts";

export function logImage(log: Log, passId: PassId, item: ImageItem): void {
  const name = imageName(item.candidate.image);
  const message = `Image ${name}: ${imageResultWords(item.result)}`;
  const fields: JsonObject = {
    image: item.candidate.image.id,
    trigger: item.trigger.kind,
    sizeBytes: item.candidate.image.sizeBytes,
    tookMs: toMs(item.took),
    passId,
  };
  const topic = `image/${item.candidate.image.id}`;
  if (item.result.kind === "failed") return log.failure(topic, message, fields);
  if (item.result.kind === "ghost") return log.recurring(topic, message, fields);
  if (item.result.kind === "skipped") return log.info(3, message, fields);
  log.success(topic, `Removal of image ${name}`);
  log.info(2, `${message} (${imageTrigger.text(item.trigger)})`, fields);
}

export function logContainerItem(
  log: Log,
  passId: PassId,
  item: ContainerItem | SandboxItem | LogItem,
): void {
  const { kind, name, why } = removalWords(item);
  const what = `${kind} ${name}`;
  const { result } = item;
  const topic = `removal/${what}`;
  const message = capitalised(`${what}: ${removalResultWords(result)}`);
  const fields = { ...figuresOf(item), passId };
  if (result.kind === "failed") log.failure(topic, message, fields);
  else if (result.kind === "skipped") log.info(3, message, fields);
  else {
    log.success(topic, `Removal of ${what}`);
    log.info(2, `${message} (${why})`, fields);
  }
  if ("logError" in item && item.logError !== null)
    log.recurring(`logs/${what}`, `Logs of ${what}: ${item.logError}`, fields);
}

export const logEvent = (log: Log, event: Event): void =>
  log.recurring(`event/${event.reason}`, event.message, {
    event: event.reason,
    passId: event.passId ?? undefined,
  });

function figuresOf(item: ContainerItem | SandboxItem | LogItem): JsonObject {
  if ("planned" in item) {
    const { logFiles, logBytes } = item;
    return { container: item.planned.container.id, logFiles, logBytes };
  }
  return "sandbox" in item
    ? { sandbox: item.sandbox.id }
    : { entry: item.entry, logBytes: item.bytes };
}

/** Each at its level; removals are logged as they happen. */
export function logPassEnd(log: Log, pass: Pass): void {
  const speaker = log.named(pass.kind);
  explainImages(speaker, pass);
  logSteps(speaker, pass);
  logContainerErrors(speaker, pass);
  logSummary(speaker, pass);
}

function logSummary(log: Log, pass: Pass): void {
  const topic = `pass/${pass.kind}`;
  const fields = summaryFields(pass);
  const failed = pass.error ?? pass.images?.error ?? null;
  if (failed !== null) {
    log.failure(topic, `${capitalised(passTitle(pass.kind))} failed: ${failed}`, fields);
    return;
  }
  // The agent logs once why that loop failed.
  if (
    pass.kind === "container-gc" &&
    !didSomething(pass) &&
    (pass.containers?.errors ?? []).length > 0
  )
    return;
  if (pass.kind === "pressure" && !didSomething(pass)) {
    // Comes every few seconds while the pressure lasts: without figures the line is identical, so it is folded.
    log.recurring(topic, idleSummary(pass), fields);
    return;
  }
  log.success(topic, capitalised(passTitle(pass.kind)));
  log.info(didSomething(pass) ? 1 : 2, passSummary(pass), fields);
}

/** What the container half could not read or do; the rest of the pass continued. */
function logContainerErrors(log: Log, { kind, id, containers }: Pass): void {
  // The agent logs why that loop failed.
  if (containers === null || kind === "container-gc") return;
  const topic = `pass/${kind}/containers`;
  const what = `${capitalised(passTitle(kind))}: containers and logs`;
  if (containers.errors.length === 0) {
    log.success(topic, what);
    return;
  }
  log.failure(topic, `${what}: ${containers.errors.join("; ")}`, { passId: id });
}

function idleSummary({ kind, containers, images, purpose, plan }: Pass): string {
  const ends = present([
    containers !== null &&
      containers.end !== "done" &&
      `containers: ${containerEndWords(containers.end)}${blockedBy(plan.containers?.blocks)}`,
    images !== null &&
      `images: ${endWords(images.end, purpose.kind)}${blockedBy(plan.images?.blocks)}`,
  ]);
  return `${capitalised(passTitle(kind))} found nothing to remove${ends.length === 0 ? "" : ` (${ends.join("; ")})`}`;
}

/** What blocks removal, without figures that change meanwhile. */
function blockedBy(blocks: readonly ImageBlock[] = []): string {
  const [block] = blocks;
  return block === undefined ? "" : `: ${imageBlock.title(block.kind)}`;
}

/** Figures of the summary line; the JSON log also has the timed steps. */
function summaryFields(pass: Pass): JsonObject {
  const images = pass.images;
  const available = images?.availableAfter ?? null;
  const capacity = images?.capacityBytes ?? null;
  return {
    passId: pass.id,
    tookMs: toMs(since(pass.endedAt, pass.startedAt)),
    dryRun: pass.dryRun || undefined,
    end: images?.end,
    wantedBytes: images?.wantedBytes ?? undefined,
    measuredFreedBytes: images?.measuredFreedBytes,
    reportedFreedBytes: images?.reportedFreedBytes,
    availableBytes: available ?? undefined,
    usedPercent:
      available === null || capacity === null ? undefined : usedPercent(capacity, available),
    steps: pass.steps.map(stepJson),
  };
}

function logSteps(log: Log, pass: Pass): void {
  if (!log.enabled(4)) return;
  for (const step of pass.steps)
    log.info(4, `Step ${step.name}${step.error === null ? "" : `: ${step.error}`}`, {
      passId: pass.id,
      tookMs: toMs(step.took),
    });
}

function explainImages(log: Log, pass: Pass): void {
  const plan = pass.plan.images;
  if (plan === null || !log.enabled(5)) return;
  for (const it of plan.kept)
    log.info(5, `Image ${imageName(it.image)} kept: ${imageKeep.text(it.reason)}`, {
      image: it.image.id,
      code: it.reason.kind,
      passId: pass.id,
    });
  for (const [index, it] of plan.candidates.entries())
    log.info(5, `Image ${imageName(it.image)}: candidate ${index + 1}`, {
      image: it.image.id,
      unusedForMs: toMs(it.unusedFor),
      expected: it.expected,
      passId: pass.id,
    });
}

const didSomething = (pass: Pass): boolean =>
  (pass.images?.items.length ?? 0) > 0 ||
  (pass.containers !== null && outcomeItems(pass.containers).length > 0);
