import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { StoreError } from "../../src/model/errors.ts";
import { exactJson, parseExactJson } from "../../src/model/exact-json.ts";
import { readSnapshotText, snapshotText } from "../../src/store/snapshot-file.ts";
import { aLedger, aSnapshot } from "./arbitrary.ts";

const [snapshot] = fc.sample(aSnapshot, { numRuns: 1, seed: 7 });
const [ledger] = fc.sample(aLedger, { numRuns: 1, seed: 7 });
if (snapshot === undefined || ledger === undefined) throw new Error("no sample");
const text = snapshotText({
  ledger,
  snapshot: {
    ...snapshot,
    images: [
      {
        id: "sha256:a",
        repoTags: ["a\u202eb\u009b"],
        repoDigests: [],
        sizeBytes: 18_446_744_073_709_551_615n,
        pinned: false,
      },
    ].map((it) => ({ ...it, id: it.id as never })),
  },
});

function refusal(changed: string): StoreError {
  try {
    readSnapshotText(changed, "node.json");
  } catch (error) {
    if (error instanceof StoreError) return error;
    throw error;
  }
  throw new Error("it was read");
}

describe("a recorded node", () => {
  test("is read as written", () => {
    fc.assert(
      fc.property(aSnapshot, aLedger, (seen, remembered) => {
        const node = { snapshot: seen, ledger: remembered };
        expect(readSnapshotText(snapshotText(node), "x")).toEqual(node);
      }),
      { numRuns: 300 },
    );
  });

  test("has exact integers, and characters that mislead a terminal only as escapes", () => {
    expect(text).toContain('"sizeBytes": 18446744073709551615');
    expect(text).toContain("a\\u202eb\\u009b");
  });

  test("may be of a version without pull records and leases", () => {
    const { pulls: _, ...value } = parseExactJson(text) as Record<string, unknown>;
    const {
      pullIntents: __,
      outlivedPulls: ___,
      leases: ____,
      ...before
    } = value["ledger"] as Record<string, unknown>;
    const read = readSnapshotText(exactJson({ ...value, ledger: before }), "x");
    expect(read.snapshot.pulls).toMatchObject({ kind: "failed", message: "the snapshot has none" });
    expect([...read.ledger.pullIntents, ...read.ledger.outlivedPulls]).toEqual([]);
  });

  test("may have fields that a later version added", () => {
    const value: unknown = parseExactJson(text);
    const more = exactJson({ ...(value as object), novelty: { x: 1 } });
    expect(readSnapshotText(more, "x")).toEqual(readSnapshotText(text, "x"));
  });

  test.each([
    ["", "it is not valid JSON"],
    ["[]", 'not a document of apiVersion "crigc/v1"'],
    [text.replace('"Snapshot"', '"Plan"'), 'kind "Snapshot"'],
    [text.replace("18446744073709551615", "18446744073709551616"), "images.0.sizeBytes is invalid"],
    [text.replace('"pinned": false', '"pinned": "no"'), "images.0.pinned is invalid"],
    [text.replace('"pinned"', '"pined"'), "images.0.pinned is invalid"],
    [
      text.replace(/"observedAt": "[^"]*"/, '"observedAt": "soon"'),
      "observedAt is invalid: expected a time",
    ],
    [text.replace('"watchedNs"', '"watched"'), "ledger.watchedNs is invalid"],
    [
      text.replace(
        /"origins": \[[^\]]*\]/,
        `"origins": [${'{"id":"a","chain":null,"builtAt":null},'.repeat(2).slice(0, -1)}]`,
      ),
      "ledger.origins is invalid: duplicate key",
    ],
  ])("that is invalid is refused: %#", (changed, expected) => {
    const error = refusal(changed);
    expect(error.message).toContain(expected);
    expect(error.message).toContain("node.json");
    expect(error.kind).toBe("corrupt");
  });
});
