/** `ledger.json`: one document that is read whole and replaced whole. */

import { readFileSync, statSync } from "node:fs";
import { constants, mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";

import { count, FieldError, flag, record, text } from "../model/codec.ts";
import { StoreError } from "../model/errors.ts";
import { rowJson } from "../model/exact-json.ts";
import { type Ledger, ledgerCodec } from "../model/ledger.ts";
import { reasonOf } from "../node/files.ts";
import {
  fileFault,
  headFault,
  statePaths,
  type StatePlaces,
  storeError,
  syncDirectory,
  VERSION,
} from "./files.ts";

const head = record({
  version: count,
  machineId: text,
  /** Written by a process that ended in order and had nothing left to write. */
  closed: flag,
  /** The last record of the history that was in its file then. */
  lastRecord: count,
});

export interface LedgerContent {
  readonly ledger: Ledger;
  readonly closed: boolean;
  readonly lastRecord: number;
  readonly machineId: string;
}

/** A ledger of 10,000 images takes 5 MB. */
const BYTES_MAX = 512 * 1024 * 1024;

/** `null`: there is none. Throws `StoreError` `corrupt` for what must be moved aside. */
export function readLedger(
  places: StatePlaces,
  path = statePaths(places).ledger,
): LedgerContent | null {
  const broken = (why: string): StoreError => new StoreError("corrupt", why);
  const content = textOf(path, places, broken);
  if (content === null) return null;
  let document: Record<string, unknown> | null;
  try {
    document = Object(JSON.parse(content));
  } catch {
    throw broken("it is not JSON");
  }
  const fault = headFault(document, places);
  if (fault !== null) throw broken(fault);
  try {
    return { ...head.read(document), ledger: ledgerCodec.read(document) };
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown;
    throw broken([...thrown.path, thrown.message].join(": "));
  }
}

function textOf(
  path: string,
  places: StatePlaces,
  broken: (why: string) => StoreError,
): string | null {
  try {
    const fault = fileFault(path, places);
    if (fault !== null) throw broken(fault);
    const size = statSync(path, { throwIfNoEntry: false })?.size;
    if (size === undefined) return null;
    if (size > BYTES_MAX) throw broken(`it has ${size} bytes`);
    return readFileSync(path, "utf8");
  } catch (thrown) {
    if (thrown instanceof StoreError) throw thrown;
    // A file that cannot be read is of no more use than a broken one.
    throw broken(reasonOf(thrown));
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
