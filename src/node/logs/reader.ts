// Lists the log directories: one listing each, without opening files or walking trees.

import { readlink, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

import { HostError } from "../../model/errors.ts";
import { containerIdOfLogLink, podUidOfLogDirectory } from "../../model/log-names.ts";
import type {
  DanglingLogLink,
  LogFacts,
  LogReading,
  PodLogDirectory,
} from "../../model/snapshot.ts";
import type { Directory, Entry } from "../files/directory.ts";
import { codeOf, reasonOf } from "../files/errno.ts";
import { type LogPaths, type LogRoot, logRootAdvice, type LogRoots, rootsOf } from "./roots.ts";

/** Answers `null` without a pod log directory; kind `failed` if one of the two cannot be read. */
export function logReader(paths: LogPaths): () => Promise<LogReading | null> {
  const roots = rootsOf(paths);
  return async () => {
    try {
      return await readLogs(roots);
    } catch (thrown) {
      if (!(thrown instanceof HostError)) throw thrown;
      return { kind: "failed", message: thrown.message };
    }
  };
}

async function readLogs({ podLogs, containerLogs }: LogRoots): Promise<LogFacts | null> {
  const entries = await entriesOf(podLogs);
  if (entries === null) return null;
  return {
    kind: "read",
    podLogsDirectory: podLogs.given,
    ...sorted(entries),
    danglingLinks: await danglingLinks(podLogs, containerLogs),
    sizeBytes: null,
  };
}

async function entriesOf(root: LogRoot): Promise<readonly Entry[] | null> {
  await using directory = await root.open();
  return directory === null ? null : byName(await listed(directory, root));
}

async function listed(directory: Directory, root: LogRoot): Promise<readonly Entry[]> {
  try {
    return await directory.entries();
  } catch (error) {
    throw new HostError(
      "read",
      `cannot list the log directory ${root.given}: ${reasonOf(error)}; ${logRootAdvice}`,
      {
        cause: error,
      },
    );
  }
}

/** Pods' directories, and everything else: files, links, `lost+found`, directories of other programs. */
function sorted(entries: readonly Entry[]): Pick<LogFacts, "podLogs" | "strays"> {
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
  for (const { name, kind } of byName(await listed(directory, containerLogs))) {
    const containerId = kind === "link" ? containerIdOfLogLink(name) : null;
    if (containerId === null) continue;
    // Almost no link dangles, and one look is all that it costs.
    if (!(await isDangling(directory, name))) continue;
    if (await leadsBelow(directory, name, { containerLogs, podLogs })) {
      found.push({ entry: name, containerId });
    }
  }
  return found;
}

/** Whether the link points to a pod log. Others belong to other programs. */
export async function leadsBelow(
  directory: Directory,
  name: string,
  roots: LogRoots,
): Promise<boolean> {
  try {
    const target = await readlink(directory.pathOf(name));
    const path = resolve(dirname(`${roots.containerLogs.given}/${name}`), target);
    return roots.podLogs.below(path) !== null;
  } catch {
    return false;
  }
}

/** Only if the target is absent; a target that cannot be looked at may exist. */
async function isDangling(directory: Directory, name: string): Promise<boolean> {
  try {
    await stat(directory.pathOf(name));
    return false;
  } catch (error) {
    return codeOf(error) === "ENOENT";
  }
}

const byName = (entries: readonly Entry[]): readonly Entry[] =>
  entries.toSorted((one, other) => (one.name < other.name ? -1 : 1));
