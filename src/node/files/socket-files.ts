// The control socket's file and its directory.

import { chmodSync, lstatSync, mkdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";

import { HostError } from "../../model/errors.ts";
import type { SocketFiles } from "../../model/ports.ts";
import { reasonOf } from "./errno.ts";

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
