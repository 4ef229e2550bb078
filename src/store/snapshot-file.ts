// A node as one JSON document, written by `crigc snapshot` and read by `crigc plan --snapshot`, without loss.

import {
  amount,
  count,
  FieldError,
  nullable,
  type Of,
  oneOf,
  optional,
  record,
  text,
} from "../model/codec.ts";
import { messageOf, StoreError } from "../model/errors.ts";
import { exactJson, parseExactJson } from "../model/exact-json.ts";
import { type Ledger, ledgerCodec } from "../model/ledger.ts";
import { type Snapshot, snapshotFields } from "../model/snapshot.ts";

/** A node with 30,000 containers takes 20 MB. */
export const SNAPSHOT_BYTES_MAX = 128 * 1024 * 1024;

export interface RecordedNode {
  readonly snapshot: Snapshot;
  readonly ledger: Ledger;
  readonly host?: Of<typeof hostCodec>;
}

const hostCodec = record({
  name: text,
  /** Images that came back after their removal, and their sizes; `null`: no history. */
  returnedImages: nullable(count),
  returnedBytes: nullable(amount),
});

const head = { apiVersion: "crigc/v1", kind: "Snapshot" } as const;

/** Fields are only ever added. Clock readings are exact, in `…Ns`; reports round to `…Ms`. */
export const snapshotText = ({ snapshot, ...rest }: RecordedNode): string =>
  `${exactJson(nodeCodec.write({ ...head, ...snapshot, ...rest }), 1)}\n`;

/** Throws `StoreError` `corrupt`, naming the first invalid field. `path` is for messages. */
export function readSnapshotText(content: string, path: string): RecordedNode {
  if (content.length > SNAPSHOT_BYTES_MAX)
    throw broken(path, `it has ${content.length} characters; the maximum is ${SNAPSHOT_BYTES_MAX}`);
  let document: unknown;
  try {
    document = parseExactJson(content);
  } catch (error) {
    throw broken(path, `it is not valid JSON: ${messageOf(error)}`);
  }
  try {
    const { apiVersion: _, kind: __, ledger, host, ...snapshot } = nodeCodec.read(document);
    return { snapshot, ledger, ...(host && { host }) };
  } catch (error) {
    if (!(error instanceof FieldError)) throw error;
    const [field] = error.path;
    throw broken(
      path,
      field === undefined || Object.hasOwn(head, field)
        ? `it is not a document of apiVersion "${head.apiVersion}" and kind "${head.kind}"`
        : `${error.path.join(".")} is invalid: ${error.message}`,
    );
  }
}

const broken = (path: string, what: string): StoreError =>
  new StoreError(
    "corrupt",
    `cannot read the snapshot ${path}: ${what}; write one with crigc snapshot`,
  );

const nodeCodec = record({
  apiVersion: oneOf(head.apiVersion),
  kind: oneOf(head.kind),
  ...snapshotFields,
  ledger: ledgerCodec,
  host: optional(hostCodec),
});
