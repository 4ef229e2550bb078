/** One pass: its trigger, plan, and the outcome: how it ended, and one result per removal. */

import { branded, nullable, type Of, openEnum, record, text, time } from "./codec.ts";
import { type FailureCode, failureCode, messageOf } from "./errors.ts";
import { type PassId, passId } from "./ids.ts";
import type { ImageCandidate, Plan, PlannedContainer, Purpose } from "./plan.ts";
import type {
  ContainerRemoveReason,
  ImageKeepReason,
  ImageTrigger,
  LogRemoveReason,
  SandboxRemoveReason,
} from "./reason.ts";
import type { Image, Sandbox } from "./snapshot.ts";
import type { Duration, Instant } from "./time.ts";

export type ImageResult =
  | {
      readonly kind: "removed";
      readonly reportedBytes: bigint;
      /** The growth of the free blocks during the removal: below 0 if others wrote more meanwhile. */
      readonly measuredBytes: bigint;
      /** On the disk of the images afterwards, if it was measured. */
      readonly availableBytes?: bigint | null;
    }
  /** The removal succeeded, but the image is still listed; its space does not count. */
  | { readonly kind: "ghost" }
  /** Not tried: facts changed after the plan was made. */
  | { readonly kind: "skipped"; readonly reason: ImageKeepReason }
  | { readonly kind: "failed"; readonly message: string; readonly code: FailureCode };

export interface ImageItem {
  readonly candidate: ImageCandidate;
  readonly trigger: ImageTrigger;
  readonly result: ImageResult;
  readonly startedAt: Instant;
  readonly took: Duration;
}

/** 0 unless it was removed. */
export const reportedOf = ({ result }: Pick<ImageItem, "result">): bigint =>
  result.kind === "removed" ? result.reportedBytes : 0n;

export type ImageEnd =
  /** No trigger was met. */
  | "nothing-to-do"
  | "target-reached"
  /** By the estimates enough was removed, but the disk does not show it yet; the next pass judges anew. */
  | "estimated"
  | "candidates-exhausted"
  | "futile"
  | "blocked"
  /** Removals in a row gave no space back. */
  | "nothing-freed"
  /** The runtime has no room to record a removal, which would free nothing. */
  | "no-room"
  /** Removals for age failed, so the space pass was skipped, as in the kubelet. */
  | "age-removal-errors"
  | "invalid-capacity"
  /** A list or a stat failed during the pass, so what is in use is unknown. */
  | "observation-failed"
  | "stopped"
  | "dry-run";

export interface ImageOutcome {
  readonly end: ImageEnd;
  readonly items: readonly ImageItem[];
  readonly wantedBytes: bigint | null;
  /** Of all removed images. */
  readonly reportedFreedBytes: bigint;
  /** The growth of the free blocks during the pass, or below 0. */
  readonly measuredFreedBytes: bigint;
  readonly availableBefore: bigint | null;
  readonly availableAfter: bigint | null;
  readonly capacityBytes: bigint | null;
  /** The error if `end` is `observation-failed` or `no-room`. */
  readonly error: string | null;
  readonly ghosts: readonly Image[];
  /** If `end` is `nothing-freed`. */
  readonly nothingFreed?: NothingFreed;
}

/** What ended a pass that gave no space back. */
export interface NothingFreed {
  readonly filesystem: string;
  /** In a row. */
  readonly removals: number;
  readonly estimatedBytes: bigint;
  readonly gainedBytes: bigint;
}

export type RemovalResult =
  | { readonly kind: "removed" }
  /** Something else removed it first, which counts as removed. */
  | { readonly kind: "already-gone" }
  | { readonly kind: "skipped"; readonly what: string }
  | {
      readonly kind: "failed";
      readonly step: string;
      readonly message: string;
      readonly code: FailureCode;
    };

export const failedStep = (step: string, thrown: unknown): RemovalResult => ({
  kind: "failed",
  step,
  message: messageOf(thrown),
  code: failureCode(thrown),
});

/** Whatever removed it. */
export const isGone = ({
  result: { kind },
}: {
  readonly result: Pick<ImageResult | RemovalResult, "kind">;
}): boolean => kind === "removed" || kind === "already-gone";

/** Refused, not answered, or without effect: what the exit code and every summary count as failed. */
export const isFailed = ({ kind }: Pick<ImageResult | RemovalResult, "kind">): boolean =>
  kind === "failed" || kind === "ghost";

export interface ContainerItem {
  readonly planned: PlannedContainer;
  readonly reason: ContainerRemoveReason;
  readonly result: RemovalResult;
  readonly stopped: boolean;
  /** Log files deleted with it. */
  readonly logFiles: readonly string[];
  readonly logBytes: bigint;
  /** An error with the logs; the container itself was removed. */
  readonly logError: string | null;
}

export interface SandboxItem {
  readonly sandbox: Sandbox;
  readonly reason: SandboxRemoveReason;
  readonly result: RemovalResult;
}

export interface LogItem {
  readonly kind: "pod-logs" | "log-link";
  readonly entry: string;
  readonly reason: LogRemoveReason;
  readonly result: RemovalResult;
  readonly bytes: bigint;
}

/** What became of one removal beside those of images. */
export type PodItem = ContainerItem | SandboxItem | LogItem;

/** The ID of what was to be removed; of logs, the entry's name. */
export function removedId(item: ImageItem | PodItem): string {
  if ("candidate" in item) return item.candidate.image.id;
  if ("planned" in item) return item.planned.container.id;
  return "sandbox" in item ? item.sandbox.id : item.entry;
}

export interface ContainerOutcome {
  readonly end: "done" | "blocked" | "stopped" | "observation-failed" | "dry-run";
  readonly containers: readonly ContainerItem[];
  readonly sandboxes: readonly SandboxItem[];
  readonly logs: readonly LogItem[];
  /** By statfs of the filesystem that holds the containers; `null` if it was not measured. */
  readonly measuredFreedBytes: bigint | null;
  /** Lists or directories that could not be read. */
  readonly errors: readonly string[];
}

/** Everything that was tried. */
export const outcomeItems = ({
  containers,
  sandboxes,
  logs,
}: ContainerOutcome): readonly PodItem[] => [...containers, ...sandboxes, ...logs];

type Halves = Pick<Pass, "images" | "containers">;

/** Everything that a pass tried. */
export const passItems = ({ images, containers }: Halves): readonly (ImageItem | PodItem)[] => [
  ...(images?.items ?? []),
  ...(containers === null ? [] : outcomeItems(containers)),
];

/** Whether a pass removed anything. */
export const hasRemoved = (pass: Halves): boolean =>
  passItems(pass).some(isGone) || pass.containers?.logs.some(({ bytes }) => bytes > 0n) === true;

/** What a pass freed, as far as it was measured; `null`: nothing was. */
export function measuredFreedBytes({ images, containers }: Halves): bigint | null {
  const freed = [images, containers].flatMap((half) => half?.measuredFreedBytes ?? []);
  return freed.length === 0 ? null : freed.reduce((sum, bytes) => sum + bytes, 0n);
}

export const eventReasons = [
  "ImageGCFailed",
  "ContainerGCFailed",
  "FreeDiskSpaceFailed",
  "InvalidDiskCapacity",
  "EvictionThresholdMet",
  "ImageGCFutile",
  "NothingFreed",
  "KeepRulesInvalid",
  "GhostImage",
  "RecordsLost",
] as const;
export type EventReason = (typeof eventReasons)[number];

/** A warning event, which an operator should get even without reading the log. */
export const event = record({
  at: time,
  passId: nullable(branded(passId)),
  reason: openEnum<EventReason>(),
  message: text,
});
export type Event = Of<typeof event>;

export type PassKind = "image-gc" | "container-gc" | "pressure" | "gc";

export type PassStart = Pick<Pass, "id" | "kind" | "purpose" | "startedAt">;

export interface Pass {
  readonly id: PassId;
  readonly kind: PassKind;
  readonly purpose: Purpose;
  /** `crigc rm, user root`; absent: the agent's own. */
  readonly requestedBy?: string;
  readonly startedAt: Instant;
  readonly endedAt: Instant;
  readonly dryRun: boolean;
  readonly plan: Plan;
  readonly images: ImageOutcome | null;
  readonly containers: ContainerOutcome | null;
  readonly events: readonly Event[];
  /** A list, a stat or the lock failed, and nothing was done; `null` if the pass completed. */
  readonly error: string | null;
}

export type LoopName = "image-cache" | "image-detection" | "image-gc" | "container-gc" | "pressure";

export interface LoopStatus {
  readonly name: LoopName;
  readonly periodMs: number;
  /** False if nothing triggers the loop (image GC with a high threshold of 100 and no other trigger). */
  readonly enabled: boolean;
  readonly lastStartedAt: Instant | null;
  readonly lastEndedAt: Instant | null;
  readonly nextAt: Instant | null;
  /** `null`: the last run succeeded, or there was none. */
  readonly lastError: string | null;
  readonly consecutiveFailures: number;
}

/** A hold: collection is paused until it expires or is released. */
export type HoldState =
  | { readonly kind: "none" }
  | {
      readonly kind: "held";
      /** `null`: until it is released. */
      readonly until: Instant | null;
      readonly since: Instant | null;
      readonly reason: string;
    };
