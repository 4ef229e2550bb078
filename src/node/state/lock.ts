// One pass at a time for each runtime, across processes: a lock that the kernel holds and drops when its holder dies.

import { closeSync, fstatSync, ftruncateSync, readSync, statSync, writeSync } from "node:fs";

import { HostError } from "../../model/errors.ts";
import { reasonOf } from "../files/errno.ts";
import { tryFlock, unlockFlock } from "../process/libc.ts";
import { timer } from "../time/timer.ts";
import { type LockPlaces, openLockFile } from "./lock-file.ts";

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

/** Throws `HostError` `lock` if locking fails altogether: then nothing may be removed. */
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
  let keep = false;
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
    keep = true;
    return { kind: "acquired", lock: lockOf(fd, path) };
  } finally {
    if (!keep) closeSync(fd);
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

const holderBytesMax = 200;

function readHolder(fd: number): string {
  try {
    const bytes = Buffer.alloc(holderBytesMax);
    const text = bytes.toString("utf8", 0, readSync(fd, bytes, 0, holderBytesMax, 0));
    return text.replace(/\p{C}/gu, " ").trim();
  } catch (error) {
    return `(its name cannot be read: ${reasonOf(error)})`;
  }
}

/** A full disk must not stop a pass, so a failed write is ignored. */
function writeHolder(fd: number, holder: string): void {
  try {
    ftruncateSync(fd, 0);
    writeSync(fd, `${holder.slice(0, holderBytesMax - 1)}\n`, 0);
  } catch {
    // The lock is held anyway.
  }
}
