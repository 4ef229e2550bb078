/** The one place that words how a pass ended and what its events say. */
import { assertNever } from "../model/assert.ts";
import type { EventReason } from "../model/event.ts";
import type { ContainerOutcome, ImageEnd, ImageResult, RemovalResult } from "../model/outcome.ts";
import type { PassKind } from "../model/pass.ts";
import type { DiskBreakdown, Purpose } from "../model/plan.ts";
import { humanBytes, usedPercent } from "./bytes.ts";
import { clean } from "./terminal.ts";
import { keepWords } from "./words.ts";

/** How the image half of a pass ended. */
export function imageEndWords(end: ImageEnd): string {
  switch (end) {
    case "nothing-to-do":
      return "nothing asks for space";
    case "target-reached":
      return "the target is reached";
    case "own-gain-reached":
      return "this pass has freed what was wanted when it began, though others filled the disk meanwhile";
    case "candidates-exhausted":
      return "every image that may go is gone, and the target is not reached";
    case "futile":
      return "what is left to remove could not reach the target, so it stays";
    case "blocked":
      return "no image may be removed now";
    case "removal-limit":
      return "the limit of removals in one pass is reached";
    case "settle-exhausted":
      return "the runtime gives space back late, so the rest is left to the next pass";
    case "no-gain":
      return "three removals in a row freed nothing on the full filesystem";
    case "age-removal-errors":
      return "images over the maximum age could not be removed, so space was not freed";
    case "invalid-capacity":
      return "the filesystem's figures cannot be right";
    case "observation-failed":
      return "a list or a measurement failed on the way, so removal ended";
    case "stopped":
      return "it was asked to stop";
    case "dry-run":
      return "dry run: nothing was removed";
    default:
      return assertNever(end);
  }
}

/** How the container half of a pass ended. */
export function containerEndWords(end: ContainerOutcome["end"]): string {
  switch (end) {
    case "done":
      return "done";
    case "blocked":
      return "nothing may be removed now";
    case "removal-limit":
      return "the limit of removals in one pass is reached";
    case "stopped":
      return "it was asked to stop";
    case "observation-failed":
      return "a list failed on the way, so removal ended";
    case "dry-run":
      return "dry run: nothing was removed";
    default:
      return assertNever(end);
  }
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

export function passTitle(kind: PassKind): string {
  switch (kind) {
    case "image-gc":
      return "image collection";
    case "container-gc":
      return "container collection";
    case "pressure":
      return "pressure reclaim";
    case "gc":
      return "collection";
    default:
      return assertNever(kind);
  }
}

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
export function eventTitle(reason: EventReason): string {
  switch (reason) {
    case "ImageGCFailed":
      return "image collection keeps failing";
    case "ContainerGCFailed":
      return "container collection failed";
    case "FreeDiskSpaceFailed":
      return "not enough space could be freed";
    case "InvalidDiskCapacity":
      return "the image filesystem reports no capacity";
    case "EvictionThresholdMet":
      return "the node is short of disk";
    case "ImageGCFutile":
      return "images are not what fills the disk";
    case "KeepRulesInvalid":
      return "the keep rules are invalid, no image is removed";
    case "GhostImage":
      return "a removed image is still listed";
    default:
      return assertNever(reason);
  }
}

export interface Shortfall {
  readonly capacityBytes: bigint;
  readonly availableBytes: bigint;
  readonly wantedBytes: bigint;
  readonly freedBytes: bigint;
}

/** The text of event `FreeDiskSpaceFailed`. */
export const freeDiskSpaceFailedWords = (it: Shortfall): string =>
  `The image filesystem of ${humanBytes(it.capacityBytes)} is ${usedPercent(it.capacityBytes, it.availableBytes)}% full, ${it.wantedBytes} bytes had to be freed and only ${it.freedBytes} bytes could be: look at what else takes its space`;

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
