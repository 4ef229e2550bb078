// Reads the operating system's error code from errors of node:fs, and puts it into words.

import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";

import { HostError, messageOf } from "../model/errors.ts";
import type { SocketFiles } from "../model/ports.ts";

/** `ENOENT`, `EACCES`…; `""` without a code. */
export function codeOf(thrown: unknown): string {
  if (!(thrown instanceof Error) || !("code" in thrown)) return "";
  return typeof thrown.code === "string" ? thrown.code : "";
}

/** Advice for a permission error: usually crigc was not run as root. */
export const asRoot = (thrown: unknown): string =>
  ["EACCES", "EPERM"].includes(codeOf(thrown)) ? "; run as root (sudo crigc …)" : "";

const words: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  ENOENT: "it does not exist",
  ENOTDIR: "part of the path is not a directory",
  EISDIR: "it is a directory",
  EEXIST: "it already exists",
  ELOOP: "it is a symbolic link that crigc does not follow, or a loop of links",
  EROFS: "the filesystem is read-only",
  ENOSPC: "the filesystem is full",
  EDQUOT: "the disk quota is exceeded",
  EIO: "the device reports an I/O error",
  EMFILE: "too many files are open",
  ENAMETOOLONG: "the name is too long",
};

/** The reason of a failure, without the path and the system call that node repeats. */
export function reasonOf(thrown: unknown): string {
  const code = codeOf(thrown);
  const known = words[code];
  if (known !== undefined) return known;
  return messageOf(thrown);
}

/** True also for a dangling link, and if it cannot be determined: only what is certainly absent does not exist. */
export function mayExist(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return codeOf(error) !== "ENOTDIR";
  }
}

/** "" if it cannot be read. */
export function procText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Creates parent directories. An existing file keeps its mode. Throws `HostError` `write`. */
export function writeWholeFile(path: string, text: string): void {
  // A dotfile in the same directory: keep directories ignore those, and renaming stays within one filesystem.
  const draft = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}`);
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    const existing = statSync(path, { throwIfNoEntry: false });
    write(draft, text, existing === undefined ? 0o644 : existing.mode & 0o777);
    renameSync(draft, path);
    syncDirectory(dirname(path));
  } catch (error) {
    dropped(draft);
    throw new HostError("write", `cannot write ${path}: ${reasonOf(error)}${asRoot(error)}`, {
      cause: error,
    });
  }
}

/** The draft does not exist if its directory cannot be entered; the write error is what gets reported. */
function dropped(draft: string): void {
  try {
    rmSync(draft, { force: true });
  } catch {}
}

function write(path: string, text: string, mode: number): void {
  const file = openSync(path, "wx", mode);
  try {
    const bytes = new TextEncoder().encode(text);
    for (let offset = 0; offset < bytes.length;)
      offset += writeSync(file, bytes, offset, bytes.length - offset);
    fsyncSync(file);
  } finally {
    closeSync(file);
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

/** Replaces a regular file, or the target of a link, atomically. Throws `HostError` `write`. */
export function writeAnswerFile(path: string, text: string): void {
  const existing = existingFile(path);
  if (existing === undefined) {
    // A missing directory is more often a typo than intended.
    if (!existsSync(dirname(path)))
      throw new HostError(
        "write",
        `cannot write ${path}: directory ${dirname(path)} does not exist`,
      );
    writeWholeFile(path, text);
  } else if (existing.isFile()) {
    writeWholeFile(realpathSync(path), text);
  } else {
    writeInto(path, text);
  }
}

function existingFile(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw failed(path, error);
  }
}

/** Renaming would replace /dev/null, or whatever else this is, by a file. */
function writeInto(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw failed(path, error);
  }
}

const failed = (path: string, error: unknown): HostError =>
  new HostError("write", `cannot write ${path}: ${reasonOf(error)}`, { cause: error });

/** Creates the run directory if absent, and returns the socket's path. Throws `HostError` `write`. */
export function prepare(runDirectory: string, name: string): string {
  try {
    mkdirSync(runDirectory, { recursive: true, mode: 0o755 });
  } catch (error) {
    throw new HostError(
      "write",
      `cannot create the run directory ${runDirectory}: ${reasonOf(error)}; set another with --run-dir`,
      { cause: error },
    );
  }
  return join(runDirectory, name);
}

export const socketFiles: SocketFiles = {
  kindOf: (path) => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return "absent";
    return found.isSocket() ? "socket" : "other";
  },
  identityOf: (path) => {
    const found = lstatSync(path, { throwIfNoEntry: false, bigint: true });
    // A filesystem may give a new file the number of the one before.
    return found === undefined ? null : `${found.dev}:${found.ino}:${found.mtimeNs}`;
  },
  remove: (path) => unlinkSync(path),
  restrict: (path) => chmodSync(path, 0o600),
};

export function sha256OfText(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

/** Reads in pieces: an executable is too large to hold in memory at once. */
export async function sha256OfFile(path: string): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  await pipeline(createReadStream(path), async (chunks: AsyncIterable<Uint8Array>) => {
    for await (const chunk of chunks) hash.update(chunk);
  });
  return hash.digest("hex");
}
