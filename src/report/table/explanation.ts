/** Document `Explanation` and what `crigc explain` prints: one thing, the verdict on it, and the rules in the order they were tried. */

import { assertNever } from "../../model/assert.ts";
import type { ImageLayers } from "../../model/disk-usage.ts";
import type { ImageId } from "../../model/ids.ts";
import type {
  ImageCandidate,
  KeptImage,
  PlannedContainer,
  PlannedSandbox,
} from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { Image } from "../../model/snapshot.ts";
import { toRfc3339 } from "../../model/time.ts";
import { humanBytes, humanDuration } from "../bytes.ts";
import {
  containerKeep,
  containerRemove,
  sandboxKeep,
  sandboxRemove,
} from "../container-reasons.ts";
import { document, type JsonObject } from "../document/json.ts";
import {
  candidateJson,
  keptJson,
  plannedContainerJson,
  plannedSandboxJson,
} from "../document/plan.ts";
import { imageBlock, imageKeep, imageTrigger } from "../image-reasons.ts";
import { containerName, imageName, sandboxName } from "../names.ts";
import { capitalised, clean, paint, type Screen } from "../terminal.ts";
import { layerLines, layersJson } from "./layers.ts";
import { text } from "./plan.ts";
import { wrapped } from "./table.ts";

export type ExplainedThing =
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
  /** As it was typed. */
  readonly reference: string;
  /** Everything that the reference names; more than one where it is ambiguous. */
  readonly things: readonly ExplainedThing[];
  /** Of the images among them whose layers are known. */
  readonly layers: ReadonlyMap<ImageId, ImageLayers>;
  /** What stops every removal now, whatever the rules say. */
  readonly blocks: readonly ImageBlock[];
}

type Verdict = "kept" | "would-go" | "behind-the-stop";

export const explanationDocument = (report: ExplanationReport): JsonObject =>
  document("Explanation", {
    reference: report.reference,
    blocks: report.blocks.map(imageBlock.json),
    things: report.things.map((thing) => ({
      kind: thingKind(thing),
      verdict: verdictOf(thing),
      text: verdictWords(thing),
      ...thingJson(thing),
      layers: layersJson(layersOf(report, thing)),
    })),
  });

export function explanationTable(report: ExplanationReport, screen: Screen): string {
  const blocks = report.blocks.flatMap((block) =>
    wrapped(`Not removed now: ${imageBlock.text(block)}.`, screen),
  );
  return text([
    ...blocks.map((line) => paint(screen, "red", line)),
    "",
    ...report.things.flatMap((thing) => [
      ...thingLines(thing, screen),
      ...layerLines(layersOf(report, thing), screen),
      "",
    ]),
  ]);
}

function layersOf({ layers }: ExplanationReport, thing: ExplainedThing): ImageLayers | null {
  if (thing.kind === "candidate-image") return layers.get(thing.candidate.image.id) ?? null;
  return thing.kind === "kept-image" ? (layers.get(thing.kept.image.id) ?? null) : null;
}

const thingKind = (thing: ExplainedThing): string =>
  thing.kind === "container" || thing.kind === "sandbox" ? thing.kind : "image";

function verdictOf(thing: ExplainedThing): Verdict {
  switch (thing.kind) {
    case "kept-image":
      return "kept";
    case "candidate-image":
      return thing.candidate.expected ? "would-go" : "behind-the-stop";
    case "container":
    case "sandbox":
      return thing.planned.decision.kind === "keep" ? "kept" : "would-go";
    default:
      return assertNever(thing);
  }
}

function thingJson(thing: ExplainedThing): JsonObject {
  switch (thing.kind) {
    case "kept-image":
      return keptJson(thing.kept);
    case "candidate-image":
      return { ...candidateJson(thing.candidate, thing.place), tried: thing.candidate.tried };
    case "container":
      return plannedContainerJson(thing.planned);
    case "sandbox":
      return plannedSandboxJson(thing.planned);
    default:
      return assertNever(thing);
  }
}

function thingLines(thing: ExplainedThing, screen: Screen): readonly string[] {
  const words = verdictWords(thing);
  const colour = verdictOf(thing) === "would-go" ? "yellow" : "green";
  return [
    paint(screen, "bold", titleOf(thing)),
    ...detailLines(thing, screen),
    "",
    ...wrapped(`${capitalised(words)}.`, screen).map((line) => paint(screen, colour, line)),
    ...triedLines(thing, screen),
  ];
}

function verdictWords(thing: ExplainedThing): string {
  switch (thing.kind) {
    case "kept-image":
      return `kept: ${imageKeep.text(thing.kept.reason)}`;
    case "candidate-image":
      return candidateWords(thing);
    case "container": {
      const { decision } = thing.planned;
      return decision.kind === "keep"
        ? `kept: ${containerKeep.text(decision.reason)}`
        : `would be removed: ${containerRemove.text(decision.reason)}`;
    }
    case "sandbox": {
      const { decision } = thing.planned;
      return decision.kind === "keep"
        ? `kept: ${sandboxKeep.text(decision.reason)}`
        : `would be removed: ${sandboxRemove.text(decision.reason)}`;
    }
    default:
      return assertNever(thing);
  }
}

function candidateWords(thing: Extract<ExplainedThing, { kind: "candidate-image" }>): string {
  const place = `number ${thing.place} of ${thing.candidates} in the order of removal`;
  const why = thing.candidate.triggers.map(imageTrigger.text).join(", and ");
  if (thing.candidate.expected) return `would be removed now as ${place}: ${why}`;
  return why === ""
    ? `candidate: no rule keeps it and no threshold is exceeded; ${place}`
    : `candidate: no rule keeps it, but the pass is expected to stop before it; ${place}`;
}

function titleOf(thing: ExplainedThing): string {
  switch (thing.kind) {
    case "kept-image":
      return `Image ${imageName(thing.kept.image)}`;
    case "candidate-image":
      return `Image ${imageName(thing.candidate.image)}`;
    case "container":
      return `Container ${containerName(thing.planned.container)}`;
    case "sandbox":
      return `Sandbox ${sandboxName(thing.planned.sandbox)}`;
    default:
      return assertNever(thing);
  }
}

function detailLines(thing: ExplainedThing, screen: Screen): readonly string[] {
  switch (thing.kind) {
    case "kept-image":
      return imageLines(thing.kept, screen);
    case "candidate-image":
      return [
        ...imageLines(thing.candidate, screen),
        `  unused for: ${humanDuration(thing.candidate.unusedFor)}`,
      ];
    case "container": {
      const it = thing.planned.container;
      return [
        `  id: ${clean(it.id)}`,
        `  state: ${it.state}, attempt ${it.attempt}`,
        `  image: ${clean(it.imageName)}`,
        `  created: ${toRfc3339(it.createdAt)}`,
      ];
    }
    case "sandbox": {
      const it = thing.planned.sandbox;
      return [
        `  id: ${clean(it.id)}`,
        `  state: ${it.state}, attempt ${it.attempt}`,
        `  created: ${toRfc3339(it.createdAt)}`,
      ];
    }
    default:
      return assertNever(thing);
  }
}

function imageLines(it: KeptImage | ImageCandidate, screen: Screen): readonly string[] {
  const others = otherNames(it.image);
  const { firstSeenAt, lastUsedAt } = it.record;
  return [
    `  id: ${clean(it.image.id)}`,
    ...(others.length === 0 ? [] : wrapped(`also: ${others.join(", ")}`, screen, "  ")),
    `  size: ${humanBytes(it.image.sizeBytes)} (reported)`,
    `  first seen: ${toRfc3339(firstSeenAt)}`,
    `  last used: ${lastUsedAt === null ? "never" : toRfc3339(lastUsedAt)}`,
  ];
}

const otherNames = (image: Image): readonly string[] =>
  image.repoTags.map(clean).filter((name) => name !== imageName(image));

/** The rules as they were asked; the last one decided, unless none keeps a candidate. */
function triedLines(thing: ExplainedThing, screen: Screen): readonly string[] {
  const decided = thing.kind !== "candidate-image";
  const tried = triedCodes(thing);
  if (tried.length === 0) return [];
  return [
    "Rules in order of evaluation:",
    ...tried.map((code, index) => {
      const last = decided && index === tried.length - 1;
      const line = `  ${String(index + 1).padStart(2)}. ${code}${last ? ": yes (decides)" : ": no"}`;
      return last ? line : paint(screen, "dim", line);
    }),
  ];
}

function triedCodes(thing: ExplainedThing): readonly string[] {
  switch (thing.kind) {
    case "kept-image":
      return thing.kept.tried;
    case "candidate-image":
      return thing.candidate.tried;
    case "container":
    case "sandbox":
      return thing.planned.decision.tried;
    default:
      return assertNever(thing);
  }
}
