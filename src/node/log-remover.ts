// Deletes log files, directories and links within the log directories; refuses when in doubt.

import { HostError } from "../model/errors.ts";
import {
  isSameLog,
  logPathOf,
  podUidOfLogDirectory,
  podUidOfOldLogDirectory,
} from "../model/ids.ts";
import type { LogRemover } from "../model/ports.ts";
import type { Container, DanglingLogLink, PodLogDirectory } from "../model/snapshot.ts";
import { type Directory, type EntryName, ifThere } from "./directory.ts";
import { codeOf, hostError } from "./files.ts";
import {
  isDangling,
  logOfLink,
  type LogPaths,
  type LogRoot,
  type LogRoots,
  rootsOf,
} from "./log-reader.ts";

interface Deleted {
  /** Relative to the log directory's parent; without directories. */
  readonly names: string[];
  bytes: bigint;
  isStopped?: true;
  failure?: HostError;
}

/** Each method throws `HostError`, of kind `refused` if it must not touch the name or path. */
export function logDeleter(paths: LogPaths): LogRemover {
  const roots = rootsOf(paths);
  return {
    removeContainerLogs: (container) => removeContainerLogs(roots.podLogs, container),
    removeLink: (link) => removeLink(roots, link),
    removePodLogs: (directory, signal) => removePodLogs(roots.podLogs, directory, signal),
  };
}

/** `ATTEMPT.log` and its rotations `ATTEMPT.log.*`; no other file with the same prefix. */
async function removeContainerLogs(podLogs: LogRoot, container: Container): Promise<Deleted> {
  const deleted: Deleted = { names: [], bytes: 0n };
  const path = logPathOf(container);
  if (path === null) return deleted;
  const [entry, subdirectory, file] = path;
  await inRoot(podLogs, `delete the log ${path.join("/")}`, async (root) => {
    await descend(root, [entry, subdirectory], async (directory) => {
      for (const { name, raw, kind } of await directory.entries())
        if (kind !== "directory" && (name === file || name.startsWith(`${file}.`)))
          await unlinkEntry({ parent: directory, name: raw, path: name }, deleted);
    });
  });
  return deleted;
}

/** Opens each directory from its parent's handle, and only if nothing is mounted on it. */
async function descend(
  from: Directory,
  [name, ...rest]: readonly string[],
  act: (directory: Directory) => Promise<void>,
): Promise<void> {
  if (name === undefined) return await act(from);
  await using directory = await from.openBelow(name);
  if (!(await directory.isOnMountOf(from))) throw refused(name, "something is mounted there");
  await descend(directory, rest, act);
}

/** `false` if the link is gone or dangles no more. Refuses any other file or link. */
async function removeLink(roots: LogRoots, link: DanglingLogLink): Promise<boolean> {
  const { entry } = link;
  const { containerLogs } = roots;
  const removed = await inRoot(containerLogs, `delete the log link ${entry}`, async (directory) => {
    const facts = await ifThere(directory.facts(entry));
    if (facts === undefined) return false;
    const log = facts.kind === "link" ? await logOfLink(directory, entry, roots) : null;
    if (log === null || !isSameLog(log, link))
      throw refused(entry, "it is not a link to that container's log");
    if (!(await isDangling(directory.pathOf(entry)))) return false;
    await directory.unlink(entry);
    return true;
  });
  return removed ?? false;
}

/** A pod's directory with everything in it: follows no link, enters no mount. */
async function removePodLogs(
  podLogs: LogRoot,
  { entry, uid }: PodLogDirectory,
  signal: AbortSignal,
): Promise<Deleted | null> {
  const named = podUidOfLogDirectory(entry) ?? podUidOfOldLogDirectory(entry);
  if (named !== uid || uid === "")
    throw refused(entry, "it is not the name of that pod's directory");
  const deleted = await inRoot(podLogs, `delete the log directory ${entry}`, async (root) => {
    if ((await ifThere(root.facts(entry))) === undefined) return undefined;
    const its: Deleted = { names: [], bytes: 0n };
    await deleteDirectory({ parent: root, name: entry, path: entry, signal }, its);
    return its;
  });
  return deleted ?? null;
}

/** The kubelet's layout is two levels deep; the rest is for what containers may have written there. */
const DEPTH_MAX = 32;

interface Place {
  readonly parent: Directory;
  readonly name: EntryName;
  /** As text. */
  readonly path: string;
}

/** Ends early once the signal aborts. */
const deleteDirectory = (
  place: Place & { readonly signal: AbortSignal },
  deleted: Deleted,
  depth = 0,
): Promise<void> =>
  attempt(place, deleted, async () => {
    const { parent, name, path, signal } = place;
    if (depth > DEPTH_MAX)
      throw refusedInTree(path, `it is more than ${DEPTH_MAX} directories deep`);
    {
      await using directory = await parent.openBelow(name);
      if (!(await directory.isOnMountOf(parent)))
        throw refusedInTree(path, "something is mounted there");
      for (const entry of await directory.entries()) {
        if (signal.aborted) deleted.isStopped = true;
        if (deleted.isStopped === true) return;
        const below = { parent: directory, name: entry.raw, path: `${path}/${entry.name}`, signal };
        if (entry.kind === "directory") await deleteDirectory(below, deleted, depth + 1);
        else await unlinkEntry(below, deleted);
      }
    }
    if (deleted.isStopped !== true) await parent.removeDirectory(name);
  });

const unlinkEntry = (place: Place, deleted: Deleted): Promise<void> =>
  attempt(place, deleted, async () => {
    const { parent, name, path } = place;
    const facts = await parent.facts(name);
    if (facts.kind === "directory") return;
    await parent.unlink(name);
    deleted.names.push(path);
    deleted.bytes += facts.bytes;
  });

/** Ignores what is gone already. After a failure the rest is still deleted; the first reason is reported. */
async function attempt({ path }: Place, deleted: Deleted, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return;
    deleted.failure ??=
      error instanceof HostError
        ? error
        : hostError("write", error, (why) => `cannot delete ${path} in the pod logs: ${why}`);
  }
}

/** Does nothing if the root is absent. Translates errors into `HostError`. */
async function inRoot<T>(
  root: LogRoot,
  doing: string,
  act: (directory: Directory) => Promise<T>,
): Promise<T | undefined> {
  try {
    await using directory = await root.open();
    return directory === null ? undefined : await act(directory);
  } catch (error) {
    if (error instanceof HostError) throw error;
    // If the directory is gone, there is nothing left to delete.
    if (codeOf(error) === "ENOENT") return undefined;
    throw hostError("write", error, (why) => `cannot ${doing} below ${root.given}: ${why}`);
  }
}

const refused = (what: string, why: string): HostError =>
  new HostError("refused", `refusing to delete ${JSON.stringify(what)}: ${why}`);

const refusedInTree = (path: string, why: string): HostError =>
  new HostError(
    "refused",
    `refusing to delete ${path} in the pod logs: ${why}; check it and delete it by hand`,
  );
