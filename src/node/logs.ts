/**
 * The two log directories, resolved once: their listings, and the deletion of logs, pods' directories and dangling links.
 * What is below a directory is reached through its handle, without following links, so renames cannot redirect it.
 */

import { constants, type Dirent } from "node:fs";
import {
  type FileHandle,
  lstat,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rmdir,
  stat,
  unlink,
} from "node:fs/promises";
import { join, resolve } from "node:path";

import { HostError } from "../model/errors.ts";
import {
  type ContainerLog,
  containerOfLogPath,
  isSameLog,
  logPathOf,
  podUidOfLogDirectory,
  podUidOfOldLogDirectory,
} from "../model/ids.ts";
import type { LogRemover } from "../model/ports.ts";
import type { Container, DanglingLogLink, LogReading, PodLogDirectory } from "../model/snapshot.ts";
import { compared } from "../model/values.ts";
import { mountIdIn } from "./disk.ts";
import { codeOf, hostError } from "./files.ts";

interface LogPaths {
  readonly podLogsDir: string;
  /** `--container-logs-dir`: links to logs. */
  readonly containerLogsDir: string;
}

interface LogRoots {
  readonly podLogs: LogRoot;
  readonly containerLogs: LogRoot;
}

const rootsOf = ({ podLogsDir, containerLogsDir }: LogPaths): LogRoots => ({
  podLogs: new LogRoot(podLogsDir),
  containerLogs: new LogRoot(containerLogsDir),
});

/**
 * One listing for each directory, without opening files or walking trees. Answers `null` without a pod log directory;
 * kind `failed` if one of the two cannot be read.
 */
export function logReader(paths: LogPaths): () => Promise<LogReading | null> {
  const roots = rootsOf(paths);
  return async () => {
    try {
      await using directory = await roots.podLogs.open();
      if (directory === null) return null;
      return {
        kind: "read",
        podLogsDirectory: roots.podLogs.given,
        ...sorted(await directory.entries()),
        danglingLinks: await danglingLinks(roots),
      };
    } catch (thrown) {
      const failure = hostError("read", thrown, "cannot list the log directories");
      return { kind: "failed", message: (thrown instanceof HostError ? thrown : failure).message };
    }
  };
}

/** Pods' directories, and everything else: files, links, `lost+found`, directories of other programs. */
function sorted(entries: readonly Dirent[]) {
  const podLogs: PodLogDirectory[] = [];
  const strays: string[] = [];
  for (const entry of entries) {
    const uid = entry.isDirectory() ? podUidOfLogDirectory(entry.name) : null;
    if (uid === null) strays.push(entry.name);
    else podLogs.push({ entry: entry.name, uid });
  }
  return { podLogs, strays };
}

async function danglingLinks(roots: LogRoots): Promise<readonly DanglingLogLink[]> {
  await using directory = await roots.containerLogs.open();
  const found: DanglingLogLink[] = [];
  if (directory === null) return found;
  for (const entry of await directory.entries()) {
    const { name } = entry;
    // Almost no link dangles, and one look is all that it costs.
    if (!entry.isSymbolicLink() || !(await isDangling(directory, name))) continue;
    const log = await logOfLink(directory, name, roots);
    if (log !== null) found.push({ entry: name, ...log });
  }
  return found;
}

/** A target that cannot be looked at may exist. */
const isDangling = (directory: Directory, link: string): Promise<boolean> =>
  stat(directory.pathOf(link)).then(
    () => false,
    (error: unknown) => codeOf(error) === "ENOENT",
  );

/** The container to whose log the link points; `null` for anything else. */
async function logOfLink(
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

interface Deleted {
  /** Without directories. */
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
  const [pod, name, file] = path;
  await inRoot(podLogs, `delete the log ${path.join("/")}`, async (root) => {
    await using above = await root.openBelow(pod);
    await using directory = await above.openBelow(name);
    for (const entry of await directory.entries()) {
      const isOfLog = entry.name === file || entry.name.startsWith(`${file}.`);
      if (isOfLog && !entry.isDirectory()) await unlinkEntry(directory, entry.name, deleted);
    }
  });
  return deleted;
}

/** `false` if the link is gone or dangles no more. Refuses any other file or link. */
async function removeLink(roots: LogRoots, link: DanglingLogLink): Promise<boolean> {
  const { entry } = link;
  const doing = `delete the log link ${entry}`;
  const removed = await inRoot(roots.containerLogs, doing, async (directory) => {
    await lstat(directory.pathOf(entry));
    const log = await logOfLink(directory, entry, roots);
    if (log === null || !isSameLog(log, link))
      throw refused(entry, "it is not a link to that container's log");
    if (!(await isDangling(directory, entry))) return false;
    await unlink(directory.pathOf(entry));
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
  return inRoot(podLogs, `delete the log directory ${entry}`, async (root) => {
    await lstat(root.pathOf(entry));
    const deleted: Deleted = { names: [], bytes: 0n };
    await deleteDirectory({ parent: root, name: entry, signal }, deleted);
    return deleted;
  });
}

/** The kubelet's layout is two levels deep; the rest is for what containers may have written there. */
const DEPTH_MAX = 32;

interface Place {
  readonly parent: Directory;
  readonly name: string;
  readonly signal: AbortSignal;
}

/** Ends early once the signal aborts. */
const deleteDirectory = (
  { parent, name, signal }: Place,
  deleted: Deleted,
  depth = 0,
): Promise<void> =>
  attempt(parent.shown(name), deleted, async () => {
    if (depth > DEPTH_MAX)
      throw refused(parent.shown(name), `it is more than ${DEPTH_MAX} directories deep`);
    {
      await using directory = await parent.openBelow(name);
      for (const entry of await directory.entries()) {
        if (signal.aborted) deleted.isStopped = true;
        if (deleted.isStopped === true) return;
        const below = { parent: directory, name: entry.name, signal };
        if (entry.isDirectory()) await deleteDirectory(below, deleted, depth + 1);
        else await unlinkEntry(directory, entry.name, deleted);
      }
    }
    if (deleted.isStopped !== true) await rmdir(parent.pathOf(name));
  });

const unlinkEntry = (directory: Directory, name: string, deleted: Deleted): Promise<void> =>
  attempt(directory.shown(name), deleted, async () => {
    const path = directory.pathOf(name);
    const facts = await lstat(path, { bigint: true });
    await unlink(path);
    deleted.names.push(name);
    // While another name keeps the blocks, nothing is freed.
    if (facts.nlink === 1n) deleted.bytes += facts.blocks * 512n;
  });

/** Ignores what is gone already. After a failure the rest is still deleted; the first reason is reported. */
async function attempt(what: string, deleted: Deleted, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return;
    deleted.failure ??=
      error instanceof HostError
        ? error
        : hostError("write", error, `cannot delete ${what} in the pod logs`);
  }
}

/** `null` if the root, or what `act` looks for, is absent. Translates errors into `HostError`. */
async function inRoot<T>(
  root: LogRoot,
  doing: string,
  act: (directory: Directory) => Promise<T>,
): Promise<T | null> {
  try {
    await using directory = await root.open();
    return directory && (await act(directory));
  } catch (error) {
    if (error instanceof HostError) throw error;
    if (codeOf(error) === "ENOENT") return null;
    throw hostError("write", error, `cannot ${doing} below ${root.given}`);
  }
}

const refused = (what: string, why: string): HostError =>
  new HostError(
    "refused",
    `refusing to delete ${what} in the log directories: ${why}; check it and delete it by hand`,
  );

const ADVICE = "; make it a readable directory, or set --pod-logs-dir or --container-logs-dir";

class LogRoot {
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
      return await Directory.open(this.#resolved, "");
    } catch (error) {
      if (codeOf(error) === "ENOENT") return null;
      throw hostError("read", error, `cannot open the log directory ${this.given}`, ADVICE);
    }
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

const FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

class Directory {
  readonly #handle: FileHandle;
  /** Below the root, for messages. */
  readonly #shown: string;

  private constructor(handle: FileHandle, shown: string) {
    this.#handle = handle;
    this.#shown = shown;
  }

  /** `path` itself must not be a link (`ENOTDIR`, `ELOOP`); resolve it first if it may be one. */
  static async open(path: string, shown: string): Promise<Directory> {
    return new Directory(await open(path, FLAGS), shown);
  }

  /** Refuses one on which something is mounted: a bind mount even has the same device. */
  async openBelow(name: string): Promise<Directory> {
    const directory = await Directory.open(this.pathOf(name), this.shown(name));
    const mount = await directory.#mountId();
    if (mount !== undefined && mount === (await this.#mountId())) return directory;
    await directory.#handle.close();
    throw refused(this.shown(name), "something is mounted there");
  }

  /** By name. */
  async entries(): Promise<readonly Dirent[]> {
    const found = await readdir(this.#path, { withFileTypes: true });
    return found.toSorted((one, other) => compared(one.name, other.name));
  }

  /** For calls of node:fs; the last component may be a link, which the call then follows or not. */
  pathOf(name: string): string {
    const plain = name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name);
    if (!plain) throw new RangeError(`${JSON.stringify(name)} is not the name of an entry`);
    return `${this.#path}/${name}`;
  }

  shown(name: string): string {
    return join(this.#shown, name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  get #path(): string {
    return `/proc/self/fd/${this.#handle.fd}`;
  }

  async #mountId(): Promise<string | undefined> {
    return mountIdIn(await readFile(`/proc/self/fdinfo/${this.#handle.fd}`, "utf8"));
  }
}
