/** Document `Snapshot`: a node with its records, and the documents of its plan, configuration and history. */

import { type Ledger, ledgerCodec } from "../model/ledger.ts";
import type { Plan } from "../model/plan.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { document, type JsonObject, jsonOf } from "./document.ts";
import { planDocument } from "./plan.ts";

export interface SnapshotReport {
  readonly hostName: string;
  readonly snapshot: Snapshot;
  readonly ledger: Ledger;
  readonly plan: Plan;
  /** Documents, as their commands print them. */
  readonly configuration: JsonObject;
  readonly history: JsonObject;
}

/** Each field that is as large as the node is made when it is read, so that one at a time takes memory. */
export const snapshotDocument = ({
  hostName,
  snapshot,
  ledger,
  plan,
  configuration,
  history,
}: SnapshotReport) => ({
  ...document("Snapshot", { hostName }),
  get node() {
    return jsonOf({
      ...snapshot,
      imageVolumes: listed(snapshot.imageVolumes),
      resolutions: listed(snapshot.resolutions),
    });
  },
  get ledger() {
    return ledgerCodec.write(ledger);
  },
  get plan() {
    return planDocument({ plan, snapshot });
  },
  configuration,
  history,
});

const listed = (map: ReadonlyMap<string, object>) =>
  Array.from(map, ([key, value]) => ({ key, ...value }));
