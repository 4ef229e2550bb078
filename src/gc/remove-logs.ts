/** Deletes the log directories of deleted pods, and links to logs that no longer exist. */

import { failedStep, type LogItem } from "../model/pass.ts";
import type { LogRemover } from "../model/ports.ts";
import type { LogRemoveReason } from "../model/reason.ts";
import type { DanglingLogLink, PodLogDirectory } from "../model/snapshot.ts";
import { GIVEN_UP } from "./remove-container.ts";

/** Never rejects. `signal` ends it early; the next pass deletes the rest. */
export async function removePodLogs(
  directory: PodLogDirectory,
  reason: LogRemoveReason,
  { logs, signal }: { readonly logs: LogRemover; readonly signal: AbortSignal },
): Promise<LogItem> {
  const item = { kind: "pod-logs", entry: directory.entry, reason, bytes: 0n } as const;
  try {
    const files = await logs.removePodLogs(directory, signal);
    if (files === null) return { ...item, result: { kind: "already-gone" } };
    const { bytes, failure, isStopped } = files;
    if (failure !== undefined) return { ...item, result: failedStep("remove", failure), bytes };
    return { ...item, result: isStopped === true ? GIVEN_UP : { kind: "removed" }, bytes };
  } catch (thrown) {
    return { ...item, result: failedStep("remove", thrown) };
  }
}

/** Never rejects. */
export async function removeLink(link: DanglingLogLink, logs: LogRemover): Promise<LogItem> {
  const reason = { kind: "container-gone" } as const;
  const item = { kind: "log-link", entry: link.entry, reason, bytes: 0n } as const;
  try {
    const removed = await logs.removeLink(link);
    const kept = { kind: "skipped", what: "it is gone, or dangles no more" } as const;
    return { ...item, result: removed ? { kind: "removed" } : kept };
  } catch (thrown) {
    return { ...item, result: failedStep("remove", thrown) };
  }
}
