/** Document `GcReport` and the output of `crigc gc`: how each half ended, what it freed, and each removal. */

import {
  type ContainerOutcome,
  type ImageItem,
  type ImageOutcome,
  type ImageResult,
  type Pass,
  type RemovalResult,
} from "../model/pass.ts";
import { since, toMs } from "../model/time.ts";
import { containerJson, document, eventJson, imageJson, jsonOf, sandboxJson } from "./document.ts";
import {
  containerPassWords,
  countsOf,
  eventWords,
  imagePassWords,
  imageResultWords,
  passFigureWords,
  passTitle,
  removalResultWords,
} from "./pass-words.ts";
import { KEPT_COLUMNS, planBody, printPlan } from "./plan.ts";
import { imageKeep, imageTrigger, podReasons, triggerTitle } from "./reasons.ts";
import {
  clean,
  column,
  type Columns,
  OPTIONAL,
  present,
  Printer,
  type Screen,
} from "./terminal.ts";
import {
  bytesCell,
  containerName,
  humanBytes,
  humanMs,
  imageName,
  kindTitle,
  sandboxName,
  spaceWords,
} from "./words.ts";

export type GcDocument = ReturnType<typeof gcDocument>;

export const gcDocument = (pass: Pass) =>
  document("GcReport", {
    ...passHeadJson(pass),
    error: pass.error,
    images: pass.images === null ? null : imageOutcomeJson(pass.images, pass),
    containers: pass.containers === null ? null : containerOutcomeJson(pass.containers, pass),
    events: pass.events.map(eventJson),
    plan: planBody(pass.plan),
  });

export const passHeadJson = ({ id, kind, purpose, ...pass }: Pass) => ({
  passId: id,
  passKind: kind,
  purpose: purpose.kind,
  signals: purpose.kind === "pressure" ? purpose.signals : undefined,
  /** Whether images were selected by hand. */
  selected: purpose.kind === "all-unused" ? purpose.only !== undefined : undefined,
  ...jsonOf(pass, "requestedBy", "dryRun", "startedAt", "endedAt"),
  tookMs: toMs(since(pass.endedAt, pass.startedAt)),
});

type ImageOutcomeJson = ReturnType<typeof imageOutcomeJson>;

const imageOutcomeJson = (outcome: ImageOutcome, pass: Pass) => ({
  end: outcome.end,
  endText: imagePassWords(pass),
  ...jsonOf(outcome, "wantedBytes", "reportedFreedBytes", "measuredFreedBytes", "capacityBytes"),
  ...jsonOf(outcome, "error", "nothingFreed"),
  estimatedFreedBytes: estimatedBytes(outcome),
  availableBeforeBytes: outcome.availableBefore,
  availableAfterBytes: outcome.availableAfter,
  items: outcome.items.map(imageItemJson),
  ghosts: outcome.ghosts.map(imageJson),
});

/** About what the removals free, by the estimates. */
const estimatedBytes = ({ items }: ImageOutcome): bigint =>
  items.reduce(
    (sum, { result, candidate }) =>
      result.kind === "removed" ? sum + candidate.estimateBytes : sum,
    0n,
  );

type ImageItemJson = ReturnType<typeof imageItemJson>;

const imageItemJson = ({ candidate, trigger, result, ...item }: ImageItem) => ({
  id: candidate.image.id,
  name: imageName(candidate.image),
  ...jsonOf(candidate.image, "repoTags", "sizeBytes"),
  ...jsonOf(candidate, "estimateBytes", "unusedFor"),
  trigger: imageTrigger.json(trigger),
  result: imageResultJson(result),
  ...jsonOf(item, "startedAt", "took"),
});

const imageResultJson = (result: ImageResult) => ({
  ...(result.kind === "skipped"
    ? { kind: result.kind, reason: imageKeep.json(result.reason) }
    : result),
  text: imageResultWords(result),
});

type ContainerOutcomeJson = ReturnType<typeof containerOutcomeJson>;

const containerOutcomeJson = (outcome: ContainerOutcome, pass: Pass) => ({
  ...jsonOf(outcome, "end", "measuredFreedBytes", "errors"),
  endText: containerPassWords(pass),
  containers: outcome.containers.map((item) => ({
    ...containerJson(item.planned.container),
    reason: podReasons.json(item.reason),
    result: removalJson(item.result),
    ...jsonOf(item, "stopped", "logFiles", "logBytes", "logError"),
  })),
  sandboxes: outcome.sandboxes.map(({ sandbox, reason, result }) => ({
    ...sandboxJson(sandbox),
    reason: podReasons.json(reason),
    result: removalJson(result),
  })),
  logs: outcome.logs.map(({ kind, entry, reason, result, bytes }) => ({
    kind,
    entry,
    reason: podReasons.json(reason),
    result: removalJson(result),
    logBytes: bytes,
  })),
});

const removalJson = (result: RemovalResult) => ({ ...result, text: removalResultWords(result) });

/** `isBrief`: each removal that was tried has been printed as it happened. */
export function gcTable(pass: GcDocument, screen: Screen, isBrief = false): string {
  const { plan, images, containers, dryRun, selected = false } = pass;
  const printer = new Printer(screen);
  const what = dryRun ? "dry run, nothing removed" : `took ${humanMs(pass.tookMs)}`;
  printer.say(`Pass ${pass.passId}: ${passTitle(pass.passKind)}${purposeWords(pass)}, ${what}`);
  if (pass.error !== null) printer.say(`Failed: ${clean(pass.error)}`, "red");
  printer.gap();
  if (dryRun) printPlan(printer, plan);
  else {
    const podRows = containers === null ? [] : podRowsOf(containers);
    const rows = [...podRows, ...(images?.items ?? []).map(imageRow)];
    if (containers !== null) printer.say(`Containers: ${containerWords(containers, podRows)}.`);
    if (images !== null) printer.say(`Images: ${imageWords(images)}.`);
    printer.gap();
    printer.table(COLUMNS, isBrief ? rows.filter((it) => it.result.kind === "skipped") : rows);
    printer.gap();
  }
  for (const error of containers?.errors ?? []) printer.say(`Failed: ${clean(error)}.`);
  for (const event of pass.events) printer.say(`Warning ${eventWords(event)}`, "yellow");
  const { kept = [] } = selected ? (plan.images ?? {}) : {};
  printer.table(
    KEPT_COLUMNS,
    kept.filter(({ reason }) => reason.code !== "not-selected"),
  );
  return printer.text();
}

/** What a pass is for, in brackets; "" for a periodic one. */
function purposeWords({ purpose, signals = [], selected = false }: GcDocument): string {
  if (purpose === "periodic") return "";
  if (purpose === "pressure") return ` (disk pressure: ${signals.join(", ")})`;
  return selected ? " (selected)" : " (all unused)";
}

interface Row {
  readonly kind: string;
  readonly name: string;
  readonly why: string;
  readonly result: { readonly kind: (ImageResult | RemovalResult)["kind"]; readonly text: string };
  readonly sizeBytes?: bigint;
  readonly estimateBytes?: bigint;
  readonly logError?: string | null;
}

const COLUMNS: Columns<Row> = [
  column("KIND", ({ kind }) => kind),
  column("NAME", ({ name }) => name),
  column("SIZE", ({ sizeBytes }) => bytesCell(sizeBytes), OPTIONAL),
  // Estimated by layers.
  column("ESTIMATE", ({ estimateBytes }) => bytesCell(estimateBytes), OPTIONAL),
  column("WHY", ({ why }) => why),
  column("RESULT", (it) => it.result.text + (it.logError ? `, logs: ${clean(it.logError)}` : "")),
];

const imageRow = ({ trigger, ...item }: ImageItemJson): Row => ({
  ...item,
  kind: "image",
  why: triggerTitle(trigger),
});

function podRowsOf({ containers, sandboxes, logs }: ContainerOutcomeJson): readonly Row[] {
  const all = [
    ...containers.map((it) => ({ ...it, kind: "container", name: containerName(it) })),
    ...sandboxes.map((it) => ({ ...it, kind: "sandbox", name: sandboxName(it) })),
    ...logs.map((it) => ({ ...it, kind: kindTitle(it.kind), name: clean(it.entry) })),
  ];
  return all.map((it) => ({ ...it, why: it.reason.text }));
}

const containerWords = (outcome: ContainerOutcomeJson, rows: readonly Row[]): string =>
  passFigureWords({ ...outcome, ...countsOf(rows), ends: [outcome.endText] });

/** With the target, and what is free. */
function imageWords({ items, endText, error, ...outcome }: ImageOutcomeJson): string {
  const { wantedBytes, availableAfterBytes: availableBytes, capacityBytes } = outcome;
  const ends = [error === null ? endText : `${endText} (${clean(error)})`];
  return present([
    passFigureWords({ ...outcome, ...countsOf(items), ends }),
    wantedBytes !== null && wantedBytes > 0n && `target ${humanBytes(wantedBytes)}`,
    availableBytes !== null &&
      capacityBytes !== null &&
      `disk ${spaceWords({ capacityBytes, availableBytes })}`,
  ]).join(", ");
}
