/** The one place that words why a container, a sandbox or pod logs are kept or removed. */

import { assertNever } from "../model/assert.ts";
import type { PodSourceState } from "../model/plan.ts";
import type {
  ContainerKeepReason,
  ContainerRemoveReason,
  LogKeepReason,
  LogRemoveReason,
  SandboxKeepReason,
  SandboxRemoveReason,
} from "../model/reason.ts";
import { counted, humanDuration } from "./bytes.ts";
import { clean } from "./terminal.ts";
import { blockTitle } from "./words.ts";

export function containerKeepWords(reason: ContainerKeepReason): string {
  switch (reason.kind) {
    case "running":
      return "it runs";
    case "foreign":
      return FOREIGN;
    case "too-young":
      return `dead for ${humanDuration(reason.age)}, kept until ${humanDuration(reason.minimumAge)}`;
    case "not-dead":
      return `${clean(reason.state)}, in a pod that is not gone`;
    case "newest-of-name":
      return "the newest of its name in a living pod, where none of that name runs";
    case "within-limits":
      return "dead, and within the limits of dead containers";
    case "source-not-ready":
      return notReady(reason.message);
    case "end-unknown":
      return `when it ended could not be read: ${clean(reason.message)}`;
    case "blocked":
      return `nothing is removed now: ${blockTitle(reason.block)}`;
    case "changed":
      return changed(reason.what);
    default:
      return assertNever(reason);
  }
}

/** What a group of kept containers has in common: the sentence without what differs from one to the next. */
export const containerKeepTitle = (reason: ContainerKeepReason): string =>
  reason.kind === "too-young"
    ? `dead for less than ${humanDuration(reason.minimumAge)}`
    : containerKeepWords(reason);

export const sandboxKeepTitle = (reason: SandboxKeepReason): string =>
  reason.kind === "has-containers" ? "it still has containers" : sandboxKeepWords(reason);

export function containerRemoveWords(reason: ContainerRemoveReason): string {
  switch (reason.kind) {
    case "pod-gone":
      return "dead, and its pod is gone";
    case "pod-evicted":
      return "dead, and its pod was evicted";
    case "pod-terminated":
      return "dead, and its pod has ended";
    case "over-per-container-limit":
      return `dead, and newer ones fill the limit of ${reason.limit} for each container name of a pod`;
    case "over-total-limit":
      return `dead, and the node has more than the limit of ${counted(reason.limit, "dead container")}`;
    case "foreign-dead":
      return "dead, not made by Kubernetes, and such containers are collected (collectForeign)";
    default:
      return assertNever(reason);
  }
}

export function sandboxKeepWords(reason: SandboxKeepReason): string {
  switch (reason.kind) {
    case "ready":
      return "it is ready";
    case "has-containers":
      return `it still has ${counted(reason.containers.length, "container")}`;
    case "newest-of-pod":
      return "the newest sandbox of a living pod";
    case "foreign":
      return FOREIGN;
    case "source-not-ready":
      return notReady(reason.message);
    case "blocked":
      return `nothing is removed now: ${blockTitle(reason.block)}`;
    case "changed":
      return changed(reason.what);
    default:
      return assertNever(reason);
  }
}

export function sandboxRemoveWords(reason: SandboxRemoveReason): string {
  switch (reason.kind) {
    case "pod-gone":
      return "stopped and empty, and its pod is gone";
    case "pod-evicted":
      return "stopped and empty, and its pod was evicted";
    case "pod-terminated":
      return "stopped and empty, and its pod has ended";
    case "superseded":
      return "stopped and empty, and its pod has a newer sandbox";
    case "foreign-dead":
      return "stopped and empty, not made by Kubernetes, and such sandboxes are collected (collectForeign)";
    default:
      return assertNever(reason);
  }
}

export function logKeepWords(reason: LogKeepReason): string {
  switch (reason.kind) {
    case "pod-known":
      return "its pod is on this node";
    case "pod-not-gone-yet":
      return "its pod is not known to be gone yet";
    case "stray":
      return "not the log directory of a pod, so it is left alone";
    case "source-not-ready":
      return notReady(reason.message);
    case "container-not-gone":
      return `its container is ${clean(reason.state)}`;
    case "unreadable":
      return `it could not be read: ${clean(reason.message)}`;
    case "blocked":
      return `nothing is removed now: ${blockTitle(reason.block)}`;
    case "changed":
      return changed(reason.what);
    default:
      return assertNever(reason);
  }
}

export function logRemoveWords(reason: LogRemoveReason): string {
  switch (reason.kind) {
    case "pod-gone":
      return "logs of a pod that is gone";
    case "pod-evicted":
      return "logs of a pod that was evicted";
    case "container-gone":
      return "a link to the logs of a container that is gone";
    case "container-exited":
      return "a link to logs that are gone, of a container that has exited";
    default:
      return assertNever(reason);
  }
}

export function podSourceWords(state: PodSourceState): string {
  switch (state.kind) {
    case "ready":
      return `${clean(state.source)} says which pods are gone`;
    case "none":
      return `nothing says which pods are gone, so none is (${clean(state.why)})`;
    case "not-ready":
      return `${clean(state.source)} cannot say yet which pods are gone: ${clean(state.why)}`;
    default:
      return assertNever(state);
  }
}

export const logsErrorWords = (message: string): string =>
  `no log is removed now, not even that of a container that goes: ${clean(message)}`;

const FOREIGN = "not made by Kubernetes, so it is left alone";
const notReady = (message: string): string =>
  `who is gone is not known, so it stays: ${clean(message)}`;
const changed = (what: string): string =>
  `left alone, because facts changed after the plan was made: ${clean(what)}`;
