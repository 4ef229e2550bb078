/** The reasons for keeping or removing containers, sandboxes and pod logs, each declared once. */

import { assertNever } from "../model/errors.ts";
import type { ContainerItem, LogItem, SandboxItem } from "../model/pass.ts";
import type { PodSourceState } from "../model/plan.ts";
import type {
  ContainerKeepReason,
  ContainerRemoveReason,
  LogKeepReason,
  LogRemoveReason,
  SandboxKeepReason,
  SandboxRemoveReason,
} from "../model/reason.ts";
import { reasons, type ReasonTable } from "./document.ts";
import { imageBlock } from "./image-reasons.ts";
import { clean } from "./terminal.ts";
import { containerName, counted, humanDuration, sandboxName } from "./words.ts";

/** A container, a sandbox or a pod log; codes that several of them have mean the same. */
export type PodReason =
  | ContainerKeepReason
  | ContainerRemoveReason
  | SandboxKeepReason
  | SandboxRemoveReason
  | LogKeepReason
  | LogRemoveReason;

/** Of the history too, so that each code has one title. */
export const POD_REMOVALS: ReasonTable<
  ContainerRemoveReason | SandboxRemoveReason | LogRemoveReason
> = {
  "pod-gone": { title: "its pod was deleted" },
  "pod-terminated": { title: "its pod terminated" },
  "foreign-dead": {
    title: "dead and not created by Kubernetes",
    text: () => "dead and not created by Kubernetes (collectForeign)",
  },
  "over-per-container-limit": {
    title: "over the limit per container name",
    text: ({ limit }) => `dead, over the limit of ${limit} per container name`,
  },
  "over-total-limit": {
    title: "over the node's limit of dead containers",
    text: ({ limit }) => `dead, over the node's limit of ${counted(limit, "dead container")}`,
  },
  superseded: { title: "its pod has a newer sandbox" },
  "container-gone": { title: "its container was removed" },
};

export const podReasons = reasons<PodReason>({
  ...POD_REMOVALS,
  "not-selected": { title: "not selected" },
  foreign: { title: "not created by Kubernetes" },
  "source-not-ready": {
    title: "cannot tell whether its pod was deleted",
    text: ({ message }) => `cannot tell whether its pod was deleted: ${clean(message)}`,
  },
  blocked: {
    title: "removal is blocked",
    text: ({ block }) => `removal is blocked: ${imageBlock.title(block)}`,
  },
  changed: {
    title: "changed since the plan",
    text: ({ what }) => `changed since the plan was made: ${clean(what)}`,
  },
  running: { title: "running" },
  "too-young": {
    title: "younger than the minimum age",
    text: ({ age, minimumAge }) =>
      `created ${humanDuration(age)} ago; the minimum age is ${humanDuration(minimumAge)}`,
  },
  "not-dead": {
    title: "created or unknown, and its pod is not deleted",
    text: ({ state }) => `${clean(state)}, and its pod is not deleted`,
  },
  "newest-of-name": {
    title: "newest of its name in a live pod, with none running",
  },
  "within-limits": { title: "dead, within the limits of dead containers" },
  ready: { title: "ready" },
  "has-containers": {
    title: "still has containers",
    text: ({ containers }) => `still has ${counted(containers.length, "container")}`,
  },
  "newest-of-pod": { title: "newest sandbox of a pod not known to be deleted" },
  "pod-known": { title: "its pod is on this node" },
  "pod-not-gone-yet": { title: "its pod is not known to be deleted yet" },
  stray: { title: "not a pod log directory" },
  "in-use": { title: "in use", text: ({ what }) => clean(what) },
});

/** What a removal was of, for a line of the log. */
export function removalName(item: ContainerItem | SandboxItem | LogItem): string {
  if ("planned" in item) return `container ${containerName(item.planned.container)}`;
  if ("sandbox" in item) return `sandbox ${sandboxName(item.sandbox)}`;
  return `${item.kind === "pod-logs" ? "pod logs" : "log link"} ${clean(item.entry)}`;
}

export function podSourceWords(state: PodSourceState): string {
  switch (state.kind) {
    case "ready":
      return `pod source: ${clean(state.source)}`;
    case "none":
      return `no pod source, so no pod counts as deleted (${clean(state.why)})`;
    case "not-ready":
      return `pod source ${clean(state.source)} is not ready: ${clean(state.why)}`;
    default:
      return assertNever(state);
  }
}

export const logsErrorWords = (message: string): string =>
  `no pod log is deleted, not even that of a removed container: ${clean(message)}`;
