/** Log lines of a finished pass: its steps, the reason for each image, and a summary. */

import { outcomeItems } from "../../model/outcome.ts";
import type { Pass } from "../../model/pass.ts";
import type { ImageBlock } from "../../model/reason.ts";
import { since, toMs } from "../../model/time.ts";
import { capitalised } from "../../model/values.ts";
import { usedPercent } from "../../report/bytes.ts";
import type { JsonObject } from "../../report/document.ts";
import { stepJson } from "../../report/gc.ts";
import { imageBlock, imageKeep } from "../../report/image-reasons.ts";
import { imageName } from "../../report/names.ts";
import { containerEndWords, endWords, passSummary, passTitle } from "../../report/pass-words.ts";
import { present } from "../../report/terminal.ts";
import type { Log } from "./log.ts";

/** Each at its level; log/items.ts logs removals as they happen. */
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
      `containers: ${containerEndWords(containers.end)}${why(plan.containers?.blocks)}`,
    images !== null && `images: ${endWords(images.end, purpose.kind)}${why(plan.images?.blocks)}`,
  ]);
  return `${capitalised(passTitle(kind))} found nothing to remove${ends.length === 0 ? "" : ` (${ends.join("; ")})`}`;
}

/** What blocks removal, without figures that change meanwhile. */
function why(blocks: readonly ImageBlock[] = []): string {
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
