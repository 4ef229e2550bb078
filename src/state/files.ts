/** The files of a state directory: which of them crigc may use, how others are put aside, and `ledger.json`, which is replaced whole. */

import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
} from "node:fs";
import { mkdir, open, rename } from "node:fs/promises";
import { dirname, join } from "node:path";

import { count, FieldError, flag, type Of, record, text } from "../model/codec.ts";
import { rowJson } from "../model/exact-json.ts";
import { type Ledger, ledgerCodec } from "../model/ledger.ts";
import { isMap } from "../model/values.ts";
import { isAbsent } from "../node/files.ts";

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

export interface StateOptions extends StatePlaces {
  /** Receives what an operator should hear of, once when it begins and once when it ends. */
  readonly notify: (message: string) => void;
}

export const statePaths = ({ directory, runDirectory }: StatePlaces) => ({
  ledger: join(directory, "ledger.json"),
  history: join(directory, "history.jsonl"),
  olderHistory: join(directory, "history.1.jsonl"),
  /** The ledger that a full or read-only disk did not take. */
  spareLedger: join(runDirectory, "ledger-unwritten.json"),
});

/** `null` if the file does not exist. Throws if it is not a regular file of this user or root. */
export function readOwnFile(path: string, { userId }: StatePlaces): Buffer | null {
  let fd: number;
  try {
    // A pipe would never open otherwise.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (thrown) {
    if (isAbsent(thrown)) return null;
    throw thrown;
  }
  try {
    const found = fstatSync(fd);
    if (!found.isFile()) throw new Error("it is not a regular file");
    if (found.uid !== userId && found.uid !== 0) throw new Error(`it belongs to user ${found.uid}`);
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Throws `FieldError` if this crigc cannot use a file that begins with this document. */
export function checkHead(document: unknown, { machineId }: StatePlaces): void {
  const { version, machineId: writer }: Readonly<Record<string, unknown>> = isMap(document)
    ? document
    : {};
  if (version === undefined) throw new FieldError("crigc did not write it");
  if (version !== VERSION)
    throw new FieldError(
      `its version is ${JSON.stringify(version)}, and this crigc uses ${VERSION}`,
    );
  if (machineId !== "" && writer !== "" && writer !== machineId)
    throw new FieldError("another machine wrote it");
}

/** crigc never deletes or replaces what it has put aside. */
export function moveAside(path: string): void {
  // Somebody else has moved it since it was read.
  if (!exists(path)) return;
  let number = 1;
  while (exists(`${path}.aside-${number}`)) number += 1;
  renameSync(path, `${path}.aside-${number}`);
}

/** Also a link that points nowhere. Throws if it cannot be determined. */
const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

const head = record({
  version: count,
  machineId: text,
  /** Written by a process that ended in order. */
  closed: flag,
  /** The last record of the history that it takes into account. */
  lastRecord: count,
});

export interface LedgerContent extends Omit<Of<typeof head>, "version"> {
  readonly ledger: Ledger;
}

/** `null`: there is none. Throws if it must be moved aside. */
export function readLedger(path: string, places: StatePlaces): LedgerContent | null {
  const content = readOwnFile(path, places);
  if (content === null) return null;
  const document: unknown = JSON.parse(content.toString());
  checkHead(document, places);
  return { ...head.read(document), ledger: ledgerCodec.read(document) };
}

export function ledgerText({ ledger, ...rest }: LedgerContent): string {
  const document = {
    ...Object(head.write({ version: VERSION, ...rest })),
    ...Object(ledgerCodec.write(ledger)),
  };
  return `${rowJson(document)}\n`;
}

/** On the disk once this resolves: a reader finds the old document or this one, also after a power cut. */
export async function writeLedger(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.new`;
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
  {
    await using file = await open(draft, flags | constants.O_NONBLOCK, 0o600);
    await file.writeFile(content);
    await file.sync();
  }
  await rename(draft, path);
  // A rename is on the disk once its directory is.
  await using directory = await open(dirname(path), "r");
  await directory.sync();
}
