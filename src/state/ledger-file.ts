/** `ledger.json`: one document that is read whole and replaced whole. */

import { closeSync, readFileSync } from "node:fs";
import { constants, mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";

import { count, FieldError, flag, record, text } from "../model/codec.ts";
import { StoreError } from "../model/errors.ts";
import { rowJson } from "../model/exact-json.ts";
import { type Ledger, ledgerCodec } from "../model/ledger.ts";
import { reasonOf } from "../node/files.ts";
import {
  checkHead,
  openFile,
  statePaths,
  type StatePlaces,
  storeError,
  syncDirectory,
  VERSION,
} from "./files.ts";

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
