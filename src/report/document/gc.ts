/** Document `GcReport`: one pass with each removal, what it freed, and timed steps. */

import type {
  ContainerItem,
  ContainerOutcome,
  ImageItem,
  ImageOutcome,
  ImageResult,
  LogItem,
  RemovalResult,
  SandboxItem,
} from "../../model/outcome.ts";
import type { Pass, Step } from "../../model/pass.ts";
import { since, toMs } from "../../model/time.ts";
import { containerRemove, logRemove, sandboxRemove } from "../container-reasons.ts";
import { imageKeep, imageTrigger } from "../image-reasons.ts";
import { imageName } from "../names.ts";
import {
  containerPassWords,
  imagePassWords,
  imageResultWords,
  removalResultWords,
} from "../pass-words.ts";
import { document, type JsonObject, lazily, picked, timeOf } from "./json.ts";
import { containerJson, eventJson, imageJson, sandboxJson } from "./node.ts";
import { expectedBytes, freesJson, planBody } from "./plan.ts";

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

function imageOutcomeJson(outcome: ImageOutcome, pass: Pass): JsonObject {
  return {
    end: outcome.end,
    endText: imagePassWords(pass),
    ...picked(outcome, "wantedBytes", "reportedFreedBytes", "measuredFreedBytes"),
    estimatedFreedBytes: estimatedBytes(outcome),
    capacityBytes: outcome.capacityBytes,
    availableBeforeBytes: outcome.availableBefore,
    availableAfterBytes: outcome.availableAfter,
    error: outcome.error,
    nothingFreed: outcome.nothingFreed && { ...outcome.nothingFreed },
    items: lazily(outcome.items, imageItemJson),
    ghosts: outcome.ghosts.map(imageJson),
  };
}

/** The estimate of all removals by layers, else by reported sizes; `null` if no layers are known. */
export function estimatedBytes({ items }: Pick<ImageOutcome, "items">): bigint | null {
  const removed = items.filter(({ result }) => result.kind === "removed");
  return removed.every(({ candidate }) => candidate.frees === undefined)
    ? null
    : removed.reduce((sum, { candidate }) => sum + expectedBytes(candidate), 0n);
}

const imageItemJson = (item: ImageItem): JsonObject => ({
  id: item.candidate.image.id,
  name: imageName(item.candidate.image),
  repoTags: item.candidate.image.repoTags,
  sizeBytes: item.candidate.image.sizeBytes,
  ...freesJson(item.candidate),
  unusedForMs: toMs(item.candidate.unusedFor),
  trigger: imageTrigger.json(item.trigger),
  result: imageResultJson(item.result),
  startedAt: timeOf(item.startedAt),
  tookMs: toMs(item.took),
});

function imageResultJson(result: ImageResult): JsonObject {
  const base = { kind: result.kind, text: imageResultWords(result) };
  if (result.kind === "removed")
    return { ...base, ...picked(result, "reportedBytes", "measuredBytes", "settled") };
  if (result.kind === "skipped") return { ...base, reason: imageKeep.json(result.reason) };
  if (result.kind === "failed") return { ...base, ...picked(result, "message", "code") };
  return base;
}

const containerOutcomeJson = (outcome: ContainerOutcome, pass: Pass): JsonObject => ({
  end: outcome.end,
  endText: containerPassWords(pass),
  measuredFreedBytes: outcome.measuredFreedBytes,
  errors: outcome.errors,
  containers: lazily(outcome.containers, containerItemJson),
  sandboxes: lazily(outcome.sandboxes, sandboxItemJson),
  logs: lazily(outcome.logs, logItemJson),
});

const containerItemJson = (item: ContainerItem): JsonObject => ({
  ...containerJson(item.planned.container),
  reason: containerRemove.json(item.reason),
  result: removalJson(item.result),
  ...picked(item, "stopped", "logFiles", "logBytes", "logError"),
});

const sandboxItemJson = (item: SandboxItem): JsonObject => ({
  ...sandboxJson(item.sandbox),
  reason: sandboxRemove.json(item.reason),
  result: removalJson(item.result),
});

const logItemJson = (item: LogItem): JsonObject => ({
  ...picked(item, "kind", "entry"),
  reason: logRemove.json(item.reason),
  result: removalJson(item.result),
  logBytes: item.bytes,
});

const removalJson = (result: RemovalResult): JsonObject => ({
  ...result,
  text: removalResultWords(result),
});
