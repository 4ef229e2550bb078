/** The files of a state directory: where they are, whether crigc may use what is there, and how it is put aside. */

import { closeSync, constants, fstatSync, openSync, renameSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";

import { StoreError, type StoreErrorKind } from "../model/errors.ts";
import { isMap } from "../model/values.ts";
import { asRoot, codeOf, isAbsent, mayExist, reasonOf } from "../node/files.ts";

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

/** Why a file cannot be used. */
export interface Fault {
  readonly path: string;
  readonly why: string;
  /** What the user can do about it; "": crigc moves the file aside. */
  readonly advice: string;
}

/** For reading; `null`: there is none. Throws if crigc must not use what has this name. */
export function openFile(path: string, { userId }: StatePlaces): number | null {
  let fd: number;
  try {
    // A pipe would never open otherwise.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (thrown) {
    if (isAbsent(thrown)) return null;
    throw thrown;
  }
  const found = fstatSync(fd);
  if (found.isFile() && (found.uid === userId || found.uid === 0)) return fd;
  closeSync(fd);
  throw new Error(found.isFile() ? `it belongs to user ${found.uid}` : "it is not a regular file");
}

/** Throws if the document that begins a file is none that this crigc can use here. */
export function checkHead(document: unknown, { machineId }: StatePlaces): void {
  const { version, machineId: writer }: Readonly<Record<string, unknown>> = isMap(document)
    ? document
    : {};
  if (version === undefined) throw new Error("crigc did not write it");
  if (version !== VERSION)
    throw new Error(`its version is ${JSON.stringify(version)}, and this crigc uses ${VERSION}`);
  if (machineId !== "" && writer !== "" && writer !== machineId)
    throw new Error("another machine wrote it");
}

/** Returns the new name. crigc never deletes or replaces what it has put aside. Throws `StoreError`. */
export function moveAside({ path, why }: Fault): string {
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
  const next = asRoot(thrown) || `; ${ADVICE[kind]}`;
  return new StoreError(kind, `cannot ${attempt}: ${reasonOf(thrown)}${next}`, { cause: thrown });
}

const KINDS: Readonly<Record<string, StoreErrorKind>> = { ENOSPC: "full", EDQUOT: "full" };

const ADVICE: Readonly<Record<StoreErrorKind, string>> = {
  corrupt: "move it away",
  full: "free space on the disk of the state directory",
  write: "check that the state directory can be read and written",
};
