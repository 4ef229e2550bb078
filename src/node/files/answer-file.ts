/** Writes a result to the file given on the command line. Creates no directory, and writes into devices and pipes. */

import { existsSync, realpathSync, type Stats, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { HostError } from "../../model/errors.ts";
import { reasonOf } from "./errno.ts";
import { writeWholeFile } from "./whole-file.ts";

/** Replaces a regular file, or the target of a link, atomically. Throws `HostError` `write`. */
export function writeAnswerFile(path: string, text: string): void {
  const existing = found(path);
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

function found(path: string): Stats | undefined {
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
