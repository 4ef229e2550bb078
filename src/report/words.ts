/** The one place that words why an image is kept or removed: an English sentence for each code, without its full stop. */

import { assertNever } from "../model/assert.ts";
import type { ImageBlock, ImageKeepReason, ImageTrigger, ImageUser } from "../model/reason.ts";
import { type Instant, toRfc3339 } from "../model/time.ts";
import { counted, humanBytes, humanDuration } from "./bytes.ts";
import { shortId } from "./image-names.ts";
import { clean } from "./terminal.ts";

const USERS_NAMED = 3;

export function keepWords(reason: ImageKeepReason): string {
  switch (reason.kind) {
    case "in-use":
      return `in use by ${usersWords(reason.users)}`;
    case "pinned":
      return "pinned in the runtime";
    case "sandbox-image":
      return `the sandbox image: ${sandboxImageWords(reason.by)} (${clean(reason.name)})`;
    case "keep-rule":
      return `keep rule ${clean(reason.pattern)} (${clean(reason.source)})${matched(reason)}`;
    case "keep-loaded":
      return "loaded from an archive, and such images are kept (keepLoaded)";
    case "keep-per-repository":
      return `number ${reason.place} of the ${reason.limit} most recently used of ${clean(reason.repository)}, which are kept`;
    case "ghost":
      return `still listed after ${counted(reason.attempts, "removal")} that the runtime called a success or did not answer in time, the first at ${toRfc3339(reason.since)}; not tried again yet`;
    case "too-young":
      return `first seen ${humanDuration(reason.age)} ago, kept until it is ${humanDuration(reason.minimumAge)} old`;
    case "just-used":
      return "used at the very moment of this pass";
    case "no-trigger":
      return "unused, and nothing asks for space";
    case "blocked":
      return `unused, but no image is removed now: ${blockTitle(reason.block)}`;
    case "changed":
      return `left alone, because facts changed after the plan was made: ${clean(reason.what)}`;
    default:
      return assertNever(reason);
  }
}

/** What a group of kept images has in common, in a few words. */
export function keepTitle(kind: ImageKeepReason["kind"]): string {
  switch (kind) {
    case "in-use":
      return "in use";
    case "pinned":
      return "pinned in the runtime";
    case "sandbox-image":
      return "sandbox image";
    case "keep-rule":
      return "keep rule";
    case "keep-loaded":
      return "loaded from an archive";
    case "keep-per-repository":
      return "recent in its repository";
    case "ghost":
      return "ghost, removed but still listed";
    case "too-young":
      return "too young";
    case "just-used":
      return "just used";
    case "no-trigger":
      return "unused, nothing asks for space";
    case "blocked":
      return "unused, removal is blocked";
    case "changed":
      return "changed meanwhile";
    default:
      return assertNever(kind);
  }
}

export function triggerWords(trigger: ImageTrigger): string {
  switch (trigger.kind) {
    case "space":
      return "the disk is over its high threshold";
    case "inodes":
      return "the filesystem's inodes are over their high threshold";
    case "budget":
      return "the images take more than the store's budget";
    case "count":
      return "there are more images than the maximum";
    case "age":
      return "unused for longer than the maximum age";
    case "pressure":
      return `disk pressure: ${trigger.signal} is below its eviction threshold`;
    case "all-unused":
      return "all unused images were asked for";
    default:
      return assertNever(trigger);
  }
}

/** One word for a column: `space`, `pressure imagefs.available`. */
export const triggerTitle = (trigger: ImageTrigger): string =>
  trigger.kind === "pressure" ? `pressure ${trigger.signal}` : trigger.kind;

export function blockWords(block: ImageBlock): string {
  switch (block.kind) {
    case "on-hold":
      return `collection is on hold ${holdEnd(block)}${block.reason === "" ? "" : ` (${clean(block.reason)})`}; crigc release ends it`;
    case "boot-grace":
      return `the node is only watched for another ${humanDuration(block.remaining)} (--boot-grace), because ${block.because === "boot" ? "it booted" : "all of its containers vanished at once"}`;
    case "keep-rules-invalid":
      return `the keep rules are invalid, so no image is safe to remove: ${issuesWords(block.problems.map((it) => `${it.source}: ${it.message}`))}`;
    case "usage-unknown":
      return `what is in use is not known: ${issuesWords(block.unknown.map((it) => `${it.subject}: ${it.message}`))}`;
    case "pods-unknown":
      return `the pods of this node could not be read, and what they name counts as used: ${clean(block.message)}`;
    case "invalid-capacity":
      return `the figures of the filesystem at ${clean(block.path)} cannot be right: ${clean(block.message)}`;
    case "pod-starting":
      return `a pod is starting and has no container yet (${startingWords(block.sandboxes)}), so images wait for at most ${humanDuration(block.remaining)}`;
    case "futile":
      if (block.inodes !== undefined)
        return `removing every unused image would free at most ${block.inodes.bound} of the ${block.inodes.needed} inodes that ${clean(block.filesystem)} needs, so the images stay: other files take them`;
      return `removing every unused image would free at most ${humanBytes(block.boundBytes)} of the ${humanBytes(block.neededBytes)} that ${clean(block.filesystem)} needs, so the images stay: something else fills the disk`;
    default:
      return assertNever(block);
  }
}

export function blockTitle(kind: ImageBlock["kind"]): string {
  switch (kind) {
    case "on-hold":
      return "on hold";
    case "boot-grace":
      return "the node is only watched after its boot";
    case "keep-rules-invalid":
      return "the keep rules are invalid";
    case "usage-unknown":
      return "what is in use is not known";
    case "pods-unknown":
      return "the pods of this node could not be read";
    case "invalid-capacity":
      return "the filesystem's figures cannot be right";
    case "pod-starting":
      return "a pod is starting";
    case "futile":
      return "it would be futile";
    default:
      return assertNever(kind);
  }
}

export function userWords(user: ImageUser): string {
  switch (user.kind) {
    case "container":
      return `${clean(user.state)} container ${containerName(user)}`;
    case "image-volume":
      return `container ${containerName(user)}, as a volume`;
    case "pod-spec":
      return `the specification of pod ${clean(user.uid)}`;
    case "sandbox":
      return `sandbox ${shortId(user.id)}`;
    default:
      return assertNever(user);
  }
}

/** For a column: the name alone. */
export function userName(user: ImageUser): string {
  switch (user.kind) {
    case "container":
    case "image-volume":
      return containerName(user);
    case "pod-spec":
      return `pod ${clean(user.uid)}`;
    case "sandbox":
      return `sandbox ${shortId(user.id)}`;
    default:
      return assertNever(user);
  }
}

function usersWords(users: readonly ImageUser[]): string {
  const named = users.slice(0, USERS_NAMED).map(userWords);
  const rest = users.length - named.length;
  return rest > 0 ? `${named.join(", ")} and ${rest} more` : named.join(", ") || "a user";
}

const containerName = (user: {
  readonly podName: string;
  readonly name: string;
  readonly id: string;
}): string =>
  user.podName === ""
    ? `${clean(user.name)} (${shortId(user.id)})`
    : `${clean(user.podName)}/${clean(user.name)}`;

function startingWords(sandboxes: readonly string[]): string {
  const [first = "", ...rest] = sandboxes.map(shortId);
  return rest.length === 0 ? `sandbox ${first}` : `sandbox ${first} and ${rest.length} more`;
}

function sandboxImageWords(by: "runtime" | "flag" | "pattern"): string {
  switch (by) {
    case "runtime":
      return "the runtime names it";
    case "flag":
      return "the configuration names it";
    case "pattern":
      return "it matches a built-in pattern";
    default:
      return assertNever(by);
  }
}

const matched = (reason: { readonly pattern: string; readonly name: string }): string =>
  reason.name === reason.pattern ? "" : ` matches ${clean(reason.name)}`;

const holdEnd = (block: { readonly until: Instant | null }): string =>
  block.until === null ? "until it is released" : `until ${toRfc3339(block.until)}`;

function issuesWords(issues: readonly string[]): string {
  const [first = "no detail was given", ...rest] = issues.map(clean);
  return rest.length === 0 ? first : `${first}; and ${rest.length} more`;
}
