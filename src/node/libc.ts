/** Calls of libc that Bun does not offer; the only file that uses bun:ffi. */

import { dlopen, ptr, read } from "bun:ffi";

import { once } from "../model/values.ts";

type FlockResult =
  | { readonly kind: "locked" }
  /** By another process. */
  | { readonly kind: "held" }
  | { readonly kind: "failed"; readonly errno: number };

/** Tries to take an advisory lock on an open file. */
export function tryFlock(fd: number, mode: "exclusive" | "shared" = "exclusive"): FlockResult {
  const { flock } = libc();
  const operation = (mode === "shared" ? lockShared : lockExclusive) | lockNonBlocking;
  if (flock(fd, operation) === 0) return { kind: "locked" };
  const code = errno();
  return code === wouldBlock ? { kind: "held" } : { kind: "failed", errno: code };
}

/** Drops the lock for every copy of the descriptor: a child has one for the moment between fork and exec. */
export function unlockFlock(fd: number): void {
  libc().flock(fd, lockRelease);
}

/** Nanoseconds since the boot, without suspended time. */
export function monotonicNs(): bigint {
  const time = new BigInt64Array(2);
  libc().clock_gettime(clockMonotonic, ptr(time));
  return (time[0] ?? 0n) * 1_000_000_000n + (time[1] ?? 0n);
}

/** Writes out what the filesystem of an open file holds back; may hang with its disk. */
export const syncfs = (fd: number): boolean => libc().syncfs(fd) === 0;

// The same on x86-64 and arm64.
const lockShared = 1;
const lockExclusive = 2;
const lockNonBlocking = 4;
const lockRelease = 8;
const wouldBlock = 11;
const clockMonotonic = 1;

function errno(): number {
  const place = libc().__errno_location();
  return place === null ? 0 : read.i32(place, 0);
}

const signatures = {
  flock: { args: ["i32", "i32"], returns: "i32" },
  clock_gettime: { args: ["i32", "ptr"], returns: "i32" },
  syncfs: { args: ["i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

// Opened on first use, because most commands do not need it. musl's loader answers to every name of libc with itself.
const libc = once(() => dlopen("libc.so.6", signatures).symbols);
