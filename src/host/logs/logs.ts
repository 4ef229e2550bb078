// The node's log directories: a reader for everybody, and a remover only for what may remove.

import { HostError } from "../../model/errors.ts";
import type { LogRemover } from "../../model/ports.ts";
import type { LogReading } from "../../model/snapshot.ts";
import { readLogs } from "./reader.ts";
import { placesOf, removeContainerLogs, removeLegacyLink, removePodLogs } from "./remover.ts";
import { type LogPaths, LogRoot } from "./roots.ts";

export interface LogReader {
  /** `null` without a pod log directory; kind `failed` if one of the two cannot be read. */
  read(): Promise<LogReading | null>;
}

export function logReader(paths: LogPaths): LogReader {
  const { podLogs, containerLogs } = rootsOf(paths);
  return {
    read: async () => {
      try {
        return await readLogs(podLogs, containerLogs);
      } catch (thrown) {
        if (!(thrown instanceof HostError)) throw thrown;
        return { kind: "failed", message: thrown.message };
      }
    },
  };
}

/** Each method throws `HostError`, of kind `refused` if it must not touch the name or path. */
export function logDeleter(paths: LogPaths): LogRemover {
  const roots = rootsOf(paths);
  return {
    removeContainerLogs: (logs) => removeContainerLogs(roots.podLogs, logs),
    removeLegacyLink: (entry) => removeLegacyLink(roots, entry),
    removePodLogs: (directory) => removePodLogs(roots.podLogs, directory),
    placesOf: (used) => placesOf(roots.podLogs, used),
  };
}

const rootsOf = (
  paths: LogPaths,
): { readonly podLogs: LogRoot; readonly containerLogs: LogRoot } => ({
  podLogs: new LogRoot(paths.podLogsDirectory),
  containerLogs: new LogRoot(paths.containerLogsDirectory),
});
