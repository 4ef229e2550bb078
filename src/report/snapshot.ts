/** Document `Snapshot`: the node as crigc sees it, its plan, configuration and recent history, for a bug report. */

import { exactJson } from "../model/exact-json.ts";
import { type Ledger, ledgerCodec } from "../model/ledger.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { document, type JsonObject, jsonOf } from "./document.ts";

export interface SnapshotReport {
  readonly hostName: string;
  readonly snapshot: Snapshot;
  readonly ledger: Ledger;
  /** Other documents, as their commands print them. */
  readonly plan: JsonObject;
  readonly configuration: JsonObject;
  readonly history: JsonObject;
}

export function snapshotText({ hostName, snapshot, ledger, ...documents }: SnapshotReport): string {
  const written = {
    ...document("Snapshot", { hostName }),
    node: jsonOf({
      ...snapshot,
      imageVolumes: listed(snapshot.imageVolumes),
      resolutions: listed(snapshot.resolutions),
    }),
    ledger: ledgerCodec.write(ledger),
    ...documents,
  };
  return `${exactJson(written, 1)}\n`;
}

const listed = (map: ReadonlyMap<string, object>) =>
  Array.from(map, ([key, value]) => ({ key, ...value }));
