// Whether an executable in the configuration can be run, and an address listened on.

import { accessSync, constants, lstatSync, statfsSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";

import type { DiskReading } from "../model/ports.ts";
import { hostAndPort } from "../model/values.ts";
import { readingOf } from "./disk.ts";
import { codeOf, reasonOf } from "./files.ts";

/** `null`: it can be run. */
export function executableFault(path: string): string | null {
  try {
    if (!statSync(path).isFile()) return "it is not a regular file";
    accessSync(path, constants.X_OK);
    return null;
  } catch (error) {
    return codeOf(error) === "EACCES" ? "it is not executable" : reasonOf(error);
  }
}

/** Listens on `HOST:PORT` for a moment; `null`: it is free. */
export function addressFault(address: string): Promise<string | null> {
  const server = createServer();
  const { host, port } = hostAndPort(address);
  return new Promise((resolve) => {
    server.once("error", (error) =>
      resolve(codeOf(error) === "EADDRINUSE" ? "it is in use" : reasonOf(error)),
    );
    server.listen({ port, ...(host === "*" ? {} : { host }) }, () =>
      server.close(() => resolve(null)),
    );
  });
}

export type DirectoryFact =
  | ({ readonly kind: "present"; readonly writable: boolean } & Omit<DiskReading, "capacityBytes">)
  /** `creatable`: the nearest existing parent directory is writable. */
  | { readonly kind: "absent"; readonly creatable: boolean }
  | { readonly kind: "failed"; readonly message: string };

export function directoryFact(path: string): DirectoryFact {
  try {
    if (!statSync(path).isDirectory()) return { kind: "failed", message: "it is not a directory" };
    const reading = readingOf(statfsSync(path, { bigint: true }));
    return { kind: "present", writable: isWritable(path), ...reading };
  } catch (error) {
    if (codeOf(error) === "ENOENT")
      return isLink(path)
        ? { kind: "failed", message: "it is a link to a directory that does not exist" }
        : { kind: "absent", creatable: isCreatable(path) };
    return { kind: "failed", message: reasonOf(error) };
  }
}

export function rootDirectoryId(): string {
  const { dev, ino } = statSync("/");
  return `${dev}:${ino}`;
}

/** One that leads nowhere is in the way of a new directory. */
const isLink = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;

function isCreatable(path: string): boolean {
  for (let above = dirname(path); ; above = dirname(above)) {
    const found = statSync(above, { throwIfNoEntry: false });
    if (found !== undefined) return found.isDirectory() && isWritable(above);
    if (isLink(above)) return false;
    if (above === dirname(above)) return false;
  }
}

/** By the kernel, which refuses on a read-only mount even to root. */
function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
