/** Whether something stands at a path. */

import { lstatSync } from "node:fs";

import { codeOf } from "./errno.ts";

/** Also a link that leads nowhere, and where it cannot be told: only what is surely absent is. */
export function mayExist(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return codeOf(error) !== "ENOTDIR";
  }
}
