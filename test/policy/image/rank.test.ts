import { describe, expect, test } from "bun:test";

import type { ImageRecord } from "../../../src/model/ledger.ts";
import { hours, instant, watched } from "../../../src/model/time.ts";
import { compareImages, unusedFor } from "../../../src/policy/image/rank.ts";
import { anImage, aRecord, NOW } from "../../support/build/values.ts";
import { words } from "../judging.ts";

interface Row {
  readonly name: string;
  readonly record: Partial<ImageRecord>;
  readonly sizeBytes?: bigint;
  readonly builtAt?: bigint;
}

function ordered(rows: readonly Row[], compat: "none" | "kubelet" = "none"): readonly string[] {
  const origins = new Map(
    rows.flatMap(({ name, builtAt }) =>
      builtAt === undefined
        ? []
        : [[anImage(name).id, { chain: null, builtAt: instant(builtAt) }] as const],
    ),
  );
  const ranked = rows.map(({ name, record, sizeBytes }) => ({
    image: anImage(name, sizeBytes === undefined ? {} : { sizeBytes }),
    record: aRecord(record),
  }));
  return words(ranked.toSorted(compareImages(compat, origins)));
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
  const life = (seenAt: bigint, usedAt: bigint | null): Partial<ImageRecord> => ({
    ...seen(seenAt),
    ...(usedAt === null ? {} : used(usedAt)),
  });

  test("the image that was unused for longest comes first, whether it was ever used or not", () => {
    const rows = [
      { name: "staged-yesterday", record: life(13n, null) },
      { name: "used-until-today", record: life(1n, 14n) },
      { name: "unused-for-weeks", record: life(1n, 2n) },
      { name: "staged-weeks-ago", record: life(3n, null) },
    ];
    expect(ordered(rows)).toEqual([
      "unused-for-weeks",
      "staged-weeks-ago",
      "staged-yesterday",
      "used-until-today",
    ]);
  });

  test("with compat kubelet, images that were never used come before all that were, these by their last use", () => {
    const rows = [
      { name: "staged-yesterday", record: life(13n, null) },
      { name: "used-until-today", record: life(1n, 14n) },
      { name: "unused-for-weeks", record: life(1n, 2n) },
      { name: "staged-weeks-ago", record: life(3n, null) },
    ];
    expect(ordered(rows, "kubelet")).toEqual([
      "staged-weeks-ago",
      "staged-yesterday",
      "unused-for-weeks",
      "used-until-today",
    ]);
  });

  test("images unused for equally long are ordered by first seen, build date, size and ID", () => {
    const rows = [
      { name: "f", record: life(2n, 5n) },
      { name: "d", record: life(1n, 5n), sizeBytes: 1n },
      { name: "c", record: life(1n, 5n), sizeBytes: 1n },
      { name: "b", record: life(1n, 5n), sizeBytes: 9n, builtAt: 8n },
      { name: "a", record: life(1n, 5n), sizeBytes: 1n, builtAt: 7n },
      { name: "e", record: life(1n, 5n), sizeBytes: 5n },
    ];
    expect(ordered(rows)).toEqual(["a", "b", "e", "c", "d", "f"]);
  });

  test("the earlier build comes first, whatever the order of the list", () => {
    const rows = [
      { name: "old", record: life(1n, null), builtAt: 7n },
      { name: "new", record: life(1n, null), builtAt: 8n },
    ];
    expect(ordered(rows)).toEqual(["old", "new"]);
    expect(ordered(rows.toReversed())).toEqual(["old", "new"]);
  });

  test("an image goes neither before nor after itself, and on one side of any other", () => {
    const [one, other] = ["a", "b"].map((name) => ({ image: anImage(name), record: aRecord() }));
    if (one === undefined || other === undefined) throw new Error("two images are needed");
    for (const compat of ["none", "kubelet"] as const) {
      const compare = compareImages(compat, new Map());
      expect([compare(one, one), compare(one, other), compare(other, one)]).toEqual([0, -1, 1]);
    }
  });

  test("a build date of 1970, as reproducible builds have it, counts as unknown", () => {
    const rows = [
      { name: "b", record: life(1n, null), builtAt: 0n },
      { name: "a", record: life(1n, null), builtAt: 5n },
    ];
    expect(ordered(rows)).toEqual(["a", "b"]);
  });

  test.each(["none", "kubelet"] as const)(
    "with compat %s images are ordered by observed time, whatever the wall clock says",
    (compat) => {
      const rows = [
        { name: "x", record: { lastUsedWatched: watched(1n), lastUsedAt: instant(9n) } },
        { name: "y", record: { lastUsedWatched: watched(2n), lastUsedAt: instant(3n) } },
        { name: "z", record: { ...used(2n), ...seen(1n), firstSeenAt: instant(9n) } },
      ];
      expect(ordered(rows, compat)).toEqual(["x", "y", "z"]);
    },
  );
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
