import { describe, expect, test } from "bun:test";

import type { ImageRecord } from "../../src/model/ledger.ts";
import { hours, instant, watched } from "../../src/model/time.ts";
import { compareImages, unusedFor } from "../../src/policy/rank.ts";
import { anImage, aRecord, NOW } from "../support/build/values.ts";
import { words } from "./judging.ts";

interface Row {
  readonly name: string;
  readonly record: Partial<ImageRecord>;
  readonly sizeBytes?: bigint;
}

function ordered(rows: readonly Row[], compat: "none" | "kubelet" = "none"): readonly string[] {
  const ranked = rows.map(({ name, record, sizeBytes }) => ({
    image: anImage(name, sizeBytes === undefined ? {} : { sizeBytes }),
    record: aRecord(record),
  }));
  return words(ranked.toSorted(compareImages(compat)));
}

const used = (at: bigint): Partial<ImageRecord> => ({
  lastUsedWatched: watched(at),
  lastUsedAt: instant(at),
});
const seen = (at: bigint): Partial<ImageRecord> => ({
  firstSeenWatched: watched(at),
  firstSeenAt: instant(at),
});

describe("the order of removal", () => {
  test("what was never used comes before what was, that by its last use", () => {
    expect(
      ordered([
        { name: "late", record: used(9n) },
        { name: "never", record: {} },
        { name: "early", record: used(3n) },
      ]),
    ).toEqual(["never", "early", "late"]);
  });

  test("then what was seen first, then the larger, then by ID", () => {
    expect(
      ordered([
        { name: "d", record: seen(2n), sizeBytes: 1n },
        { name: "c", record: seen(2n), sizeBytes: 1n },
        { name: "b", record: seen(2n), sizeBytes: 5n },
        { name: "a", record: seen(1n), sizeBytes: 1n },
      ]),
    ).toEqual(["a", "b", "c", "d"]);
  });

  test("the watched clock orders, which does not jump; the kubelet has the wall clock alone", () => {
    const rows = [
      { name: "x", record: { lastUsedWatched: watched(1n), lastUsedAt: instant(9n) } },
      { name: "y", record: { lastUsedWatched: watched(2n), lastUsedAt: instant(3n) } },
    ];
    expect(ordered(rows)).toEqual(["x", "y"]);
    expect(ordered(rows, "kubelet")).toEqual(["y", "x"]);
  });
});

test("unused time counts from the later of first seen and last used", () => {
  const at = watched(hours(10));
  expect(unusedFor(aRecord({ firstSeenWatched: watched(hours(4)) }), at)).toBe(hours(6));
  expect(
    unusedFor(
      aRecord({
        firstSeenWatched: watched(hours(4)),
        lastUsedAt: NOW,
        lastUsedWatched: watched(hours(1)),
      }),
      at,
    ),
  ).toBe(hours(6));
  expect(
    unusedFor(
      aRecord({
        firstSeenWatched: watched(hours(4)),
        lastUsedAt: NOW,
        lastUsedWatched: watched(hours(9)),
      }),
      at,
    ),
  ).toBe(hours(1));
  expect(unusedFor(aRecord({ firstSeenWatched: watched(hours(11)) }), at)).toBe(hours(0));
});
