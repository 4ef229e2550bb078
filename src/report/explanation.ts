/** Document `Explanation` and the output of `crigc explain`: the decision, the rules in order of evaluation. */

import type { Removal } from "../model/history.ts";
import type {
  Decision,
  ImageCandidate,
  KeptImage,
  PlannedContainer,
  PlannedSandbox,
} from "../model/plan.ts";
import type { RemovalBlock } from "../model/reason.ts";
import { type Instant, toRfc3339 } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { document } from "./document.ts";
import { type RemovalJson, removalJson, removalName, removalTitle } from "./history.ts";
import { candidateJson, keptJson, plannedContainerJson, plannedSandboxJson } from "./plan.ts";
import { imageBlock, imageKeep, imageTrigger, type PodReason, podReasons } from "./reasons.ts";
import { clean, present, Printer, type Screen } from "./terminal.ts";
import {
  containerName,
  elapsed,
  humanBytes,
  humanDuration,
  humanMs,
  kindTitle,
  sandboxName,
  secondOf,
} from "./words.ts";

export interface ExplanationReport {
  /** As typed. */
  readonly reference: string;
  readonly observedAt: Instant;
  /** Blocks all removal now, regardless of the rules. */
  readonly blocks: readonly RemovalBlock[];
  /** Everything that the reference matches; several if it is ambiguous. */
  readonly things: readonly Thing[];
  /** If nothing on the node matches: the newest removal of each match in the history. */
  readonly removed: readonly Removal[];
}

export type ExplanationDocument = ReturnType<typeof explanationDocument>;

export const explanationDocument = (report: ExplanationReport) =>
  document("Explanation", {
    reference: report.reference,
    observedAt: toRfc3339(report.observedAt),
    blocks: report.blocks.map(imageBlock.json),
    things: report.things,
    removed: report.removed.map(removalJson),
  });

/** An image, a container or a sandbox, as the document has it. */
export type Thing = ReturnType<
  typeof keptThing | typeof candidateThing | typeof containerThing | typeof sandboxThing
>;

/** `freesBytes`: what its removal alone would free; `null`: unknown. */
export const keptThing = (kept: KeptImage, freesBytes: bigint | null) => ({
  kind: "image" as const,
  verdict: "kept" as const,
  text: `kept: ${imageKeep.text(kept.reason)}`,
  ...keptJson(kept),
  freesBytes,
});

/** In the order of removal, from 1. */
type Place = readonly [place: number, candidates: number];

export const candidateThing = (
  candidate: ImageCandidate,
  at: Place,
  freesBytes: bigint | null,
) => ({
  kind: "image" as const,
  verdict: candidate.expected ? ("would-go" as const) : ("behind-the-stop" as const),
  text: candidateWords(candidate, at),
  ...candidateJson(candidate, at[0]),
  tried: candidate.tried,
  freesBytes,
});

export const containerThing = (planned: PlannedContainer) => ({
  kind: "container" as const,
  ...verdictOf(planned.decision),
  ...plannedContainerJson(planned),
});

export const sandboxThing = (planned: PlannedSandbox) => ({
  kind: "sandbox" as const,
  ...verdictOf(planned.decision),
  ...plannedSandboxJson(planned),
});

const verdictOf = ({ kind, reason }: Decision<PodReason, PodReason>) => ({
  verdict: kind === "keep" ? ("kept" as const) : ("would-go" as const),
  text: `${kind === "keep" ? "kept" : "would be removed"}: ${podReasons.text(reason)}`,
});

function candidateWords({ triggers, expected }: ImageCandidate, [at, candidates]: Place): string {
  const place = `number ${at} of ${candidates} in the order of removal`;
  const why = triggers.map(imageTrigger.text).join(", and ");
  if (expected) return `would be removed now as ${place}: ${why}`;
  return why === ""
    ? `candidate: no rule keeps it and no threshold is exceeded; ${place}`
    : `candidate: no rule keeps it, but the pass is expected to stop before it; ${place}`;
}

export function explanationTable(explanation: ExplanationDocument, screen: Screen): string {
  const printer = new Printer(screen);
  const { blocks, removed, observedAt } = explanation;
  if (explanation.things.some((it) => "reason" in it && it.reason.code === "blocked"))
    for (const { text } of blocks) printer.say(`Not removed now: ${text}.`, "red");
  printer.gap();
  for (const row of removed) printRemoved(printer, row, observedAt);
  for (const thing of explanation.things) printThing(printer, thing, observedAt);
  return printer.text();
}

function printRemoved(printer: Printer, row: RemovalJson, now: string): void {
  const { kind, id, at, passId, result, measuredBytes } = row;
  printer.line(`${capitalised(kindTitle(kind))} ${removalName(row)}`, "bold");
  printer.say(`id: ${clean(id)}`, undefined, "  ");
  const who = result === "removed" ? "removed" : "already gone when crigc was about to remove it";
  const freed = measuredBytes === null ? "" : `; freed ${humanBytes(measuredBytes)}`;
  const when = `${humanDuration(elapsed(now, at))} ago (${secondOf(at)}) by pass ${clean(passId)}`;
  printer.say(`Not on the node: ${who} ${when}: ${removalTitle(row)}${freed}.`, "yellow");
  printer.gap();
}

function printThing(printer: Printer, thing: Thing, now: string): void {
  const { kind, verdict, text, tried } = thing;
  printer.line(`${capitalised(kind)} ${nameOf(thing)}`, "bold");
  for (const line of detailsOf(thing, now)) printer.say(line, undefined, "  ");
  printer.gap();
  printer.say(`${capitalised(text)}.`, verdict === "would-go" ? "yellow" : "green");
  if (tried.length > 0) printer.line("Rules in order of evaluation:");
  const titleOf = kind === "image" ? imageKeep.title : podReasons.title;
  // No rule decides on a candidate.
  const decides = kind !== "image" || verdict === "kept" ? tried.length : 0;
  for (const [index, code] of tried.entries()) {
    const number = index + 1;
    const line = `  ${String(number).padStart(2)}. ${titleOf(code)}`;
    if (number === decides) printer.line(`${line}: yes (decides)`);
    else printer.line(`${line}: no`, "dim");
  }
  printer.gap();
}

const nameOf = (thing: Thing): string =>
  thing.kind === "image"
    ? thing.name
    : thing.kind === "container"
      ? containerName(thing)
      : sandboxName(thing);

function detailsOf(thing: Thing, now: string): readonly string[] {
  /** `4d3h ago (2026-01-31T12:00:00Z)`. */
  const ago = (at: string): string => `${humanDuration(elapsed(now, at))} ago (${secondOf(at)})`;
  const id = `id: ${clean(thing.id)}`;
  if (thing.kind !== "image")
    return present([
      id,
      `state: ${thing.state}, attempt ${thing.attempt}`,
      thing.kind === "container" && `image: ${clean(thing.imageName)}`,
      `created: ${ago(thing.createdAt)}`,
    ]);
  const others = thing.repoTags.map(clean).filter((tag) => tag !== thing.name);
  const isInUse = "reason" in thing && thing.reason.code === "in-use";
  const { lastUsedAt } = thing;
  return present([
    id,
    others.length > 0 && `also: ${others.join(", ")}`,
    `size: ${humanBytes(thing.sizeBytes)} (reported)`,
    thing.freesBytes !== null && `its removal alone frees: about ${humanBytes(thing.freesBytes)}`,
    `first seen: ${ago(thing.firstSeenAt)}`,
    `last used: ${isInUse ? "now" : lastUsedAt === null ? "not since then" : ago(lastUsedAt)}`,
    "unusedForMs" in thing && `unused for: ${humanMs(thing.unusedForMs)}`,
  ]);
}
