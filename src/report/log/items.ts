/** Log lines of single removals and events, as they happen. */

import type { PassId } from "../../model/ids.ts";
import type { ContainerItem, ImageItem, LogItem, SandboxItem } from "../../model/outcome.ts";
import type { Event } from "../../model/pass.ts";
import { containerRemove, logRemove, sandboxRemove } from "../container-reasons.ts";
import { type JsonObject, msOf } from "../document/json.ts";
import { imageTrigger } from "../image-reasons.ts";
import { containerName, imageName, sandboxName } from "../names.ts";
import { imageResultWords, removalResultWords } from "../pass-words.ts";
import { capitalised } from "../terminal.ts";
import type { Log } from "./log.ts";

export function logImage(log: Log, passId: PassId, item: ImageItem): void {
  const name = imageName(item.candidate.image);
  const message = `Image ${name}: ${imageResultWords(item.result)}`;
  const fields: JsonObject = {
    image: item.candidate.image.id,
    trigger: item.trigger.kind,
    sizeBytes: item.candidate.image.sizeBytes,
    tookMs: msOf(item.took),
    passId,
  };
  const topic = `image/${item.candidate.image.id}`;
  if (item.result.kind === "failed") return log.failure(topic, message, fields);
  if (item.result.kind === "ghost") return log.recurring(topic, message, fields);
  if (item.result.kind === "skipped") return log.info(3, message, fields);
  log.success(topic, `Removal of image ${name}`);
  log.info(2, `${message} (${imageTrigger.text(item.trigger)})`, fields);
}

/** A container, a sandbox or logs. */
export function logThing(
  log: Log,
  passId: PassId,
  item: ContainerItem | SandboxItem | LogItem,
): void {
  const { what, why, fields: own } = described(item);
  const { result } = item;
  const topic = `removal/${what}`;
  const message = capitalised(`${what}: ${removalResultWords(result)}`);
  const fields = { ...own, passId };
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

interface Described {
  readonly what: string;
  readonly why: string;
  readonly fields: JsonObject;
}

function described(item: ContainerItem | SandboxItem | LogItem): Described {
  if ("planned" in item) {
    const { container } = item.planned;
    return {
      what: `container ${containerName(container)}`,
      why: containerRemove.text(item.reason),
      fields: { container: container.id, logFiles: item.logFiles, logBytes: item.logBytes },
    };
  }
  if ("sandbox" in item)
    return {
      what: `sandbox ${sandboxName(item.sandbox)}`,
      why: sandboxRemove.text(item.reason),
      fields: { sandbox: item.sandbox.id },
    };
  return {
    what: `${item.kind === "pod-logs" ? "pod logs" : "log link"} ${item.entry}`,
    why: logRemove.text(item.reason),
    fields: { entry: item.entry, logBytes: item.bytes },
  };
}
