// Where a lock's file is, and how to open it safely: one for each runtime, the same for every process of the node.

import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
} from "node:fs";
import { dirname, join, normalize } from "node:path";

import { HostError } from "../../model/errors.ts";
import { codeOf, reasonOf } from "../files/errno.ts";
import { mayExist } from "../files/may-exist.ts";

export interface LockPlaces {
  /** `/run`; another one in tests. */
  readonly systemRun: string;
  /** `--run-dir`, used only if the system's own cannot be written. */
  readonly runDirectory: string;
  /** This process's user; lock files and their directory must belong to it or to root. */
  readonly userId: number;
}

interface LockFile {
  readonly fd: number;
  readonly path: string;
}

export function openLockFile(
  about: { readonly name: string; readonly endpoint: string },
  places: LockPlaces,
): LockFile {
  const file = `${about.name}-${endpointHash(about.endpoint)}.lock`;
  const shared = join(places.systemRun, "crigc", "locks", file);
  const opened = openIn(shared, places.userId);
  if (opened.kind === "open") return { fd: opened.fd, path: shared };
  // A directory that was tampered with, or root's lock for this very runtime without access: a lock elsewhere would
  // exclude nobody.
  if (opened.error instanceof HostError || mayExist(shared)) throw refusal(shared, opened.error);
  const own = join(places.runDirectory, "locks", file);
  const fallback = openIn(own, places.userId);
  if (fallback.kind === "open") return { fd: fallback.fd, path: own };
  throw refusal(own, fallback.error);
}

function refusal(path: string, cause: unknown): HostError {
  if (cause instanceof HostError) return cause;
  return new HostError(
    "refused",
    `cannot open the lock ${path}: ${reasonOf(cause)}; run as the agent's user, or set another directory with --run-dir`,
    { cause },
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
function realPath(path: string): string {
  let real = "/";
  let links = 0;
  const rest = path.split("/").toReversed();
  for (let part = rest.pop(); part !== undefined; part = rest.pop()) {
    const next = join(real, part);
    const target = part === "" || part === "." || part === ".." ? null : linkTarget(next);
    if (target === null) real = next;
    else {
      links += 1;
      if (links > MAX_LINKS) return normalize(path);
      if (target.startsWith("/")) real = "/";
      rest.push(...target.split("/").toReversed());
    }
  }
  return real;
}

/** `null` if it is not a link, or does not exist. */
function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

type Opening =
  | { readonly kind: "open"; readonly fd: number }
  | { readonly kind: "closed"; readonly error: unknown };

function openIn(path: string, userId: number): Opening {
  try {
    const directory = dirname(path);
    // Other users may see that a lock exists, but not read it.
    mkdirSync(dirname(directory), { recursive: true, mode: 0o755 });
    makeDirectory(directory);
    requireOurs(directory, userId);
    return { kind: "open", fd: openRegular(path, userId) };
  } catch (error) {
    return { kind: "closed", error };
  }
}

function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o711 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST" && lstatSync(path, { throwIfNoEntry: false }) === undefined)
      throw error;
  }
}

/** No other user may have created the directory, or be able to put links and files into it. */
function requireOurs(directory: string, userId: number): void {
  const found = lstatSync(directory);
  const wrong = !found.isDirectory()
    ? "it is not a directory"
    : found.uid !== userId && found.uid !== 0
      ? `it belongs to user ${found.uid}`
      : (found.mode & 0o022) !== 0
        ? "other users can write to it"
        : null;
  if (wrong !== null)
    throw new HostError(
      "refused",
      `refusing to use the lock directory ${directory}: ${wrong}; remove it, or set another with --run-dir`,
    );
}

/** Bun opens files with close-on-exec, so that no child keeps the lock. */
function openRegular(path: string, userId: number): number {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  const found = fstatSync(fd);
  if (found.isFile() && (found.uid === userId || found.uid === 0)) return fd;
  closeSync(fd);
  throw new HostError(
    "refused",
    `refusing to use the lock ${path}: it is not a regular file that this user or root owns; remove it`,
  );
}
