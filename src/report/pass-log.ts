/** A pass in the log: what it did, thing by thing, then one line that sums it up. */
import type { ImageItem, RemovalResult } from "../model/outcome.ts";
import type { Pass } from "../model/pass.ts";
import { since } from "../model/time.ts";
import { counted, humanBytes, humanDuration, usedPercent } from "./bytes.ts";
import { containerRemoveWords, logRemoveWords, sandboxRemoveWords } from "./container-words.ts";
import { stepJson } from "./gc-document.ts";
import { imageName } from "./image-names.ts";
import { type JsonObject, msOf } from "./json.ts";
import type { Log } from "./log.ts";
import {
  containerEndWords,
  imageEndWords,
  imageResultWords,
  passTitle,
  removalResultWords,
} from "./pass-words.ts";
import { blockWords, keepWords, triggerWords } from "./words.ts";

/** Everything of a finished pass that the log should say, at the level where it belongs. */
export function logPass(log: Log, pass: Pass): void {
  const speaker = log.named(pass.kind);
  if (pass.images !== null) for (const item of pass.images.items) logImage(speaker, pass, item);
  logThings(speaker, pass);
  explainImages(speaker, pass);
  logSteps(speaker, pass);
  for (const event of pass.events)
    speaker.recurring(`event/${event.reason}`, event.message, {
      event: event.reason,
      passId: pass.id,
    });
  logSummary(speaker, pass);
}

function logSummary(log: Log, pass: Pass): void {
  const topic = `pass/${pass.kind}`;
  const fields = summaryFields(pass);
  const failed = pass.error ?? pass.images?.error ?? null;
  if (failed !== null) {
    log.failure(topic, `${capital(passTitle(pass.kind))} failed: ${failed}`, fields);
    return;
  }
  log.success(topic, capital(passTitle(pass.kind)));
  log.info(didSomething(pass) ? 1 : 2, passSummary(pass), fields);
}

/** One sentence: `Image collection: 3 images removed, 1.2 GiB freed, …, in 2.1s`. */
export function passSummary(pass: Pass): string {
  const parts = [...containerParts(pass), ...imageParts(pass)];
  const took = humanDuration(since(pass.endedAt, pass.startedAt));
  return `${capital(passTitle(pass.kind))}: ${parts.join("; ") || "nothing was asked for"} (${took})`;
}

function imageParts(pass: Pass): readonly string[] {
  const outcome = pass.images;
  if (outcome === null) return [];
  const blocks = pass.plan.images?.blocks ?? [];
  const end =
    outcome.end === "blocked" && blocks[0] !== undefined
      ? blockWords(blocks[0])
      : imageEndWords(outcome.end);
  const removed = outcome.items.filter((it) => it.result.kind === "removed").length;
  if (removed === 0) return [end];
  const freed =
    outcome.measuredFreedBytes > 0n ? outcome.measuredFreedBytes : outcome.reportedFreedBytes;
  return [`${counted(removed, "image")} removed, ${humanBytes(freed)} freed, ${end}`];
}

function containerParts(pass: Pass): readonly string[] {
  const outcome = pass.containers;
  if (outcome === null) return [];
  const gone = [
    ...some(removed(outcome.containers), "container", "containers"),
    ...some(removed(outcome.sandboxes), "sandbox", "sandboxes"),
    ...some(removed(outcome.logs), "log entry", "log entries"),
  ];
  if (gone.length > 0) return [`${gone.join(", ")} removed`];
  return outcome.end === "done" ? ["no container had to go"] : [containerEndWords(outcome.end)];
}

const some = (count: number, one: string, many: string): readonly string[] =>
  count === 0 ? [] : [counted(count, one, many)];

/** The figures of the summary line; the JSON log has the timed steps too. */
function summaryFields(pass: Pass): JsonObject {
  const images = pass.images;
  const available = images?.availableAfter ?? null;
  const capacity = images?.capacityBytes ?? null;
  return {
    passId: pass.id,
    tookMs: msOf(since(pass.endedAt, pass.startedAt)),
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

function logImage(log: Log, pass: Pass, item: ImageItem): void {
  const name = imageName(item.candidate.image);
  const message = `Image ${name}: ${imageResultWords(item.result)}`;
  const fields: JsonObject = {
    image: item.candidate.image.id,
    trigger: item.trigger.kind,
    sizeBytes: item.candidate.image.sizeBytes,
    tookMs: msOf(item.took),
    passId: pass.id,
  };
  const topic = `image/${item.candidate.image.id}`;
  if (item.result.kind === "failed") return log.failure(topic, message, fields);
  if (item.result.kind === "ghost") return log.recurring(topic, message, fields);
  if (item.result.kind === "skipped") return log.info(3, message, fields);
  log.success(topic, `Removal of image ${name}`);
  log.info(2, `${message} (${triggerWords(item.trigger)})`, fields);
}

function logThings(log: Log, pass: Pass): void {
  const outcome = pass.containers;
  if (outcome === null) return;
  const passId = pass.id;
  for (const it of outcome.containers) {
    const { id, name, podName } = it.planned.container;
    logRemoval(log, it.result, {
      what: `Container ${podName}/${name}`,
      why: containerRemoveWords(it.reason),
      fields: { container: id, logFiles: it.logFiles, logBytes: it.logBytes, passId },
    });
    if (it.logError !== null)
      log.recurring(`logs/${id}`, `Logs of container ${podName}/${name}: ${it.logError}`, {
        container: id,
        passId,
      });
  }
  for (const it of outcome.sandboxes)
    logRemoval(log, it.result, {
      what: `Sandbox ${it.sandbox.namespace}/${it.sandbox.name}`,
      why: sandboxRemoveWords(it.reason),
      fields: { sandbox: it.sandbox.id, passId },
    });
  for (const it of outcome.logs)
    logRemoval(log, it.result, {
      what: `Logs ${it.entry}`,
      why: logRemoveWords(it.reason),
      fields: { entry: it.entry, logBytes: it.bytes, passId },
    });
  for (const error of outcome.errors) log.failure(`read/${error}`, error, { passId });
}

interface Removal {
  readonly what: string;
  readonly why: string;
  readonly fields: JsonObject;
}

function logRemoval(log: Log, result: RemovalResult, removal: Removal): void {
  const message = `${removal.what}: ${removalResultWords(result)}`;
  const topic = `removal/${removal.what}`;
  if (result.kind === "failed") return log.failure(topic, message, removal.fields);
  if (result.kind === "skipped") return log.info(3, message, removal.fields);
  log.success(topic, `Removal of ${removal.what}`);
  log.info(2, `${message} (${removal.why})`, removal.fields);
}

function logSteps(log: Log, pass: Pass): void {
  if (!log.enabled(4)) return;
  for (const step of pass.steps)
    log.info(4, `Step ${step.name}${step.error === null ? "" : `: ${step.error}`}`, {
      passId: pass.id,
      tookMs: msOf(step.took),
    });
}

function explainImages(log: Log, pass: Pass): void {
  const plan = pass.plan.images;
  if (plan === null || !log.enabled(5)) return;
  for (const it of plan.kept)
    log.info(5, `Image ${imageName(it.image)} is kept: ${keepWords(it.reason)}`, {
      image: it.image.id,
      code: it.reason.kind,
      passId: pass.id,
    });
  for (const [index, it] of plan.candidates.entries())
    log.info(5, `Image ${imageName(it.image)} is number ${index + 1} to go`, {
      image: it.image.id,
      unusedForMs: msOf(it.unusedFor),
      expected: it.expected,
      passId: pass.id,
    });
}

const removed = (items: readonly { readonly result: RemovalResult }[]): number =>
  items.filter((it) => it.result.kind === "removed" || it.result.kind === "already-gone").length;

const didSomething = (pass: Pass): boolean =>
  (pass.images?.items.length ?? 0) > 0 ||
  (pass.containers !== null &&
    pass.containers.containers.length +
      pass.containers.sandboxes.length +
      pass.containers.logs.length >
      0);

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
