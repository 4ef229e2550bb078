/**
 * The node's two locks, which the kernel holds and drops when their holder dies: on the directory of the runtime's socket
 * and on the state directory. Whoever removes or writes holds both.
 */

import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

import { HostError } from "../model/errors.ts";
import { timer } from "./clock.ts";
import { hostError, procText } from "./files.ts";
import { tryFlock, unlockFlock } from "./libc.ts";

/** Disposing of it releases it, also twice. */
export type Lock = Disposable;

export interface Holder {
  /** What it has locked. */
  readonly directory: string;
  /** `null`: it ended, or runs in another PID namespace. */
  readonly pid: number | null;
  /** `another`: not crigc, or it cannot be told. */
  readonly command: "run" | "gc" | "rm" | "another";
}

export interface LockWait {
  readonly waitMs: number;
  readonly signal: AbortSignal;
  /** Called when the wait begins, and for each new holder. */
  readonly onHeld?: (holder: Holder) => void;
}

/** A holder without a known PID may have been a command that looked; one that lasts is taken for an agent. */
const UNKNOWN_MS = 1_000;

/**
 * Waits for commands; an agent does not end, so it is not waited for. Throws `HostError`: `lock` if it is still held,
 * `stopped` if the signal aborted, `refused` if locking fails altogether: then nothing may be removed.
 */
export async function lockDirectory(directory: string, wait: LockWait): Promise<Lock> {
  const startNs = timer.monotonicNs();
  let unknownMs: number | null = null;
  let told: string | null = null;
  for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 2, 250)) {
    if (wait.signal.aborted)
      throw new HostError("stopped", `interrupted while waiting for the lock of ${directory}`);
    const lock = tryLock(directory);
    if (lock !== null) return lock;
    const holder = holderOf(directory);
    const passedMs = Number((timer.monotonicNs() - startNs) / 1_000_000n);
    unknownMs = holder.pid === null ? (unknownMs ?? passedMs) : null;
    const isUnknown = unknownMs !== null && passedMs - unknownMs >= UNKNOWN_MS;
    const leftMs =
      (holder.pid === null ? Math.max(wait.waitMs, UNKNOWN_MS) : wait.waitMs) - passedMs;
    if (holder.command === "run" || isUnknown || leftMs <= 0) throw heldBy(holder);
    const words = holderWords(holder);
    if (holder.pid !== null && words !== told) wait.onHeld?.(holder);
    told = words;
    await timer.sleep(Math.min(pauseMs, leftMs), wait.signal);
  }
}

const heldBy = (holder: Holder): HostError =>
  new HostError(
    "lock",
    isAgent(holder)
      ? `another agent holds ${holder.directory} (${holderWords(holder)})`
      : `${holderWords(holder)}, holds the node; try again when it has ended`,
  );

/** `null`: the directory cannot be created or opened, so nothing is written there that needs a lock. */
export async function lockState(stateDir: string, wait: LockWait): Promise<Lock | null> {
  const directory = stateDirectory(stateDir);
  return directory === null ? null : lockDirectory(directory, wait);
}

/** The directory of the runtime's socket. */
export const lockRuntime = (endpoint: string, wait: LockWait): Promise<Lock> =>
  lockDirectory(socketDirectory(endpoint), wait);

/** The holder of the lock; `null`: not locked, or not found. Leaves no trace. */
export function lockHolder(directory: string): Holder | null {
  let fd: number;
  try {
    fd = openDirectory(directory);
  } catch {
    return null;
  }
  try {
    if (tryFlock(fd, "shared").kind !== "held") return null;
    const holder = holderOf(directory);
    // Without a PID it may have ended meanwhile.
    return holder.pid === null && tryFlock(fd, "shared").kind !== "held" ? null : holder;
  } finally {
    unlockFlock(fd);
    closeSync(fd);
  }
}

/** Whether it is an agent, which runs commands itself. One that cannot be identified counts as one. */
export const isAgent = ({ command, pid }: Holder): boolean => command === "run" || pid === null;

/** `crigc run, process 4711`. */
export function holderWords({ pid, command, directory }: Holder): string {
  if (pid === null) return `a process of another container that has locked ${directory}`;
  return command === "another"
    ? `process ${pid}, which has locked ${directory}`
    : `crigc ${command}, process ${pid}`;
}

/** Creates a state directory. `null`: it cannot be created or opened, and so not written. */
export function stateDirectory(path: string): string | null {
  try {
    // Even of one that exists, `mkdir` would wait for a disk that hangs.
    if (!existsSync(path)) mkdirSync(path, { recursive: true, mode: 0o700 });
    closeSync(openDirectory(path));
    return path;
  } catch {
    return null;
  }
}

/**
 * The real directory of an endpoint's socket, so that `/var/run/x.sock` and `unix:///run/x.sock` are one, whether the socket
 * exists or not: it is absent while its runtime restarts.
 */
export const socketDirectory = (endpoint: string): string => dirname(realSocket(endpoint));

/** Whether two endpoints are one socket. */
export const isSameSocket = (one: string, other: string): boolean =>
  realSocket(one) === realSocket(other);

const realSocket = (endpoint: string): string => realPath(endpoint.replace(/^unix:(\/\/)?/, ""));

/** `null`: held. Needs only the right to read the directory, so it works through read-only mounts. */
function tryLock(directory: string): Lock | null {
  let fd: number;
  try {
    fd = openDirectory(directory);
  } catch (error) {
    throw hostError("refused", error, `cannot open ${directory} to lock it`, "; run as root");
  }
  const result = tryFlock(fd);
  if (result.kind === "locked") return lockOf(fd);
  closeSync(fd);
  if (result.kind === "held") return null;
  throw new HostError(
    "refused",
    `cannot lock ${directory}: error ${result.errno} of the kernel; check that the filesystem supports locks`,
  );
}

/** Bun opens files with close-on-exec, so that no child keeps the lock. */
const openDirectory = (directory: string): number =>
  openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);

function lockOf(fd: number): Lock {
  let open = true;
  return {
    [Symbol.dispose]: () => {
      if (!open) return;
      open = false;
      unlockFlock(fd);
      closeSync(fd);
    },
  };
}

/** By the kernel's table of locks. Its device numbers differ from those of `stat` on some filesystems; inodes do not. */
function holderOf(directory: string): Holder {
  const unknown = { directory, pid: null, command: "another" } as const;
  const inode = statSync(directory, { bigint: true, throwIfNoEntry: false })?.ino;
  const found = procText("/proc/locks")
    .split("\n")
    .map((line) => /FLOCK\s+\S+\s+WRITE\s+(\d+)\s+[\da-f]+:[\da-f]+:(\d+)\s/.exec(line))
    .find((match) => match?.[2] === String(inode));
  const pid = Number(found?.[1] ?? "0");
  return pid === 0 ? unknown : { directory, pid, command: commandOf(pid) };
}

function commandOf(pid: number): Holder["command"] {
  const words = procText(`/proc/${pid}/cmdline`).split("\0").slice(1);
  return words.find((word) => word === "run" || word === "gc" || word === "rm") ?? "another";
}

/** The kernel's limit. */
const MAX_LINKS = 40;

/** Where the path leads, whether anything is there or not. */
function realPath(path: string, links = 0): string {
  try {
    return realpathSync(path);
  } catch {
    const target = links < MAX_LINKS ? linkTarget(path) : null;
    const parent = dirname(path);
    if (target !== null)
      return realPath(target.startsWith("/") ? target : `${parent}/${target}`, links + 1);
    return parent === path ? path : join(realPath(parent, links), basename(path));
  }
}

/** `null` if it is not a link, or does not exist. */
function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
