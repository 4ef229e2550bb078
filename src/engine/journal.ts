/** Tells history, log, status and metrics of passes and events; and what the log says of them. */

import { isCutOff } from "../gc/pass-warnings.ts";
import type { Journal } from "../gc/ports.ts";
import type { PassId } from "../model/ids.ts";
import {
  type ContainerItem,
  hasRemoved,
  type ImageItem,
  type LogItem,
  outcomeItems,
  type Pass,
  type SandboxItem,
} from "../model/pass.ts";
import { since, toMs } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { podReasons, removalName } from "../report/container-reasons.ts";
import type { JsonObject } from "../report/document.ts";
import { imageKeep, imageTrigger } from "../report/image-reasons.ts";
import {
  imageResultWords,
  passSummary,
  passTitle,
  removalResultWords,
} from "../report/pass-words.ts";
import { humanBytes, imageName, usedPercent } from "../report/words.ts";
import type { Log } from "./log.ts";

/** Tells each listener, in this order, what it listens to. */
export function journalOf(...listeners: readonly Partial<Journal>[]): Journal {
  const each = (tell: (listener: Partial<Journal>) => void): void => listeners.forEach(tell);
  return {
    passStarted: (start) => each((it) => it.passStarted?.(start)),
    imageDone: (id, item) => each((it) => it.imageDone?.(id, item)),
    containerDone: (id, item) => each((it) => it.containerDone?.(id, item)),
    passEnded: (pass, seen) => each((it) => it.passEnded?.(pass, seen)),
    event: (event) => each((it) => it.event?.(event)),
    say: (verbosity, message) => each((it) => it.say?.(verbosity, message)),
    failed: (topic, message) => each((it) => it.failed?.(topic, message)),
    succeeded: (topic, what) => each((it) => it.succeeded?.(topic, what)),
  };
}

export const logListener = (log: Log): Partial<Journal> => ({
  imageDone: (id, item) => logImage(log, id, item),
  containerDone: (id, item) => logContainerItem(log, id, item),
  // After a brief log comes the report of the pass, which has its end and its events.
  passEnded: (pass) => (log.isBrief ? undefined : logPassEnd(log, pass)),
  event: ({ reason, message, passId }) => {
    if (log.isBrief) return;
    const fields = { event: reason, passId: passId ?? undefined };
    log.recurring(`event/${reason}`, message, fields);
  },
  say: (verbosity, message) => log.info(verbosity, message),
  failed: (topic, message) => log.failure(topic, message),
  succeeded: (topic, what) => log.success(topic, what),
});

function logImage(log: Log, passId: PassId, { candidate, trigger, result, took }: ImageItem): void {
  const { image } = candidate;
  const { id, sizeBytes } = image;
  logRemoval(log, `image/${id}`, {
    what: `image ${imageName(image)}`,
    result: result.kind,
    outcome: imageResultWords(result),
    why: imageTrigger.text(trigger),
    rest:
      "availableBytes" in result && typeof result.availableBytes === "bigint"
        ? `; ${humanBytes(result.availableBytes)} available`
        : "",
    fields: { image: id, trigger: trigger.kind, sizeBytes, tookMs: toMs(took), passId },
  });
}

function logContainerItem(
  log: Log,
  passId: PassId,
  item: ContainerItem | SandboxItem | LogItem,
): void {
  const { what, id, ...figures } = figuresOf(item);
  const fields = { ...figures, passId };
  logRemoval(log, `removal/${id}`, {
    what,
    result: item.result.kind,
    outcome: removalResultWords(item.result),
    why: podReasons.text(item.reason),
    fields,
  });
  if ("logError" in item && item.logError !== null)
    log.recurring(`logs/${id}`, `Logs of ${what}: ${item.logError}`, fields);
}

/** Instances of a container have its name in common, so its ID tells them apart. */
function figuresOf(item: ContainerItem | SandboxItem | LogItem) {
  const what = removalName(item);
  if ("planned" in item) {
    const { planned, logFiles, logBytes } = item;
    const { id } = planned.container;
    return { what, id, container: id, logFiles, logBytes };
  }
  if ("sandbox" in item) return { what, id: item.sandbox.id, sandbox: item.sandbox.id };
  return { what, id: item.entry, entry: item.entry, logBytes: item.bytes };
}

interface RemovalLine {
  readonly what: string;
  readonly result: (ImageItem | ContainerItem)["result"]["kind"];
  readonly outcome: string;
  readonly why: string;
  /** After the reason. */
  readonly rest?: string;
  readonly fields: JsonObject;
}

function logRemoval(log: Log, topic: string, line: RemovalLine): void {
  const { what, result, outcome, why, rest = "", fields } = line;
  const message = capitalised(`${what}: ${outcome}`);
  if (result === "failed") return log.failure(topic, message, fields);
  if (result === "ghost") return log.recurring(topic, message, fields);
  if (result === "skipped") return log.info(3, message, fields);
  log.success(topic, `Removal of ${what}`);
  log.info(2, `${message} (${why})${rest}`, fields);
}

/** Removals are logged as they happen. */
function logPassEnd(all: Log, pass: Pass): void {
  const log = all.named(pass.kind);
  const title = capitalised(passTitle(pass.kind));
  const topic = `pass/${pass.kind}`;
  const fields = summaryFields(pass);
  const errors = pass.containers?.errors ?? [];
  const failed = pass.error ?? pass.images?.error ?? null;
  const isIdle = !didSomething(pass);
  explainImages(log, pass);
  // The agent logs why its loop of containers failed.
  if (pass.containers !== null && pass.kind !== "container-gc") {
    const what = `${title}: containers and logs`;
    if (errors.length === 0) log.success(`${topic}/containers`, what);
    else log.failure(`${topic}/containers`, `${what}: ${errors.join("; ")}`, { passId: pass.id });
  }
  if (failed !== null) return log.failure(topic, `${title} failed: ${failed}`, fields);
  if (pass.kind === "container-gc" && isIdle && errors.length > 0) return;
  // Comes every few seconds while the pressure lasts, with other figures.
  if (pass.kind === "pressure" && !hasRemoved(pass))
    return log.lasting({ topic, condition: conditionOf(pass) }, passSummary(pass), fields);
  if (!isCutOff(pass)) log.success(topic, title);
  log.info(isIdle ? 2 : 1, passSummary(pass), fields);
}

const conditionOf = ({ images, containers, plan }: Pass): string =>
  [
    images?.end,
    plan.images?.blocks[0]?.kind,
    containers?.end,
    plan.containers?.blocks[0]?.kind,
  ].join();

/** Figures of the summary line. */
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
  };
}

function explainImages(log: Log, pass: Pass): void {
  const plan = pass.plan.images;
  if (plan === null || !log.enabled(4)) return;
  for (const it of plan.kept)
    log.info(4, `Image ${imageName(it.image)} kept: ${imageKeep.text(it.reason)}`, {
      image: it.image.id,
      code: it.reason.kind,
      passId: pass.id,
    });
  for (const [index, it] of plan.candidates.entries())
    log.info(4, `Image ${imageName(it.image)}: candidate ${index + 1}`, {
      image: it.image.id,
      unusedForMs: toMs(it.unusedFor),
      expected: it.expected,
      passId: pass.id,
    });
}

const didSomething = (pass: Pass): boolean =>
  (pass.images?.items.length ?? 0) > 0 ||
  (pass.containers !== null && outcomeItems(pass.containers).length > 0);
