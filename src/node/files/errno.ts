// Reads the operating system's error code from errors of node:fs, and puts it into words.

import { messageOf } from "../../model/errors.ts";

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
