/** Document `Explanation` and the output of `crigc explain`: the decision, the rules in order of evaluation, the layers. */

import { assertNever } from "../model/assert.ts";
import type { ChainLayer, ImageLayers } from "../model/disk-usage.ts";
import { frequencyOf } from "../model/frequency.ts";
import type { ImageId } from "../model/ids.ts";
import type {
  Bounds,
  Decision,
  ImageCandidate,
  KeptImage,
  PlannedContainer,
  PlannedSandbox,
} from "../model/plan.ts";
import type { ImageBlock } from "../model/reason.ts";
import type { Container, Sandbox } from "../model/snapshot.ts";
import type { Instant } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { counted, elapsed, humanBytes, humanDuration, secondOf } from "./bytes.ts";
import { containerReasons, sandboxReasons } from "./container-reasons.ts";
import { document, type JsonObject } from "./document.ts";
import { imageBlock, imageKeep, imageTrigger } from "./image-reasons.ts";
import { containerName, imageName, sandboxName, shortId } from "./names.ts";
import { candidateJson, keptJson, plannedContainerJson, plannedSandboxJson } from "./plan.ts";
import { column, type Columns, Printer, RIGHT } from "./printer.ts";
import type { Kind, Reasons } from "./reasons.ts";
import { clean, present, type Screen } from "./terminal.ts";

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
      const { kind, verdict, words, json, layers } = explained(match, report);
      return { kind, verdict, text: words, ...json, layers: layers && layersJson(layers) };
    }),
  });

export function explanationTable(report: ExplanationReport, screen: Screen): string {
  const printer = new Printer(screen);
  for (const it of report.blocks) printer.say(`Not removed now: ${imageBlock.text(it)}.`, "red");
  printer.gap();
  for (const match of report.matches) printMatch(printer, explained(match, report));
  return printer.text();
}

interface Explained {
  readonly kind: "image" | "container" | "sandbox";
  readonly name: string;
  readonly layers?: ImageLayers | undefined;
  readonly verdict: "kept" | "would-go" | "behind-the-stop";
  readonly words: string;
  readonly json: JsonObject;
  readonly details: readonly string[];
  /** Codes of the rules in order of evaluation; the last one decided, except for a candidate. */
  readonly tried: readonly string[];
  readonly titleOf: (code: string) => string;
}

function explained(match: ReferenceMatch, report: ExplanationReport): Explained {
  switch (match.kind) {
    case "kept-image": {
      const { kept } = match;
      const words = `kept: ${imageKeep.text(kept.reason)}`;
      return { ...ofImage(kept, report), verdict: "kept", words, json: keptJson(kept) };
    }
    case "candidate-image": {
      const { candidate, place } = match;
      return {
        ...ofImage(candidate, report),
        verdict: candidate.expected ? "would-go" : "behind-the-stop",
        words: candidateWords(match),
        json: { ...candidateJson(candidate, place), tried: candidate.tried },
      };
    }
    case "container": {
      const { container, decision } = match.planned;
      return {
        kind: "container",
        name: containerName(container),
        ...ofPod(decision, containerReasons),
        json: plannedContainerJson(match.planned),
        details: podDetails(container, report.observedAt, container.imageName),
      };
    }
    case "sandbox": {
      const { sandbox, decision } = match.planned;
      return {
        kind: "sandbox",
        name: sandboxName(sandbox),
        ...ofPod(decision, sandboxReasons),
        json: plannedSandboxJson(match.planned),
        details: podDetails(sandbox, report.observedAt),
      };
    }
    default:
      return assertNever(match);
  }
}

function ofImage(it: KeptImage | ImageCandidate, { observedAt: now, layers }: ExplanationReport) {
  const { id, repoTags, sizeBytes } = it.image;
  const name = imageName(it.image);
  const others = repoTags.map(clean).filter((tag) => tag !== name);
  const { firstSeenAt, lastUsedAt, pull } = it.record;
  const isInUse = "reason" in it && it.reason.kind === "in-use";
  const details = [
    `id: ${clean(id)}`,
    others.length > 0 && `also: ${others.join(", ")}`,
    `size: ${humanBytes(sizeBytes)} (reported)`,
    `first seen: ${agoWords(firstSeenAt, now)}`,
    pull !== null && `pulled by the kubelet: ${PULLED[pull]}`,
    `last used: ${isInUse ? "now" : lastUsedAt === null ? "not since then" : agoWords(lastUsedAt, now)}`,
    it.orderKey !== undefined &&
      `uses since it came: ${frequencyOf(it.record).uses}; key in the order of removal: ${it.orderKey}`,
    "unusedFor" in it && `unused for: ${humanDuration(it.unusedFor)}`,
  ];
  return {
    kind: "image",
    name,
    layers: layers.get(id),
    details: present(details),
    tried: it.tried,
    titleOf: imageKeep.title,
  } as const;
}

const PULLED = {
  pulled: "yes",
  "no-record": "not known: when first seen it had no record, or only one of an earlier pull",
  pulling: "a pull is under way",
} as const;

const podDetails = (
  { id, state, attempt, createdAt }: Container | Sandbox,
  now: Instant,
  image?: string,
): readonly string[] =>
  present([
    `id: ${clean(id)}`,
    `state: ${state}, attempt ${attempt}`,
    image !== undefined && `image: ${clean(image)}`,
    `created: ${agoWords(createdAt, now)}`,
  ]);

/** `4d3h ago (2026-01-31T12:00:00Z)`. */
const agoWords = (at: Instant, now: Instant): string =>
  `${humanDuration(elapsed(now, at))} ago (${secondOf(at)})`;

const ofPod = <Reason extends Kind>(
  { kind, reason, tried }: Decision<Reason, Reason>,
  { text, title }: Reasons<Reason>,
) => ({
  verdict: kind === "keep" ? ("kept" as const) : ("would-go" as const),
  words: `${kind === "keep" ? "kept" : "would be removed"}: ${text(reason)}`,
  tried,
  titleOf: title,
});

function candidateWords(match: Extract<ReferenceMatch, { kind: "candidate-image" }>): string {
  const place = `number ${match.place} of ${match.candidates} in the order of removal`;
  const why = match.candidate.triggers.map(imageTrigger.text).join(", and ");
  if (match.candidate.expected) return `would be removed now as ${place}: ${why}`;
  return why === ""
    ? `candidate: no rule keeps it and no threshold is exceeded; ${place}`
    : `candidate: no rule keeps it, but the pass is expected to stop before it; ${place}`;
}

function printMatch(printer: Printer, match: Explained): void {
  const { kind, name, details, words, verdict, tried, titleOf, layers } = match;
  printer.line(`${capitalised(kind)} ${name}`, "bold");
  for (const line of details) printer.say(line, undefined, "  ");
  printer.gap();
  printer.say(`${capitalised(words)}.`, verdict === "would-go" ? "yellow" : "green");
  if (tried.length > 0) printer.line("Rules in order of evaluation:");
  // No rule decides on a candidate.
  const decides = kind !== "image" || verdict === "kept" ? tried.length : 0;
  for (const [index, code] of tried.entries()) {
    const number = index + 1;
    const line = `  ${String(number).padStart(2)}. ${titleOf(code)}`;
    if (number === decides) printer.line(`${line}: yes (decides)`);
    else printer.line(`${line}: no`, "dim");
  }
  if (layers !== undefined) printLayers(printer, layers);
  printer.gap();
}

const layersJson = ({ frees, chain }: ImageLayers): JsonObject => ({
  freesBytes: frees.estimateBytes,
  freesAtLeastBytes: frees.lowerBytes,
  freesAtMostBytes: frees.upperBytes,
  chain: chain.map(({ chain: chainId, through, path }) => ({
    chainId,
    images: through,
    sizeToHereBytes: path.estimateBytes,
    sizeToHereAtLeastBytes: path.lowerBytes,
    sizeToHereAtMostBytes: path.upperBytes,
  })),
});

const LAYER_COLUMNS: Columns<ChainLayer & { readonly number: number }> = [
  column("LAYER", ({ number }) => String(number), RIGHT),
  column("CHAIN ID", ({ chain }) => shortId(chain)),
  column("IMAGES", ({ through }) => String(through), RIGHT),
  column("CUMULATIVE", ({ path }) => boundsWords(path), RIGHT),
];

/** From first to last layer, with the number of images that have it. */
function printLayers(printer: Printer, { chain, frees }: ImageLayers): void {
  const shared = chain.filter(({ through }) => through > 1).length;
  printer.gap();
  printer.say(
    `${counted(chain.length, "layer")}, ${shared} shared with other images; removing this image alone would free ${boundsWords(frees)}.`,
  );
  printer.table(
    LAYER_COLUMNS,
    chain.map((layer, index) => ({ ...layer, number: index + 1 })),
  );
}

const boundsWords = ({ lowerBytes, estimateBytes, upperBytes }: Bounds): string =>
  humanBytes(lowerBytes) === humanBytes(upperBytes)
    ? humanBytes(estimateBytes)
    : `about ${humanBytes(estimateBytes)}`;
