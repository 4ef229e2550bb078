/** Document `Explanation` and the output of `crigc explain`: the decision, and the rules in order of evaluation. */

import { assertNever } from "../../model/assert.ts";
import type { ImageLayers } from "../../model/disk-usage.ts";
import type { ImageId } from "../../model/ids.ts";
import type {
  Decision,
  ImageCandidate,
  KeptImage,
  PlannedContainer,
  PlannedSandbox,
} from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { Container, Sandbox } from "../../model/snapshot.ts";
import { duration, type Instant, since } from "../../model/time.ts";
import { capitalised } from "../../model/values.ts";
import { humanBytes, humanDuration, secondOf } from "../bytes.ts";
import { containerReasons, sandboxReasons } from "../container-reasons.ts";
import { document, type JsonObject } from "../document/json.ts";
import {
  candidateJson,
  keptJson,
  plannedContainerJson,
  plannedSandboxJson,
} from "../document/plan.ts";
import { imageBlock, imageKeep, imageTrigger } from "../image-reasons.ts";
import { containerName, imageName, sandboxName } from "../names.ts";
import type { DecisionReasons, Kind } from "../reasons.ts";
import { clean, paint, type Screen } from "../terminal.ts";
import { layerLines, layersJson } from "./layers.ts";
import { text } from "./plan.ts";
import { painted, wrapped } from "./table.ts";

export type ReferenceMatch =
  | { readonly kind: "kept-image"; readonly kept: KeptImage }
  | {
      readonly kind: "candidate-image";
      readonly candidate: ImageCandidate;
      /** In the order of removal, from 1. */
      readonly place: number;
      readonly candidates: number;
    }
  | { readonly kind: "container"; readonly planned: PlannedContainer }
  | { readonly kind: "sandbox"; readonly planned: PlannedSandbox };

export interface ExplanationReport {
  /** As typed. */
  readonly reference: string;
  /** Everything that the reference matches; several if it is ambiguous. */
  readonly matches: readonly ReferenceMatch[];
  /** Layers of the matched images, where known. */
  readonly layers: ReadonlyMap<ImageId, ImageLayers>;
  readonly observedAt: Instant;
  /** What blocks all removal now, whatever the rules say. */
  readonly blocks: readonly ImageBlock[];
}

export const explanationDocument = (report: ExplanationReport): JsonObject =>
  document("Explanation", {
    reference: report.reference,
    blocks: report.blocks.map(imageBlock.json),
    things: report.matches.map((match) => {
      const { kind, verdict, words, json, image } = explained(match, report.observedAt);
      return { kind, verdict, text: words, ...json, layers: layersJson(layersOf(report, image)) };
    }),
  });

export function explanationTable(report: ExplanationReport, screen: Screen): string {
  return text([
    ...report.blocks.flatMap((it) =>
      painted(screen, "red", `Not removed now: ${imageBlock.text(it)}.`),
    ),
    "",
    ...report.matches
      .map((match) => explained(match, report.observedAt))
      .flatMap((match) => [
        ...matchLines(match, screen),
        ...layerLines(layersOf(report, match.image), screen),
        "",
      ]),
  ]);
}

const layersOf = ({ layers }: ExplanationReport, image: ImageId | null): ImageLayers | null =>
  image === null ? null : (layers.get(image) ?? null);

interface Explained {
  readonly kind: "image" | "container" | "sandbox";
  readonly name: string;
  /** `null`: not an image. */
  readonly image: ImageId | null;
  readonly verdict: "kept" | "would-go" | "behind-the-stop";
  readonly words: string;
  readonly json: JsonObject;
  readonly details: readonly string[];
  /** Codes of the rules in order of evaluation; the last one decided, except for a candidate. */
  readonly tried: readonly string[];
}

function explained(match: ReferenceMatch, now: Instant): Explained {
  switch (match.kind) {
    case "kept-image": {
      const { kept } = match;
      return {
        ...ofImage(kept, now, kept.reason.kind === "in-use"),
        verdict: "kept",
        words: `kept: ${imageKeep.text(kept.reason)}`,
        json: keptJson(kept),
      };
    }
    case "candidate-image": {
      const { candidate, place } = match;
      const about = ofImage(candidate, now);
      return {
        ...about,
        verdict: candidate.expected ? "would-go" : "behind-the-stop",
        words: candidateWords(match),
        json: { ...candidateJson(candidate, place), tried: candidate.tried },
        details: [...about.details, `unused for: ${humanDuration(candidate.unusedFor)}`],
      };
    }
    case "container": {
      const { container, decision } = match.planned;
      const [id, state, created] = ofPod(container, now);
      return {
        kind: "container",
        name: containerName(container),
        image: null,
        ...decided(decision, containerReasons),
        json: plannedContainerJson(match.planned),
        details: [id, state, `image: ${clean(container.imageName)}`, created],
      };
    }
    case "sandbox": {
      const { sandbox, decision } = match.planned;
      return {
        kind: "sandbox",
        name: sandboxName(sandbox),
        image: null,
        ...decided(decision, sandboxReasons),
        json: plannedSandboxJson(match.planned),
        details: ofPod(sandbox, now),
      };
    }
    default:
      return assertNever(match);
  }
}

function ofImage(
  { image, record, tried }: KeptImage | ImageCandidate,
  now: Instant,
  isInUse = false,
) {
  const name = imageName(image);
  const others = image.repoTags.map(clean).filter((tag) => tag !== name);
  const { firstSeenAt, lastUsedAt } = record;
  const details = [
    `id: ${clean(image.id)}`,
    ...(others.length === 0 ? [] : [`also: ${others.join(", ")}`]),
    `size: ${humanBytes(image.sizeBytes)} (reported)`,
    `first seen: ${agoWords(firstSeenAt, now)}`,
    `last used: ${isInUse ? "now" : lastUsedAt === null ? "never" : agoWords(lastUsedAt, now)}`,
  ];
  return { kind: "image", name, image: image.id, details, tried } as const;
}

const ofPod = ({ id, state, attempt, createdAt }: Container | Sandbox, now: Instant) =>
  [
    `id: ${clean(id)}`,
    `state: ${state}, attempt ${attempt}`,
    `created: ${agoWords(createdAt, now)}`,
  ] as const;

/** `4d3h ago (2026-01-31T12:00:00Z)`; a time that the clock has not reached yet counts as now. */
function agoWords(at: Instant, now: Instant): string {
  const span = since(now, at);
  return `${humanDuration(span < 0n ? duration(0n) : span)} ago (${secondOf(at)})`;
}

function decided<Keep extends Kind, Remove extends Kind>(
  decision: Decision<Keep, Remove>,
  reasons: DecisionReasons<Keep, Remove>,
): Pick<Explained, "verdict" | "words" | "tried"> {
  const { kind, tried } = decision;
  const why = reasons.text(decision);
  return kind === "keep"
    ? { verdict: "kept", words: `kept: ${why}`, tried }
    : { verdict: "would-go", words: `would be removed: ${why}`, tried };
}

function candidateWords(match: Extract<ReferenceMatch, { kind: "candidate-image" }>): string {
  const place = `number ${match.place} of ${match.candidates} in the order of removal`;
  const why = match.candidate.triggers.map(imageTrigger.text).join(", and ");
  if (match.candidate.expected) return `would be removed now as ${place}: ${why}`;
  return why === ""
    ? `candidate: no rule keeps it and no threshold is exceeded; ${place}`
    : `candidate: no rule keeps it, but the pass is expected to stop before it; ${place}`;
}

function matchLines(match: Explained, screen: Screen): readonly string[] {
  const { kind, name, details, words, verdict } = match;
  const colour = verdict === "would-go" ? "yellow" : "green";
  return [
    paint(screen, "bold", `${capitalised(kind)} ${name}`),
    ...details.flatMap((line) => wrapped(line, screen, "  ")),
    "",
    ...painted(screen, colour, `${capitalised(words)}.`),
    ...triedLines(match, screen),
  ];
}

function triedLines({ image, verdict, tried }: Explained, screen: Screen): readonly string[] {
  const isDecided = image === null || verdict === "kept";
  if (tried.length === 0) return [];
  return [
    "Rules in order of evaluation:",
    ...tried.map((code, index) => {
      const last = isDecided && index === tried.length - 1;
      const line = `  ${String(index + 1).padStart(2)}. ${code}${last ? ": yes (decides)" : ": no"}`;
      return last ? line : paint(screen, "dim", line);
    }),
  ];
}
