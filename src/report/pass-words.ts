/** The one place that words how a pass ended and what its events say. */

import { assertNever } from "../model/assert.ts";
import type { EventReason } from "../model/event.ts";
import type { ContainerOutcome, ImageEnd, ImageResult, RemovalResult } from "../model/outcome.ts";
import type { PassKind } from "../model/pass.ts";
import type { DiskBreakdown, Purpose } from "../model/plan.ts";
import { humanBytes, usedPercent } from "./bytes.ts";
import { clean } from "./terminal.ts";
import { keepWords } from "./words.ts";

const IMAGE_ENDS: Readonly<Record<ImageEnd, string>> = {
  "nothing-to-do": "nothing asks for space",
  "target-reached": "the target is reached",
  "own-gain-reached":
    "this pass has freed what was wanted when it began, though others filled the disk meanwhile",
  "candidates-exhausted": "every image that may go is gone, and the target is not reached",
  futile: "what is left to remove could not reach the target, so it stays",
  blocked: "no image may be removed now",
  "removal-limit": "the limit of removals in one pass is reached",
  "settle-exhausted": "the runtime gives space back late, so the rest is left to the next pass",
  "no-gain": "three removals in a row freed nothing on the full filesystem",
  "age-removal-errors": "images over the maximum age could not be removed, so space was not freed",
  "invalid-capacity": "the filesystem's figures cannot be right",
  "observation-failed": "a list or a measurement failed on the way, so removal ended",
  stopped: "it was asked to stop",
  "dry-run": "dry run: nothing was removed",
};

const CONTAINER_ENDS: Readonly<Record<ContainerOutcome["end"], string>> = {
  done: "done",
  blocked: "nothing may be removed now",
  "removal-limit": "the limit of removals in one pass is reached",
  stopped: "it was asked to stop",
  "observation-failed": "a list failed on the way, so removal ended",
  "dry-run": "dry run: nothing was removed",
};

const PASS_TITLES: Readonly<Record<PassKind, string>> = {
  "image-gc": "image collection",
  "container-gc": "container collection",
  pressure: "pressure reclaim",
  gc: "collection",
};

const EVENT_TITLES: Readonly<Record<EventReason, string>> = {
  ImageGCFailed: "image collection keeps failing",
  ContainerGCFailed: "container collection failed",
  FreeDiskSpaceFailed: "not enough space could be freed",
  InvalidDiskCapacity: "the image filesystem reports no capacity",
  EvictionThresholdMet: "the node is short of disk",
  ImageGCFutile: "images are not what fills the disk",
  KeepRulesInvalid: "the keep rules are invalid, no image is removed",
  GhostImage: "a removed image is still listed",
};

const known = (words: Readonly<Record<string, string>>, word: string): string | undefined =>
  Object.hasOwn(words, word) ? words[word] : undefined;

/** How the image half of a pass ended. */
export const imageEndWords = (end: ImageEnd, purpose: string): string => endWords(end, purpose);

/** How the container half of a pass ended; a word of a later version stands for itself. */
export const containerEndWords = (end: string): string => known(CONTAINER_ENDS, end) ?? clean(end);

/** Of the image half, as the history has it; a word of a later version stands for itself. */
export function endWords(end: string, purpose: string): string {
  // Where everything unused was asked for, which the kubelet's reclaim does too, there is no target that could be missed.
  if (end === "candidates-exhausted" && purpose !== "periodic")
    return "every image that may go is gone";
  return known(IMAGE_ENDS, end) ?? clean(end);
}

export function imageResultWords(result: ImageResult): string {
  switch (result.kind) {
    case "removed":
      return removedWords(result);
    case "ghost":
      return "a ghost: the runtime called the removal a success and still lists it";
    case "skipped":
      return `skipped: ${keepWords(result.reason)}`;
    case "failed":
      return `failed: ${clean(result.message)}`;
    default:
      return assertNever(result);
  }
}

function removedWords(result: Extract<ImageResult, { kind: "removed" }>): string {
  if (result.measuredBytes === null) return `removed, ${humanBytes(result.reportedBytes)} reported`;
  const freed = `removed, ${humanBytes(result.measuredBytes)} freed`;
  switch (result.settled) {
    case "at-once":
      return freed;
    case "afterwards":
      return `${freed}, after a wait`;
    case "not-seen":
      return `${freed} so far, the rest was not seen in time`;
    case "not-waited":
      return `${freed} so far`;
    default:
      return assertNever(result.settled);
  }
}

export function removalResultWords(result: RemovalResult): string {
  switch (result.kind) {
    case "removed":
      return "removed";
    case "already-gone":
      return "already gone";
    case "skipped":
      return `skipped: ${clean(result.what)}`;
    case "failed":
      return `failed to ${clean(result.step)}: ${clean(result.message)}`;
    default:
      return assertNever(result);
  }
}

export const passTitle = (kind: string): string => known(PASS_TITLES, kind) ?? clean(kind);

export function purposeWords(purpose: Purpose): string {
  switch (purpose.kind) {
    case "periodic":
      return "thresholds, ages and limits";
    case "all-unused":
      return "everything unused";
    case "pressure":
      return `disk pressure (${purpose.signals.join(", ")})`;
    default:
      return assertNever(purpose);
  }
}

/** What an operator should take from an event, in a few words. */
export const eventTitle = (reason: string): string => known(EVENT_TITLES, reason) ?? clean(reason);

export interface Shortfall {
  readonly capacityBytes: bigint;
  readonly availableBytes: bigint;
  readonly wantedBytes: bigint;
  readonly freedBytes: bigint;
}

/** The text of event `FreeDiskSpaceFailed`. */
export const freeDiskSpaceFailedWords = (it: Shortfall): string =>
  `The image filesystem of ${humanBytes(it.capacityBytes)} is ${usedPercent(it.capacityBytes, it.availableBytes)}% full, ${it.wantedBytes} bytes had to be freed and only ${it.freedBytes} bytes could be: look at what else takes its space`;

/** The same where no disk is short of space, and the images take more than they were given. */
export const budgetShortfallWords = (
  it: Pick<Shortfall, "wantedBytes" | "freedBytes"> & { readonly maximumBytes: bigint },
): string =>
  `Images take ${humanBytes(it.maximumBytes + it.wantedBytes)} and may take ${humanBytes(it.maximumBytes)}: ${it.wantedBytes} bytes had to be freed and only ${it.freedBytes} bytes could be, since the rest is in use or kept`;

/** The text of event `InvalidDiskCapacity`. */
export const invalidDiskCapacityWords = (path: string): string =>
  `The image filesystem${path === "" ? "" : ` at ${clean(path)}`} reports a capacity of 0 bytes, so its use cannot be judged and no image is removed`;

/** What fills a disk, as one clause: for event `ImageGCFutile` and for `plan`. */
export function breakdownWords(it: DiskBreakdown): string {
  const parts = [
    `images ${humanBytes(it.imagesBytes)}`,
    ...(it.containersBytes === null ? [] : [`containers ${humanBytes(it.containersBytes)}`]),
    ...(it.logsBytes === null ? [] : [`pod logs ${humanBytes(it.logsBytes)}`]),
    `something else ${humanBytes(it.otherBytes)}`,
  ];
  return `of ${humanBytes(it.capacityBytes - it.availableBytes)} used: ${parts.join(", ")}`;
}
