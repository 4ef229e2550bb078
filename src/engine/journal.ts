/** Distributes the records of passes to the log, the history, the metrics and the event hook. */

import { isCutOff } from "../gc/pass-warnings.ts";
import type { Journal } from "../gc/ports.ts";
import type { PassId } from "../model/ids.ts";
import {
  type ContainerItem,
  type Event,
  hasRemoved,
  type ImageItem,
  type LogItem,
  outcomeItems,
  type Pass,
  type SandboxItem,
} from "../model/pass.ts";
import type { ImageBlock } from "../model/reason.ts";
import { type Instant, since, toMs } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { podReasons, removalName } from "../report/container-reasons.ts";
import { type JsonObject, jsonOf } from "../report/document.ts";
import { imageBlock, imageKeep, imageTrigger } from "../report/image-reasons.ts";
import {
  endWords,
  imageResultWords,
  passSummary,
  passTitle,
  removalResultWords,
} from "../report/pass-words.ts";
import { present } from "../report/terminal.ts";
import { imageName, usedPercent } from "../report/words.ts";
import type { Recorder } from "../state/recorder.ts";
import type { Log } from "./log.ts";

export interface JournalOptions {
  readonly log: () => Log;
  /** `null`: a dry run, which records nothing. */
  readonly recorder: Recorder | null;
  readonly now: () => Instant;
  /** Further listeners; none of them may throw. */
  readonly onPass?: (pass: Pass) => void;
  readonly onEvent?: (event: Event) => void;
}

export function journalOf(options: JournalOptions): Journal {
  const { log, recorder, now } = options;
  return {
    passStarted: (start) => recorder?.passStarted(start),
    imageDone: (id, item) => {
      recorder?.imageDone(id, item);
      logImage(log(), id, item);
    },
    containerDone: (id, item) => {
      recorder?.containerDone(id, item, now());
      logContainerItem(log(), id, item);
    },
    passEnded: (pass, seen) => {
      recorder?.passEnded(pass, seen?.filesystems ?? null);
      logPassEnd(log(), pass);
      options.onPass?.(pass);
    },
    event: (event) => {
      recorder?.event(event);
      const { reason, message, passId } = event;
      const fields = { event: reason, passId: passId ?? undefined };
      log().recurring(`event/${reason}`, message, fields);
      options.onEvent?.(event);
    },
    say: (verbosity, message) => log().info(verbosity, message),
    failed: (topic, message) => log().failure(topic, message),
    succeeded: (topic, what) => log().success(topic, what),
  };
}

function logImage(log: Log, passId: PassId, { candidate, trigger, result, took }: ImageItem): void {
  const { image } = candidate;
  const name = imageName(image);
  const { id, sizeBytes } = image;
  logRemoval(log, result.kind, {
    what: `image ${name}`,
    topic: `image/${id}`,
    message: `Image ${name}: ${imageResultWords(result)}`,
    why: imageTrigger.text(trigger),
    fields: { image: id, trigger: trigger.kind, sizeBytes, tookMs: toMs(took), passId },
  });
}

function logContainerItem(
  log: Log,
  passId: PassId,
  item: ContainerItem | SandboxItem | LogItem,
): void {
  const what = removalName(item);
  const why = podReasons.text(item.reason);
  const message = capitalised(`${what}: ${removalResultWords(item.result)}`);
  const fields = { ...figuresOf(item), passId };
  logRemoval(log, item.result.kind, { what, topic: `removal/${idOf(item)}`, message, why, fields });
  if ("logError" in item && item.logError !== null)
    log.recurring(`logs/${idOf(item)}`, `Logs of ${what}: ${item.logError}`, fields);
}

/** Instances of a container have its name in common. */
function idOf(item: ContainerItem | SandboxItem | LogItem): string {
  if ("planned" in item) return item.planned.container.id;
  return "sandbox" in item ? item.sandbox.id : item.entry;
}

interface RemovalLine {
  readonly what: string;
  readonly topic: string;
  readonly message: string;
  readonly why: string;
  readonly fields: JsonObject;
}

function logRemoval(
  log: Log,
  result: ImageItem["result"]["kind"] | ContainerItem["result"]["kind"],
  { what, topic, message, why, fields }: RemovalLine,
): void {
  if (result === "failed") return log.failure(topic, message, fields);
  if (result === "ghost") return log.recurring(topic, message, fields);
  if (result === "skipped") return log.info(3, message, fields);
  log.success(topic, `Removal of ${what}`);
  log.info(2, `${message} (${why})`, fields);
}

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
function logPassEnd(log: Log, pass: Pass): void {
  const speaker = log.named(pass.kind);
  explainImages(speaker, pass);
  logSteps(speaker, pass);
  logContainerErrors(speaker, pass);
  logSummary(speaker, pass);
}

function logSummary(log: Log, pass: Pass): void {
  const topic = `pass/${pass.kind}`;
  const title = capitalised(passTitle(pass.kind));
  const fields = summaryFields(pass);
  const failed = pass.error ?? pass.images?.error ?? null;
  const isIdle = !didSomething(pass);
  if (failed !== null) return log.failure(topic, `${title} failed: ${failed}`, fields);
  // The agent logs once why that loop failed.
  if (pass.kind === "container-gc" && isIdle && (pass.containers?.errors ?? []).length > 0) return;
  // Comes every few seconds while the pressure lasts: without figures the line is identical, so it is folded.
  if (pass.kind === "pressure" && !hasRemoved(pass))
    return log.recurring(topic, emptySummary(pass), fields);
  if (!isCutOff(pass)) log.success(topic, title);
  log.info(isIdle ? 2 : 1, passSummary(pass), fields);
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

function emptySummary(pass: Pass): string {
  const { kind, containers, images, purpose, plan } = pass;
  const ends = present([
    containers !== null &&
      containers.end !== "done" &&
      `containers: ${endWords(containers.end)}${blockedBy(plan.containers?.blocks)}`,
    images !== null &&
      `images: ${endWords(images.end, purpose.kind)}${blockedBy(plan.images?.blocks)}`,
  ]);
  const what = didSomething(pass) ? "removed nothing" : "found nothing to remove";
  return `${capitalised(passTitle(kind))} ${what}${ends.length === 0 ? "" : ` (${ends.join("; ")})`}`;
}

/** What blocks removal, without figures that change all the time. */
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
    steps: pass.steps.map((step) => jsonOf(step)),
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
