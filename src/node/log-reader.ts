// The two log directories, resolved once (no link below them is followed), and their listings.

import { readlink, realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";

import { HostError } from "../model/errors.ts";
import { type ContainerLog, containerOfLogPath, podUidOfLogDirectory } from "../model/ids.ts";
import type { DanglingLogLink, LogReading, PodLogDirectory } from "../model/snapshot.ts";
import { Directory, type Entry } from "./directory.ts";
import { codeOf, hostError } from "./files.ts";

export interface LogPaths {
  readonly podLogsDir: string;
  /** `--container-logs-dir`: links to logs. */
  readonly containerLogsDir: string;
}

export interface LogRoots {
  readonly podLogs: LogRoot;
  readonly containerLogs: LogRoot;
}

export const rootsOf = ({ podLogsDir, containerLogsDir }: LogPaths): LogRoots => ({
  podLogs: new LogRoot(podLogsDir),
  containerLogs: new LogRoot(containerLogsDir),
});

/**
 * One listing for each directory, without opening files or walking trees. Answers `null` without a pod log directory;
 * kind `failed` if one of the two cannot be read.
 */
export function logReader(paths: LogPaths): () => Promise<LogReading | null> {
  const { podLogs, containerLogs } = rootsOf(paths);
  return async () => {
    try {
      await using directory = await podLogs.open();
      if (directory === null) return null;
      return {
        kind: "read",
        podLogsDirectory: podLogs.given,
        ...sorted(await podLogs.entries(directory)),
        danglingLinks: await danglingLinks(podLogs, containerLogs),
        sizeBytes: null,
      };
    } catch (thrown) {
      if (!(thrown instanceof HostError)) throw thrown;
      return { kind: "failed", message: thrown.message };
    }
  };
}

/** Pods' directories, and everything else: files, links, `lost+found`, directories of other programs. */
function sorted(entries: readonly Entry[]) {
  const podLogs: PodLogDirectory[] = [];
  const strays: string[] = [];
  for (const { name, kind } of entries) {
    const uid = kind === "directory" ? podUidOfLogDirectory(name) : null;
    if (uid === null) strays.push(name);
    else podLogs.push({ entry: name, uid });
  }
  return { podLogs, strays };
}

async function danglingLinks(
  podLogs: LogRoot,
  containerLogs: LogRoot,
): Promise<readonly DanglingLogLink[]> {
  await using directory = await containerLogs.open();
  if (directory === null) return [];
  const found: DanglingLogLink[] = [];
  for (const { name, kind } of await containerLogs.entries(directory)) {
    // Almost no link dangles, and one look is all that it costs.
    if (kind !== "link" || !(await isDangling(directory.pathOf(name)))) continue;
    const log = await logOfLink(directory, name, { containerLogs, podLogs });
    if (log !== null) found.push({ entry: name, ...log });
  }
  return found;
}

/** A target that cannot be looked at may exist. */
export const isDangling = (link: string): Promise<boolean> =>
  stat(link).then(
    () => false,
    (error: unknown) => codeOf(error) === "ENOENT",
  );

/** The container to whose log the link points; `null` for any other link. */
export async function logOfLink(
  directory: Directory,
  name: string,
  { podLogs, containerLogs }: LogRoots,
): Promise<ContainerLog | null> {
  try {
    const target = await readlink(directory.pathOf(name));
    return containerOfLogPath(podLogs.below(resolve(containerLogs.given, target)) ?? []);
  } catch {
    return null;
  }
}

const ADVICE = "make it a readable directory, or set --pod-logs-dir or --container-logs-dir";

export class LogRoot {
  /** As given, which is how the runtime spells its paths. */
  readonly given: string;
  #resolved: string | null = null;

  constructor(path: string) {
    this.given = resolve(path);
  }

  /** `null` while it does not exist. */
  async open(): Promise<Directory | null> {
    try {
      this.#resolved ??= await realpath(this.given);
      return await Directory.open(this.#resolved);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return null;
      throw this.#failure("open", error);
    }
  }

  /** By name. */
  async entries(directory: Directory): Promise<readonly Entry[]> {
    try {
      return (await directory.entries()).toSorted((one, other) => (one.name < other.name ? -1 : 1));
    } catch (error) {
      throw this.#failure("list", error);
    }
  }

  #failure(doing: string, error: unknown): HostError {
    return hostError(
      "read",
      error,
      (why) => `cannot ${doing} the log directory ${this.given}: ${why}; ${ADVICE}`,
    );
  }

  /** The components of a normalized path below this directory; `null` for any other path. */
  below(path: string): readonly string[] | null {
    for (const root of [this.given, this.#resolved]) {
      if (root === null || !path.startsWith(`${root}/`)) continue;
      return path.slice(root.length + 1).split("/");
    }
    return null;
  }
}
