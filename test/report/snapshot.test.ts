// The document for a bug report: whole, exact, and safe to print.

import { expect, test } from "bun:test";

import { jsonPieces } from "../../src/report/document.ts";
import { snapshotDocument } from "../../src/report/snapshot.ts";
import { aLedger, anImage, aSnapshot } from "../support/build/values.ts";

const [configuration, history] = [{ kind: "Config" }, { kind: "History" }];
const snapshot = snapshotDocument({
  hostName: "node-1",
  snapshot: aSnapshot({
    images: [
      anImage("a", { repoTags: ["a\u202eb\u009b"], sizeBytes: 18_446_744_073_709_551_615n }),
    ],
  }),
  ledger: aLedger(),
  plan: { images: null, containers: null },
  configuration,
  history,
});
const text = [...jsonPieces(snapshot)].join("");

test("a snapshot has the node, its records and the documents of plan, configuration and history", () => {
  expect(JSON.parse(text)).toMatchObject({
    apiVersion: "crigc/v1",
    kind: "Snapshot",
    hostName: "node-1",
    node: { images: [{ id: anImage("a").id }] },
    ledger: { images: [] },
    plan: { kind: "Plan", images: null },
    configuration,
    history,
  });
});

test("a snapshot has exact integers, and characters that mislead a terminal only as escapes", () => {
  expect(text).toContain('"sizeBytes": 18446744073709551615');
  expect(text).toContain("a\\u202eb\\u009b");
});
