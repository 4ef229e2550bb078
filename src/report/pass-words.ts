/** Words of passes: one table of how a half ends, summary, targets, results and events. */

import { assertNever } from "../model/errors.ts";
import {
  type ContainerOutcome,
  type Event,
  type ImageEnd,
  type ImageItem,
  type ImageOutcome,
  type ImageResult,
  isFailed,
  isGone,
  measuredFreedBytes,
  type NothingFreed,
  outcomeItems,
  type Pass,
  passItems,
  type PassKind,
  type PodItem,
  type RemovalResult,
} from "../model/pass.ts";
import { since } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { youngWords } from "./plan.ts";
import { imageBlock, imageKeep, podSourceWords } from "./reasons.ts";
import { clean, present } from "./terminal.ts";
import {
  containerName,
  humanBytes,
  humanDuration,
  imageName,
  kindTitle,
  plural,
  sandboxName,
  usedPercent,
} from "./words.ts";

const PASS_TITLES: Readonly<Record<PassKind, string>> = {
  "image-gc": "image GC",
  "container-gc": "container GC",
  pressure: "pressure reclaim",
  gc: "GC",
};

const known = (words: Readonly<Record<string, string>>, word: string): string | undefined =>
  Object.hasOwn(words, word) ? words[word] : undefined;

/** One sentence: `Image GC: 3 removed, 1.2 GiB freed, target reached (2.1s)`. */
export function passSummary(pass: Pass): string {
  const { images, error } = pass;
  const words = passFigureWords({
    ...countsOf(passItems(pass)),
    measuredFreedBytes: measuredFreedBytes(pass),
    reportedFreedBytes: images?.reportedFreedBytes ?? null,
    error,
    ends: [containerPassWords(pass), imagePassWords(pass)],
  });
  const took = humanDuration(since(pass.endedAt, pass.startedAt));
  return `${capitalised(passTitle(pass.kind))}: ${words || "nothing requested"} (${took})`;
}

export const countsOf = (
  items: readonly { readonly result: Pick<ImageResult | RemovalResult, "kind"> }[],
) => ({
  removed: items.filter(isGone).length,
  failed: items.filter(({ result }) => isFailed(result)).length,
});

interface PassFigures {
  readonly removed: number;
  readonly failed: number;
  readonly measuredFreedBytes: bigint | null;
  /** Of images. */
  readonly reportedFreedBytes?: bigint | null;
  readonly error?: string | null;
  /** Of each half; "": it was not requested. */
  readonly ends: readonly string[];
}

/** `3 removed, 1.2 GiB freed, target reached`. */
export function passFigureWords({
  removed,
  failed,
  error = null,
  ends,
  ...freed
}: PassFigures): string {
  // Both halves may have ended for the same reason.
  const isAny = removed + failed > 0;
  const different = [...new Set(ends)].filter((end) => end !== "");
  return present([
    removed > 0 && `${removed} removed`,
    removed > 0 && passFreedWords(freed),
    error === null && failed > 0 && `${plural(failed, "removal")} failed`,
    ...(error === null
      ? different.filter((end) => end !== "done" || (!isAny && different.length === 1))
      : [`failed: ${clean(error)}`]),
  ]).join(", ");
}

function passFreedWords({
  measuredFreedBytes: measured,
  reportedFreedBytes: reported = null,
}: Pick<PassFigures, "measuredFreedBytes" | "reportedFreedBytes">): string | false {
  if (measured !== null && measured > 0n) return `${humanBytes(measured)} freed`;
  if (reported === null || reported <= 0n) return false;
  return measured === null
    ? `${humanBytes(reported)} freed as reported`
    : `0 B freed (${humanBytes(reported)} reported)`;
}

/** How the image half of a pass ended, and why no more was freed; "" without an image half. */
export function imagePassWords({ images, plan, purpose }: Pass): string {
  if (images === null) return "";
  const blocks = plan.images?.blocks ?? [];
  if (images.end === "blocked" && blocks.length > 0) return blocks.map(imageBlock.text).join("; ");
  const met = images.items.at(-1)?.result;
  if (images.end === "blocked" && met?.kind === "skipped" && met.reason.kind === "blocked")
    return met.reason.block === "on-hold"
      ? HOLD_BEGAN
      : `removal is blocked: ${imageBlock.title(met.reason.block)}`;
  const words = endWords(images.end, purpose.kind, images.items.length > 0);
  const isExhausted = images.end === "candidates-exhausted" && plan.images !== null;
  const kept = isExhausted ? youngWords(plan.images) : "";
  return kept === "" ? words : `${words}; ${kept}`;
}

/** The same for the container half. */
export function containerPassWords({ containers, plan }: Pass): string {
  if (containers === null) return "";
  const { blocks = [], podSource } = plan.containers ?? {};
  if (containers.end === "done" && outcomeItems(containers).length === 0)
    return podSource?.kind === "not-ready" ? podSourceWords(podSource) : "nothing to remove";
  if (containers.end !== "blocked") return endWords(containers.end);
  // Of all blocks, only a hold begins in the middle of a container pass.
  return blocks.map(imageBlock.text).join("; ") || HOLD_BEGAN;
}

const HOLD_BEGAN = "a hold began, so the pass stopped";

/** How a half of a pass ended, by its code in the history. An unknown code, of a later version, is shown as it is. */
export function endWords(end: string, purpose = "periodic", hasTried = true): string {
  // Everything that was requested by hand was tried; the kubelet's reclaim has no target to miss.
  if (end === "candidates-exhausted" && purpose === "all-unused")
    return hasTried ? "done" : "nothing to remove";
  if (end === "candidates-exhausted" && purpose !== "periodic") return "no candidates left";
  return isEnd(end) ? PASS_ENDS[end].words : clean(end);
}

const OTHERS = "others wrote meanwhile";

/** The change of the disk as what it is. */
export const freedWords = (bytes: bigint): string =>
  bytes >= 0n ? `${humanBytes(bytes)} freed` : OTHERS;

/** Why a pass ended, and no image is removed there for a while. */
export const nothingFreedWords = ({
  filesystem,
  removals,
  estimatedBytes,
  gainedBytes,
}: NothingFreed): string =>
  `Removing images frees no space on ${clean(filesystem)}: ${plural(removals, "removal")} in a row gave nothing back, ${humanBytes(gainedBytes)} of ${humanBytes(estimatedBytes)} expected; something else holds the content, so crigc tries again after growing pauses`;

export function imageResultWords(result: ImageResult): string {
  switch (result.kind) {
    case "removed":
      return `removed, ${freedWords(result.measuredBytes)}`;
    case "ghost":
      return "ghost: the runtime reports success but still lists it; remove its other names, or keep it";
    case "skipped":
      return `skipped: ${imageKeep.text(result.reason)}`;
    case "failed":
      return `failed: ${clean(result.message)}`;
    default:
      return assertNever(result);
  }
}

export function removalResultWords(result: RemovalResult): string {
  switch (result.kind) {
    case "removed":
      return "removed";
    case "already-gone":
      return "already removed";
    case "skipped":
      return `skipped: ${clean(result.what)}`;
    case "failed":
      return `failed to ${clean(result.step)}: ${clean(result.message)}`;
    default:
      return assertNever(result);
  }
}

/** What a removal was of, for a line of the log. */
export function itemName(item: ImageItem | PodItem): string {
  if ("candidate" in item) return `image ${imageName(item.candidate.image)}`;
  if ("planned" in item) return `container ${containerName(item.planned.container)}`;
  if ("sandbox" in item) return `sandbox ${sandboxName(item.sandbox)}`;
  return `${kindTitle(item.kind)} ${clean(item.entry)}`;
}

export const resultWords = (item: ImageItem | PodItem): string =>
  "candidate" in item ? imageResultWords(item.result) : removalResultWords(item.result);

export const passTitle = (kind: string): string => known(PASS_TITLES, kind) ?? clean(kind);

/** An event in full, as the tables of all commands show it. */
export const eventWords = ({ reason, message }: Pick<Event, "reason" | "message">): string =>
  `${reason}: ${clean(message)}`;

/** The text of event `FreeDiskSpaceFailed`; `kept`: `youngWords` of the plan. */
export function freeDiskSpaceFailedWords(
  outcome: Pick<
    ImageOutcome,
    "measuredFreedBytes" | "wantedBytes" | "capacityBytes" | "availableAfter"
  >,
  kept: string,
): string {
  const { wantedBytes, capacityBytes, availableAfter, measuredFreedBytes: freed } = outcome;
  const capacity = capacityBytes ?? 0n;
  return `The image filesystem (${humanBytes(capacity)}) is ${usedPercent(capacity, availableAfter ?? 0n)}% full: freed ${humanBytes(freed)} of the ${humanBytes(wantedBytes ?? 0n)} needed; ${kept || "check what else uses the disk"}`;
}

/** The same if no disk is short of space, but the images exceed their budget. */
export const budgetShortfallWords = (
  { maximumBytes, wantedBytes }: Readonly<Record<"maximumBytes" | "wantedBytes", bigint>>,
  { measuredFreedBytes: freed }: Pick<ImageOutcome, "measuredFreedBytes">,
): string =>
  `Images take ${humanBytes(maximumBytes + wantedBytes)} of a budget of ${humanBytes(maximumBytes)}: freed ${humanBytes(freed)} of the ${humanBytes(wantedBytes)} needed; the rest is in use or kept`;

/** The text of event `InvalidDiskCapacity`; `message`: what is wrong with the figures. */
export const invalidDiskCapacityWords = (message: string): string =>
  `${capitalised(clean(message))}, so crigc removes no image`;

export type PassOutcome =
  | "done"
  | "idle"
  /** Ended before its target was reached. */
  | "short"
  | "futile"
  | "blocked"
  | "stopped"
  | "dry-run"
  | "failed";

interface EndFacts {
  readonly words: string;
  /** In metrics. */
  readonly outcome: PassOutcome;
  /** `plan`: the plan says whether something is missing. */
  readonly exit: 0 | 3 | 4 | "plan";
  /** The pass over images counts as failed, for its error or these words. */
  readonly isFailure?: true;
  /** The disk of the images is no longer short of space. */
  readonly isRelieved?: true;
}

type End = ImageEnd | ContainerOutcome["end"];

export const PASS_ENDS: Readonly<Record<End, EndFacts>> = {
  done: { words: "done", outcome: "done", exit: 0 },
  "nothing-to-do": {
    words: "no threshold exceeded",
    outcome: "idle",
    exit: 0,
    isRelieved: true,
  },
  "target-reached": { words: "target reached", outcome: "done", exit: 0, isRelieved: true },
  estimated: {
    words:
      "enough was removed by the estimates, but the disk does not show it; the next pass judges anew",
    outcome: "short",
    exit: 4,
    isRelieved: true,
  },
  "candidates-exhausted": {
    words: "no candidates left, target not reached",
    outcome: "short",
    exit: "plan",
    isFailure: true,
  },
  futile: {
    words: "too little can be freed, so no image is removed",
    outcome: "futile",
    exit: 4,
  },
  blocked: { words: "removal is blocked", outcome: "blocked", exit: "plan" },
  "nothing-freed": {
    words: "removals give no space back",
    outcome: "futile",
    exit: 4,
    isFailure: true,
  },
  "no-room": {
    words: "the runtime has no room to record a removal",
    outcome: "short",
    exit: 4,
    isFailure: true,
  },
  "age-removal-errors": {
    words: "cannot remove images over the maximum age, so no space was freed",
    outcome: "short",
    exit: 0,
  },
  "invalid-capacity": {
    words: "invalid filesystem figures",
    outcome: "blocked",
    exit: 0,
    isFailure: true,
  },
  "observation-failed": {
    words: "a call or a measurement failed, so the pass stopped",
    outcome: "failed",
    exit: 3,
    isFailure: true,
  },
  stopped: { words: "stopped on request", outcome: "stopped", exit: 4 },
  "dry-run": { words: "dry run, nothing removed", outcome: "dry-run", exit: "plan" },
};

/** An end of a later version is in the history, but not in the table. */
export const isEnd = (end: string): end is End => Object.hasOwn(PASS_ENDS, end);
