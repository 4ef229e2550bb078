/** Deletes the log directories of deleted pods, and links to the logs of removed containers. */

import { containerId, containerLogLink, isWholeContainerId } from "../model/ids.ts";
import { failedStep, type LogItem } from "../model/pass.ts";
import type { ContainerDetail, LogRemover } from "../model/ports.ts";
import type { LogRemoveReason } from "../model/reason.ts";
import type { Container, DanglingLogLink, PodLogDirectory } from "../model/snapshot.ts";
import { GIVEN_UP } from "./remove-container.ts";

/** Never rejects. Keeps a directory that a listed container or sandbox uses, whatever pod it is named after. */
export async function removePodLogs(
  directory: PodLogDirectory,
  reason: LogRemoveReason,
  {
    logs,
    userOf,
    signal,
  }: {
    readonly logs: LogRemover;
    readonly userOf: (directory: PodLogDirectory) => Promise<string | null>;
    /** Ends it early; the next pass deletes the rest. */
    readonly signal: AbortSignal;
  },
): Promise<LogItem> {
  const item = { kind: "pod-logs", entry: directory.entry, reason, bytes: 0n } as const;
  try {
    const what = await userOf(directory);
    if (what !== null) return { ...item, result: { kind: "skipped", what } };
    const files = await logs.removePodLogs(directory, signal);
    if (files === null) return { ...item, result: { kind: "already-gone" } };
    const { bytes, failure, isStopped } = files;
    if (failure !== undefined) return { ...item, result: failedStep("remove", failure), bytes };
    return { ...item, result: isStopped === true ? GIVEN_UP : { kind: "removed" }, bytes };
  } catch (thrown) {
    return { ...item, result: failedStep("remove", thrown) };
  }
}

/** Why the link is deleted, by the runtime's answer for the full container ID; `null`: it is kept. */
export function linkReason(
  id: Container["id"],
  detail: ContainerDetail | null,
): LogRemoveReason | null {
  if (detail === null) return { kind: "container-gone" };
  // A runtime that resolves abbreviated IDs may have answered for another container.
  if (detail.id !== id) return null;
  // During rotation, the link of a running container dangles for a moment.
  return detail.state === "exited" ? { kind: "container-exited" } : null;
}

/**
 * The ID of the link's container; `null` if unknown. If the name was truncated, only a listed container whose own link
 * has this name completes the ID.
 */
export function containerOfLink(
  link: DanglingLogLink,
  containers: readonly Container[],
): Container["id"] | null {
  if (isWholeContainerId(link.containerId)) return containerId(link.containerId);
  const named = containers.filter((container) => containerLogLink(container) === link.entry);
  return named.length === 1 ? (named[0]?.id ?? null) : null;
}

/** Never rejects. */
export async function removeLink(
  link: DanglingLogLink,
  reason: LogRemoveReason,
  logs: LogRemover,
): Promise<LogItem> {
  const item = { kind: "log-link", entry: link.entry, reason, bytes: 0n } as const;
  try {
    const removed = await logs.removeLegacyLink(link.entry);
    const kept = { kind: "skipped", what: "it is gone, or dangles no more" } as const;
    return { ...item, result: removed ? { kind: "removed" } : kept };
  } catch (thrown) {
    return { ...item, result: failedStep("remove", thrown) };
  }
}
