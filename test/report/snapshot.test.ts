// The document for a bug report: whole, exact, and safe to print.

import { expect, test } from "bun:test";

import { snapshotText } from "../../src/report/document.ts";
import { aLedger, anImage, aSnapshot } from "../support/build/values.ts";

const [plan, configuration, history] = [{ kind: "Plan" }, { kind: "Config" }, { kind: "History" }];
const text = snapshotText({
  hostName: "node-1",
  snapshot: aSnapshot({
    images: [
      anImage("a", { repoTags: ["a\u202eb\u009b"], sizeBytes: 18_446_744_073_709_551_615n }),
    ],
  }),
  ledger: aLedger(),
  plan,
  configuration,
  history,
});

test("a snapshot has the node, its records and the documents of plan, configuration and history", () => {
  expect(JSON.parse(text)).toMatchObject({
    apiVersion: "crigc/v1",
    kind: "Snapshot",
    hostName: "node-1",
    node: { images: [{ id: anImage("a").id }] },
    ledger: { images: [] },
    plan,
    configuration,
    history,
  });
});

test("a snapshot has exact integers, and characters that mislead a terminal only as escapes", () => {
  expect(text).toContain('"sizeBytes": 18446744073709551615');
  expect(text).toContain("a\\u202eb\\u009b");
});
