/** Whether something exists at a path. */

import { lstatSync } from "node:fs";

import { codeOf } from "./errno.ts";

/** True also for a dangling link, and if it cannot be determined: only what is certainly absent does not exist. */
export function mayExist(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return codeOf(error) !== "ENOTDIR";
  }
}
