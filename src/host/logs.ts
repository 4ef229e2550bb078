// The node's log directories: who reads them gets a reader, and only who may remove gets the remover.

import { HostError } from "../model/errors.ts";
import type { LogReading, PodLogDirectory } from "../model/snapshot.ts";
import type { Deleted } from "./delete-tree.ts";
import { readLogs } from "./log-reader.ts";
import {
  type ContainerLogs,
  placesOf,
  removeContainerLogs,
  removeLegacyLink,
  removePodLogs,
} from "./log-remover.ts";
import { type LogPaths, LogRoot } from "./log-roots.ts";

export interface LogReader {
  /** `null` where there is no pod log directory; kind `failed` where one of the two cannot be read. */
  read(): Promise<LogReading | null>;
}

export interface LogDeleter {
  removeContainerLogs(logs: ContainerLogs): Promise<Deleted>;
  removeLegacyLink(entry: string): Promise<boolean>;
  removePodLogs(directory: PodLogDirectory): Promise<Deleted>;
  placesOf(
    logs: readonly { readonly path: string; readonly podUid: string }[],
  ): Promise<readonly (readonly string[])[]>;
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

/** Each method throws `HostError`, of kind `refused` where the name or path is not what it may touch. */
export function logDeleter(paths: LogPaths): LogDeleter {
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
