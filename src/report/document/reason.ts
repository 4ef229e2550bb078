/** Reasons in JSON documents: a code, the sentence for it, and its data with units in the field names. */

import { assertNever } from "../../model/assert.ts";
import type {
  ContainerKeepReason,
  ContainerRemoveReason,
  ImageBlock,
  ImageKeepReason,
  ImageTrigger,
  ImageUser,
  LogKeepReason,
  LogRemoveReason,
  SandboxKeepReason,
  SandboxRemoveReason,
} from "../../model/reason.ts";
import {
  containerKeepWords,
  containerRemoveWords,
  logKeepWords,
  logRemoveWords,
  sandboxKeepWords,
  sandboxRemoveWords,
} from "../container-words.ts";
import { blockWords, keepWords, triggerWords } from "../words.ts";
import { type JsonObject, msOf, timeOf } from "./json.ts";

export const keepJson = (reason: ImageKeepReason): JsonObject => ({
  code: reason.kind,
  text: keepWords(reason),
  ...keepData(reason),
});

export const triggerJson = (trigger: ImageTrigger): JsonObject => ({
  code: trigger.kind,
  text: triggerWords(trigger),
  ...(trigger.kind === "pressure" ? { signal: trigger.signal } : {}),
});

export const blockJson = (block: ImageBlock): JsonObject => ({
  code: block.kind,
  text: blockWords(block),
  ...blockData(block),
});

export const containerKeepJson = (reason: ContainerKeepReason): JsonObject => ({
  code: reason.kind,
  text: containerKeepWords(reason),
  ...sharedData(reason),
});

export const containerRemoveJson = (reason: ContainerRemoveReason): JsonObject => ({
  code: reason.kind,
  text: containerRemoveWords(reason),
  ...("limit" in reason ? { limit: reason.limit } : {}),
});

export const sandboxKeepJson = (reason: SandboxKeepReason): JsonObject => ({
  code: reason.kind,
  text: sandboxKeepWords(reason),
  ...sharedData(reason),
});

export const sandboxRemoveJson = (reason: SandboxRemoveReason): JsonObject => ({
  code: reason.kind,
  text: sandboxRemoveWords(reason),
});

export const logKeepJson = (reason: LogKeepReason): JsonObject => ({
  code: reason.kind,
  text: logKeepWords(reason),
  ...sharedData(reason),
});

export const logRemoveJson = (reason: LogRemoveReason): JsonObject => ({
  code: reason.kind,
  text: logRemoveWords(reason),
});

export function userJson(user: ImageUser): JsonObject {
  switch (user.kind) {
    case "container":
      return {
        kind: user.kind,
        id: user.id,
        name: user.name,
        podName: user.podName,
        state: user.state,
      };
    case "image-volume":
      return { kind: user.kind, id: user.id, name: user.name, podName: user.podName };
    case "pod-spec":
      return { kind: user.kind, uid: user.uid };
    case "sandbox":
      return { kind: user.kind, id: user.id };
    default:
      return assertNever(user);
  }
}

function keepData(reason: ImageKeepReason): JsonObject {
  switch (reason.kind) {
    case "in-use":
      return { users: reason.users.map(userJson) };
    case "sandbox-image":
      return { by: reason.by, name: reason.name };
    case "keep-rule":
      return { pattern: reason.pattern, source: reason.source, name: reason.name };
    case "keep-per-repository":
      return { repository: reason.repository, place: reason.place, limit: reason.limit };
    case "ghost":
      return { since: timeOf(reason.since), attempts: reason.attempts };
    case "too-young":
    case "blocked":
    case "changed":
      return sharedData(reason);
    case "pinned":
    case "keep-loaded":
    case "just-used":
    case "no-trigger":
      return {};
    default:
      return assertNever(reason);
  }
}

function blockData(block: ImageBlock): JsonObject {
  switch (block.kind) {
    case "on-hold":
      return { until: timeOf(block.until), reason: block.reason };
    case "boot-grace":
      return { because: block.because, remainingMs: msOf(block.remaining) };
    case "keep-rules-invalid":
      return {
        problems: block.problems.map((it) => ({ source: it.source, message: it.message })),
      };
    case "usage-unknown":
      return { unknown: block.unknown.map((it) => ({ subject: it.subject, message: it.message })) };
    case "pods-unknown":
      return { message: block.message };
    case "invalid-capacity":
      return { path: block.path, message: block.message };
    case "pod-starting":
      return { sandboxes: block.sandboxes, remainingMs: msOf(block.remaining) };
    case "futile":
      return {
        filesystem: block.filesystem,
        boundBytes: block.boundBytes,
        neededBytes: block.neededBytes,
        boundInodes: block.inodes?.bound,
        neededInodes: block.inodes?.needed,
      };
    default:
      return assertNever(block);
  }
}

type SharedReason =
  | ContainerKeepReason
  | SandboxKeepReason
  | LogKeepReason
  | Extract<ImageKeepReason, { kind: "too-young" | "blocked" | "changed" }>;

/** Data of the codes that more than one kind of thing has. */
function sharedData(reason: SharedReason): JsonObject {
  switch (reason.kind) {
    case "too-young":
      return { ageMs: msOf(reason.age), minimumAgeMs: msOf(reason.minimumAge) };
    case "blocked":
      return { block: reason.block };
    case "changed":
      return { what: reason.what };
    case "not-dead":
    case "container-not-gone":
      return { state: reason.state };
    case "source-not-ready":
    case "end-unknown":
    case "unreadable":
      return { message: reason.message };
    case "has-containers":
      return { containers: reason.containers };
    case "running":
    case "foreign":
    case "newest-of-name":
    case "within-limits":
    case "ready":
    case "newest-of-pod":
    case "pod-known":
    case "pod-not-gone-yet":
    case "stray":
      return {};
    default:
      return assertNever(reason);
  }
}
