/** The log: one line per fact, as text or JSON, and what it says of passes, removals and events. */

import type { Config } from "../config/config.ts";
import type { Listener } from "../gc/journal.ts";
import type { PassId } from "../model/ids.ts";
import {
  hasRemoved,
  type ImageItem,
  isFailed,
  type Pass,
  type PodItem,
  removedId,
} from "../model/pass.ts";
import type { Level } from "../model/ports.ts";
import { type Instant, instantToMs, since, toMs, toRfc3339 } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { wallClock } from "../node/clock.ts";
import { type Json, type JsonObject, toJson } from "../report/document.ts";
import { itemName, passSummary, resultWords } from "../report/pass-words.ts";
import { imageTrigger, podReasons } from "../report/reasons.ts";
import { clean } from "../report/terminal.ts";
import { humanBytes, usedPercent } from "../report/words.ts";

export interface LogOptions {
  /** `brief`: the messages alone, for a terminal; the report that follows has the end of the pass and its events. */
  readonly format: "text" | "json" | "brief";
  readonly verbosity: number;
  /** Takes one line without its newline; usually standard error. */
  readonly sink: (line: string) => void;
  readonly now: () => Instant;
}

interface LogLine {
  readonly at: Instant;
  readonly level: Level;
  readonly message: string;
  /** Names end in their unit, as in JSON documents. */
  readonly fields: JsonObject;
}

/** The log on stderr. */
export const logOf = ({ values }: Config, stderr: (text: string) => void, isBrief = false) =>
  logTo({
    format: isBrief ? "brief" : values["logging.format"],
    verbosity: values["logging.verbosity"],
    sink: (line) => stderr(`${line}\n`),
    now: wallClock,
  });

export function logTo({ format, verbosity, sink, now }: LogOptions): Partial<Listener> {
  const say = (level: Level, message: string, fields: JsonObject = {}): void => {
    if (typeof level === "number" && level > verbosity) return;
    sink(FORMATS[format]({ at: now(), level, message, fields }));
  };
  const done = (passId: PassId, item: ImageItem | PodItem, isNews: boolean): void => {
    const fields = { id: removedId(item), ...figuresOf(item), passId };
    say(removalLevel(item, isNews), removalWords(item), fields);
    if ("logError" in item && item.logError !== null)
      say("warning", `Logs of ${itemName(item)}: ${item.logError}`, fields);
  };
  if (format === "brief") return { say, done };
  return {
    say,
    done,
    passEnded: (pass, _, isNews) =>
      say(passLevel(pass, isNews), passSummary(pass), summaryFields(pass)),
    event: ({ reason, message, passId }) =>
      say("warning", message, { event: reason, passId: passId ?? undefined }),
  };
}

/** All contain no newline. */
const FORMATS: Readonly<Record<LogOptions["format"], (line: LogLine) => string>> = {
  // `I0115 12:00:00.250 crigc] Container GC: done passId="…" tookMs=12`: severity, month and day, time of day in UTC.
  text: ({ at, level, message, fields }) => {
    const iso = new Date(instantToMs(at)).toISOString();
    const letter = typeof level === "number" ? "I" : capitalised(level).slice(0, 1);
    const header = `${letter}${iso.slice(5, 7)}${iso.slice(8, 10)} ${iso.slice(11, 23)} crigc]`;
    return [header, clean(message), ...Object.entries(fields).flatMap(textField)].join(" ");
  },
  json: ({ at, level, message, fields }) =>
    toJson({
      ts: toRfc3339(at),
      ...(typeof level === "number" ? { level: "info", v: level } : { level }),
      msg: message,
      ...fields,
    }),
  brief: ({ message }) => clean(message),
};

const textField = ([name, value]: readonly [string, Json | undefined]): readonly string[] =>
  value === undefined || value === null
    ? []
    : [`${name}=${toJson(typeof value === "string" ? clean(value) : value)}`];

function removalLevel({ result }: ImageItem | PodItem, isNews: boolean): Level {
  if (isFailed(result)) return isNews ? "error" : 3;
  return result.kind === "skipped" ? 3 : 2;
}

function removalWords(item: ImageItem | PodItem): string {
  const words = capitalised(`${itemName(item)}: ${resultWords(item)}`);
  if (!("candidate" in item)) return `${words} (${podReasons.text(item.reason)})`;
  const { result, trigger } = item;
  const available = result.kind === "removed" ? (result.availableBytes ?? null) : null;
  const rest = available === null ? "" : `; ${humanBytes(available)} available`;
  return `${words} (${imageTrigger.text(trigger)})${rest}`;
}

function figuresOf(item: ImageItem | PodItem): JsonObject {
  if ("planned" in item) return { logBytes: item.logBytes };
  if ("entry" in item) return { logBytes: item.bytes };
  if ("sandbox" in item) return {};
  const { candidate, trigger, took } = item;
  const { sizeBytes } = candidate.image;
  return { trigger: trigger.kind, sizeBytes, tookMs: toMs(took) };
}

/** The loop logs the failure of its own pass. */
function passLevel(pass: Pass, isNews: boolean): Level {
  if (pass.kind === "gc") return pass.error === null ? 1 : "error";
  if (hasRemoved(pass)) return 1;
  if (!isNews) return 3;
  return pass.kind === "pressure" ? "warning" : 2;
}

function summaryFields({ id, startedAt, endedAt, images, containers }: Pass): JsonObject {
  const { availableAfter = null, capacityBytes = null } = images ?? {};
  const { errors = [] } = containers ?? {};
  return {
    passId: id,
    tookMs: toMs(since(endedAt, startedAt)),
    end: images?.end,
    wantedBytes: images?.wantedBytes ?? undefined,
    measuredFreedBytes: images?.measuredFreedBytes,
    availableBytes: availableAfter ?? undefined,
    ...(availableAfter !== null &&
      capacityBytes !== null && { usedPercent: usedPercent(capacityBytes, availableAfter) }),
    ...(errors.length > 0 && { errors: errors.map(clean) }),
  };
}
