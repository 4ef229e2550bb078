/** The files of a state directory: where they are, whether crigc may use what is there, and how it is put aside. */

import { lstatSync, renameSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";

import { messageOf, StoreError, type StoreErrorKind } from "../model/errors.ts";
import { asRoot, codeOf, mayExist, reasonOf } from "../node/files.ts";

/** Changes when a file gets a form that earlier versions of crigc cannot read. */
export const VERSION = 1;

export interface StatePlaces {
  /** `--state-dir`. */
  readonly directory: string;
  /** `--run-dir`. */
  readonly runDirectory: string;
  /** The owner of the files, beside root. */
  readonly userId: number;
  /** `/etc/machine-id`; "" if there is none. */
  readonly machineId: string;
}

export const statePaths = ({
  directory,
  runDirectory,
}: Pick<StatePlaces, "directory" | "runDirectory">) => ({
  ledger: join(directory, "ledger.json"),
  history: join(directory, "history.jsonl"),
  olderHistory: join(directory, "history.1.jsonl"),
  /** The ledger that a full or read-only disk did not take. */
  spareLedger: join(runDirectory, "ledger-unwritten.json"),
});

/** What a file says of itself. */
export interface FileHead {
  readonly version?: unknown;
  readonly machineId?: unknown;
}

/** Why the content cannot be used here; `null`: it can. */
export function headFault(head: FileHead | null, { machineId }: StatePlaces): string | null {
  if (head?.version === undefined) return "crigc did not write it";
  if (head.version !== VERSION)
    return `its version is ${JSON.stringify(head.version)}, and this crigc uses ${VERSION}`;
  const isOther = machineId !== "" && head.machineId !== "" && head.machineId !== machineId;
  return isOther ? "another machine wrote it" : null;
}

/** Why crigc must not open what has this name: a pipe would never open. `null`: a file of its own, or nothing. */
export function fileFault(path: string, { userId }: StatePlaces): string | null {
  let found: Stats | undefined;
  try {
    found = lstatSync(path, { throwIfNoEntry: false });
  } catch (thrown) {
    throw storeError(`read ${path}`, thrown);
  }
  if (found === undefined) return null;
  if (!found.isFile()) return `it is ${found.isSymbolicLink() ? "a link" : "not a regular file"}`;
  return found.uid === userId || found.uid === 0 ? null : `it belongs to user ${found.uid}`;
}

/** Returns the new name. crigc never deletes or replaces what it has put aside. Throws `StoreError`. */
export function moveAside(path: string, why: string): string {
  try {
    let number = 1;
    while (mayExist(`${path}.aside-${number}`)) number += 1;
    renameSync(path, `${path}.aside-${number}`);
    return `${path}.aside-${number}`;
  } catch (thrown) {
    throw storeError(`use ${path} (${why}) or move it aside`, thrown);
  }
}

/** A rename is on the disk once its directory is. */
export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, "r");
  await directory.sync();
}

/** `attempt`: what failed, such as `write /var/lib/crigc/ledger.json`. */
export function storeError(attempt: string, thrown: unknown): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const kind = KINDS[codeOf(thrown)] ?? "write";
  const why = codeOf(thrown) === "" ? messageOf(thrown) : reasonOf(thrown);
  const next = asRoot(thrown) || `; ${ADVICE[kind]}`;
  return new StoreError(kind, `cannot ${attempt}: ${why}${next}`, { cause: thrown });
}

const KINDS: Readonly<Record<string, StoreErrorKind>> = { ENOSPC: "full", EDQUOT: "full" };

const ADVICE: Readonly<Record<StoreErrorKind, string>> = {
  corrupt: "move it away",
  full: "free space on the disk of the state directory",
  write: "check that the state directory can be read and written",
};
