/** Files as the operating system has them: reasons of failures, whole and atomic writes, sums. */

import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

import { HostError, type HostErrorKind, messageOf } from "../model/errors.ts";

/** `ENOENT`, `EACCES`…; `""` without a code. */
export function codeOf(thrown: unknown): string {
  if (!(thrown instanceof Error) || !("code" in thrown)) return "";
  return typeof thrown.code === "string" ? thrown.code : "";
}

/** Nothing is there: the name or a directory on the way to it is missing. */
export const isAbsent = (thrown: unknown): boolean =>
  ["ENOENT", "ENOTDIR"].includes(codeOf(thrown));

/** What to do about a permission error (usually crigc was not run as root) or a full disk; "" otherwise. */
export const adviceOn = (thrown: unknown): string => ADVICE[codeOf(thrown)] ?? "";

const AS_ROOT = "; run as root (sudo crigc …)";
const ADVICE: Readonly<Record<string, string>> = {
  EACCES: AS_ROOT,
  EPERM: AS_ROOT,
  ENOSPC: "; free space there",
};

const words: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  ENOENT: "it does not exist",
  ENOTDIR: "part of the path is not a directory",
  EISDIR: "it is a directory",
  EEXIST: "a file is in its place",
  EBUSY: "it is in use, such as a mount point",
  ENOTEMPTY: "something was written to it meanwhile",
  ELOOP: "it is a symbolic link that crigc does not follow, or a loop of links",
  EROFS: "the filesystem is read-only",
  ENOSPC: "the filesystem is full",
  EDQUOT: "the disk quota is exceeded",
  EIO: "the device reports an I/O error",
  EMFILE: "too many files are open",
  ESPIPE: "it is a pipe; save it to a file first",
  ENAMETOOLONG: "the name is too long",
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was closed",
  EADDRINUSE: "it is in use",
  // Of Bun, which asks "Was there a typo in the url or port?".
  FailedToOpenSocket: "cannot open a connection; check the certificate and key files",
};

/** The reason of a failure, without the path and the system call that node repeats. */
export const reasonOf = (thrown: unknown): string => words[codeOf(thrown)] ?? messageOf(thrown);

/** `what` failed, with the reason. `advice` begins with "; ", and gives way to what a lack of rights or space needs. */
export const hostError = (
  kind: HostErrorKind,
  cause: unknown,
  ...[what, advice = ""]: readonly [what: string, advice?: string]
): HostError =>
  new HostError(kind, `${what}: ${reasonOf(cause)}${adviceOn(cause) || advice}`, { cause });

/** True also for a dangling link, and if it cannot be determined: only what is certainly absent does not exist. */
export function mayExist(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return codeOf(error) !== "ENOTDIR";
  }
}

/** Of a file of /proc, which vanishes with its process and may be hidden; "" if it cannot be read. */
export function procText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Of a directory's entries; none if it cannot be read. */
export function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** A name that nothing in the directory has: keep directories ignore dotfiles. */
export const draftName = (name: string): string => `.${name}.${crypto.randomUUID().slice(-12)}`;

/**
 * Writes a file atomically: a reader finds the old content or the new one, even after a crash. Creates parent
 * directories. An existing file keeps its mode. Throws `HostError` `write`.
 */
export function writeWholeFile(path: string, text: string, modeIfNew = 0o644): void {
  const directory = dirname(path);
  // In the same directory, because renaming stays within one filesystem.
  const draft = join(directory, draftName(basename(path)));
  try {
    mkdirSync(directory, { recursive: true, mode: 0o755 });
    const existing = statSync(path, { throwIfNoEntry: false });
    const mode = existing === undefined ? modeIfNew : existing.mode & 0o777;
    writeFileSync(draft, text, { mode, flag: "wx", flush: true });
    renameSync(draft, path);
    syncDirectory(directory);
  } catch (error) {
    try {
      rmSync(draft, { force: true });
    } catch {
      // Its directory cannot be entered, so there is no draft; the write error is reported.
    }
    throw hostError("write", error, `cannot write ${path}`);
  }
}

function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/**
 * Writes a result to the file given on the command line: replaces a regular file, or the target of a link, atomically.
 * Throws `HostError` `write`.
 */
export function writeAnswerFile(path: string, text: string): void {
  try {
    const existing = statSync(path, { throwIfNoEntry: false });
    // A missing directory is more often a typo than intended.
    if (existing === undefined && !existsSync(dirname(path)))
      throw new Error(`directory ${dirname(path)} does not exist`);
    if (existing?.isFile() === false) {
      // Renaming would replace /dev/null, or whatever else this is, by a file.
      writeFileSync(path, text);
    } else writeWholeFile(existing === undefined ? path : realpathSync(path), text);
  } catch (error) {
    if (error instanceof HostError) throw error;
    throw hostError("write", error, `cannot write ${path}`);
  }
}

/** Creates the control socket's directory if absent, and returns the socket's path. Throws `HostError` `write`. */
export function prepare(runDirectory: string, name: string): string {
  try {
    mkdirSync(runDirectory, { recursive: true, mode: 0o755 });
    return join(runDirectory, name);
  } catch (error) {
    const what = `cannot create the run directory ${runDirectory}`;
    throw hostError("write", error, what, "; set another with --run-dir");
  }
}

export const socketFiles = {
  /** A link to one is none. */
  isThere: (path: string): boolean =>
    lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true,
  /** Tells the file at the path from any other; `null`: none is there. */
  identityOf: (path: string): string | null => {
    const found = lstatSync(path, { throwIfNoEntry: false, bigint: true });
    // A filesystem may give a new file the number of the one before.
    return found === undefined ? null : `${found.dev}:${found.ino}:${found.mtimeNs}`;
  },
  remove: (path: string): void => unlinkSync(path),
  /** Leaves the socket to its owner. */
  restrict: (path: string): void => chmodSync(path, 0o600),
};

/** All bytes of a stream that may have no end. Throws if there are more than `bytesMax`. */
export async function boundedBytes(
  chunks: AsyncIterable<Uint8Array> | readonly Uint8Array[],
  bytesMax: number,
): Promise<Buffer> {
  const read: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) throw new Error(`it is larger than ${bytesMax} bytes`);
    read.push(chunk);
  }
  return Buffer.concat(read);
}

/** Reads in pieces: an executable is too large to hold in memory at once. */
export async function sha256OfFile(path: string): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  for await (const chunk of Bun.file(path).stream()) hash.update(chunk);
  return hash.digest("hex");
}
