/** The files of a state directory: whether crigc may use what is there, how it is put aside, and `ledger.json`, which is replaced whole. */

import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync } from "node:fs";
import { mkdir, open, rename } from "node:fs/promises";
import { dirname, join } from "node:path";

import { count, FieldError, flag, record, text } from "../model/codec.ts";
import { StoreError, type StoreErrorKind } from "../model/errors.ts";
import { rowJson } from "../model/exact-json.ts";
import { type Ledger, ledgerCodec } from "../model/ledger.ts";
import { isMap } from "../model/values.ts";
import { adviceOn, codeOf, isAbsent, mayExist, reasonOf } from "../node/files.ts";

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
  const next = adviceOn(thrown) || `; ${ADVICE[kind]}`;
  return new StoreError(kind, `cannot ${attempt}: ${reasonOf(thrown)}${next}`, { cause: thrown });
}

const KINDS: Readonly<Record<string, StoreErrorKind>> = { ENOSPC: "full", EDQUOT: "full" };

const ADVICE: Readonly<Record<StoreErrorKind, string>> = {
  corrupt: "move it away",
  full: "free space on the disk of the state directory",
  write: "check that the state directory can be read and written",
};

const head = record({
  version: count,
  machineId: text,
  /** Written by a process that ended in order. */
  closed: flag,
  /** The last record of the history that it takes into account. */
  lastRecord: count,
});

export interface LedgerContent {
  readonly ledger: Ledger;
  readonly closed: boolean;
  readonly lastRecord: number;
  readonly machineId: string;
}

/** `null`: there is none. Throws `StoreError` `corrupt` for what must be moved aside. */
export function readLedger(
  places: StatePlaces,
  path = statePaths(places).ledger,
): LedgerContent | null {
  let fd: number | null = null;
  try {
    fd = openFile(path, places);
    if (fd === null) return null;
    const document: unknown = JSON.parse(readFileSync(fd, "utf8"));
    checkHead(document, places);
    return { ...head.read(document), ledger: ledgerCodec.read(document) };
  } catch (thrown) {
    const field = thrown instanceof FieldError ? thrown.path : [];
    throw new StoreError("corrupt", [...field, reasonOf(thrown)].join(": "), { cause: thrown });
  } finally {
    if (fd !== null) closeSync(fd);
  }
}

export function ledgerText({ ledger, ...rest }: LedgerContent): string {
  const document = {
    ...Object(head.write({ version: VERSION, ...rest })),
    ...Object(ledgerCodec.write(ledger)),
  };
  return `${rowJson(document)}\n`;
}

/** On the disk once this resolves: a reader finds the old document or this one, also after a power cut. Throws `StoreError`. */
export async function writeLedger(places: StatePlaces, content: string): Promise<void> {
  const path = statePaths(places).ledger;
  try {
    const directory = dirname(path);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const draft = `${path}.new`;
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
    {
      await using file = await open(draft, flags | constants.O_NONBLOCK, 0o600);
      await file.writeFile(content);
      await file.sync();
    }
    await rename(draft, path);
    await syncDirectory(directory);
  } catch (thrown) {
    throw storeError(`write ${path}`, thrown);
  }
}
