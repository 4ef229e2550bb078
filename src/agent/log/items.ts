/** Log lines of single removals and events, as they happen. */

import type { PassId } from "../../model/ids.ts";
import type { ContainerItem, ImageItem, LogItem, SandboxItem } from "../../model/outcome.ts";
import type { Event } from "../../model/pass.ts";
import { toMs } from "../../model/time.ts";
import { capitalised } from "../../model/values.ts";
import { removalWords } from "../../report/container-reasons.ts";
import type { JsonObject } from "../../report/document.ts";
import { imageTrigger } from "../../report/image-reasons.ts";
import { imageName } from "../../report/names.ts";
import { imageResultWords, removalResultWords } from "../../report/pass-words.ts";
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
