// Locks that the kernel holds and drops when their holder dies: one pass at a time for each runtime, across processes.
// A lock's file is the same for every process of the node.

import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

import { HostError } from "../model/errors.ts";
import { timer } from "./clock.ts";
import { codeOf, hostError, mayExist, reasonOf } from "./files.ts";
import { tryFlock, unlockFlock } from "./libc.ts";

export interface LockPlaces {
  /** `/run`; another one in tests. */
  readonly systemRun: string;
  /** `--run-dir`, used only if the system's own cannot be written. */
  readonly runDirectory: string;
  /** This process's user; lock files and their directory must belong to it or to root. */
  readonly userId: number;
}

export interface LockRequest {
  /** `pass`: held while a pass observes and removes. `agent`: held by `crigc run` as long as it runs. */
  readonly name: "pass" | "agent";
  /** The runtime's endpoint, `unix:///…` or a path. */
  readonly endpoint: string;
  /** Who is asking, shown to others that find the lock held: `crigc gc, process 4711`. */
  readonly holder: string;
  /** 0: try once. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

export interface Lock {
  readonly path: string;
  /** Whether others find it held: its file may be deleted, and then they lock another one. */
  isInPlace(): boolean;
  /** May be called twice. */
  release(): void;
}

export type LockAttempt =
  | { readonly kind: "acquired"; readonly lock: Lock }
  /** `holder`: what the other process wrote into the file, for humans only; "" if it wrote nothing. */
  | { readonly kind: "held"; readonly holder: string; readonly path: string }
  | { readonly kind: "aborted" };

/** Throws `HostError` `refused` if locking fails altogether: then nothing may be removed. */
export async function acquireLock(request: LockRequest, places: LockPlaces): Promise<LockAttempt> {
  const deadlineNs = timer.monotonicNs() + BigInt(Math.ceil(request.waitMs)) * 1_000_000n;
  for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 2, 250)) {
    if (request.signal.aborted) return { kind: "aborted" };
    const attempt = tryLock(request, places);
    if (attempt.kind === "acquired") return attempt;
    const leftMs = Number((deadlineNs - timer.monotonicNs()) / 1_000_000n);
    if (leftMs <= 0) return attempt;
    await timer.sleep(Math.min(pauseMs, leftMs), request.signal);
  }
}

function tryLock(request: LockRequest, places: LockPlaces): LockAttempt {
  const { fd, path } = openLockFile(request, places);
  let isAcquired = false;
  try {
    const result = tryFlock(fd);
    if (result.kind === "failed")
      throw new HostError(
        "refused",
        `cannot lock ${path}: error ${result.errno} of the kernel; check that the filesystem supports locks`,
      );
    if (result.kind === "held") return { kind: "held", holder: readHolder(fd), path };
    // The file was removed between opening and locking it, so others would lock another one.
    if (!isSameFile(fd, path)) return { kind: "held", holder: "", path };
    writeHolder(fd, request.holder);
    isAcquired = true;
    return { kind: "acquired", lock: lockOf(fd, path) };
  } finally {
    if (!isAcquired) closeSync(fd);
  }
}

function lockOf(fd: number, path: string): Lock {
  let open = true;
  return {
    path,
    isInPlace: () => open && isSameFile(fd, path),
    release: () => {
      if (!open) return;
      open = false;
      // The file is not removed, because two processes could then lock two files of the same name.
      unlockFlock(fd);
      closeSync(fd);
    },
  };
}

function isSameFile(fd: number, path: string): boolean {
  const named = statSync(path, { bigint: true, throwIfNoEntry: false });
  const opened = fstatSync(fd, { bigint: true });
  return named !== undefined && named.ino === opened.ino && named.dev === opened.dev;
}

const HOLDER_BYTES_MAX = 200;

function readHolder(fd: number): string {
  try {
    const bytes = Buffer.alloc(HOLDER_BYTES_MAX);
    const text = bytes.toString("utf8", 0, readSync(fd, bytes, 0, HOLDER_BYTES_MAX, 0));
    return text.replace(/\p{C}/gu, " ").trim();
  } catch (error) {
    return `(its name cannot be read: ${reasonOf(error)})`;
  }
}

function writeHolder(fd: number, holder: string): void {
  try {
    ftruncateSync(fd, 0);
    writeSync(fd, `${holder.slice(0, HOLDER_BYTES_MAX - 1)}\n`, 0);
  } catch {
    // The lock is held anyway: a full disk must not stop a pass.
  }
}

/** In the system's run directory; in `--run-dir` only where no lock of this runtime can be elsewhere. */
export function openLockFile(
  about: { readonly name: string; readonly endpoint: string },
  { systemRun, runDirectory, userId }: LockPlaces,
): { readonly fd: number; readonly path: string } {
  const file = `${about.name}-${endpointHash(about.endpoint)}.lock`;
  const shared = join(systemRun, "crigc", "locks", file);
  try {
    return { fd: openIn(shared, userId), path: shared };
  } catch (error) {
    // A directory that was tampered with, or root's lock for this very runtime without access: a lock elsewhere would
    // exclude nobody.
    if (error instanceof HostError || mayExist(shared)) throw refusal(shared, error);
  }
  const own = join(runDirectory, "locks", file);
  try {
    return { fd: openIn(own, userId), path: own };
  } catch (error) {
    throw refusal(own, error);
  }
}

const refusal = (path: string, cause: unknown): HostError =>
  cause instanceof HostError
    ? cause
    : hostError(
        "refused",
        cause,
        (why) =>
          `cannot open the lock ${path}: ${why}; run as the agent's user, or set another directory with --run-dir`,
      );

/** Throws `HostError` if another user may have created the file or its directory, or can put links and files into it. */
function openIn(path: string, userId: number): number {
  const directory = dirname(path);
  // Other users may see that a lock exists, but not read it.
  mkdirSync(dirname(directory), { recursive: true, mode: 0o755 });
  try {
    mkdirSync(directory, { mode: 0o711 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST" && lstatSync(directory, { throwIfNoEntry: false }) === undefined)
      throw error;
  }
  const isOurs = ({ uid }: { readonly uid: number }): boolean => uid === userId || uid === 0;
  const place = lstatSync(directory);
  const wrong = !place.isDirectory()
    ? "it is not a directory"
    : !isOurs(place)
      ? `it belongs to user ${place.uid}`
      : (place.mode & 0o022) !== 0
        ? "other users can write to it"
        : null;
  if (wrong !== null)
    throw new HostError(
      "refused",
      `refusing to use the lock directory ${directory}: ${wrong}; remove it, or set another with --run-dir`,
    );
  // Bun opens files with close-on-exec, so that no child keeps the lock.
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  const found = fstatSync(fd);
  if (found.isFile() && isOurs(found)) return fd;
  closeSync(fd);
  throw new HostError(
    "refused",
    `refusing to use the lock ${path}: it is not a regular file that this user or root owns; remove it`,
  );
}

/** 64 bits of the socket's real path, so that `/var/run/x.sock` and `unix:///run/x.sock` are one runtime. */
export function endpointHash(endpoint: string): string {
  const path = realPath(endpoint.replace(/^unix:(\/\/)?/, ""));
  return new Bun.CryptoHasher("sha256").update(path).digest("hex").slice(0, 16);
}

/** The kernel's limit. */
const MAX_LINKS = 40;

/**
 * Where the path leads, whether anything is there or not: a socket is absent while its runtime restarts, and its name
 * must stay the same meanwhile, through links too.
 */
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
