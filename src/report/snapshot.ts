/** Document `Snapshot`: the node as crigc sees it, its plan, configuration and recent history, for a bug report. */

import { exactJson } from "../model/exact-json.ts";
import { type Ledger, ledgerCodec } from "../model/ledger.ts";
import { type Snapshot, snapshotCodec } from "../model/snapshot.ts";
import { document, type JsonObject } from "./document.ts";

export interface SnapshotReport {
  readonly hostName: string;
  readonly snapshot: Snapshot;
  readonly ledger: Ledger;
  /** Other documents, as their commands print them. */
  readonly plan: JsonObject;
  readonly configuration: JsonObject;
  readonly history: JsonObject;
}

/** Clock readings are exact, in `…Ns`; other documents round to `…Ms`. */
export function snapshotText({ hostName, snapshot, ledger, ...documents }: SnapshotReport): string {
  const written = {
    ...document("Snapshot", { hostName }),
    node: snapshotCodec.write(snapshot),
    ledger: ledgerCodec.write(ledger),
    ...documents,
  };
  return `${exactJson(written, 1)}\n`;
}
