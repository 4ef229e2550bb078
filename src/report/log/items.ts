/** Log lines of single removals and events, as they happen. */

import type { PassId } from "../../model/ids.ts";
import type {
  ContainerItem,
  ImageItem,
  LogItem,
  RemovalResult,
  SandboxItem,
} from "../../model/outcome.ts";
import type { Event } from "../../model/pass.ts";
import { containerRemove, logRemove, sandboxRemove } from "../container-reasons.ts";
import { type JsonObject, msOf } from "../document/json.ts";
import { imageTrigger } from "../image-reasons.ts";
import { imageName } from "../names.ts";
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
  const { what, why, fields } = described(item);
  const message = `${what}: ${removalResultWords(item.result)}`;
  const topic = `removal/${what}`;
  reported(log, item.result, { topic, what, why, message, fields: { ...fields, passId } });
  if ("logError" in item && item.logError !== null)
    log.recurring(`logs/${what}`, `Logs of ${what}: ${item.logError}`, { ...fields, passId });
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
    const { id, name, podName, podNamespace } = item.planned.container;
    return {
      what: `container ${podName === "" ? name : `${podNamespace}/${podName}/${name}`}`,
      why: containerRemove.text(item.reason),
      fields: { container: id, logFiles: item.logFiles, logBytes: item.logBytes },
    };
  }
  if ("sandbox" in item)
    return {
      what: `sandbox ${item.sandbox.namespace}/${item.sandbox.name}`,
      why: sandboxRemove.text(item.reason),
      fields: { sandbox: item.sandbox.id },
    };
  return {
    what: `${item.kind === "pod-logs" ? "pod logs" : "log link"} ${item.entry}`,
    why: logRemove.text(item.reason),
    fields: { entry: item.entry, logBytes: item.bytes },
  };
}

function reported(
  log: Log,
  result: RemovalResult,
  it: Described & { readonly topic: string; readonly message: string },
): void {
  const message = capitalised(it.message);
  if (result.kind === "failed") return log.failure(it.topic, message, it.fields);
  if (result.kind === "skipped") return log.info(3, message, it.fields);
  log.success(it.topic, `Removal of ${it.what}`);
  log.info(2, `${message} (${it.why})`, it.fields);
}
