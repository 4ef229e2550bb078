import { describe, expect, test } from "bun:test";

import type { ImageRecord } from "../../../src/model/ledger.ts";
import type { Image } from "../../../src/model/snapshot.ts";
import { hours, instant, watched } from "../../../src/model/time.ts";
import { compareImages, repositoryPlaces, unusedFor } from "../../../src/policy/image/rank.ts";
import { anImage, aRecord, idOf, NOW } from "../../support/build/values.ts";
import { words } from "../judging.ts";

interface Row {
  readonly name: string;
  readonly record: Partial<ImageRecord>;
  readonly sizeBytes?: bigint;
  readonly builtAt?: bigint;
  readonly orderKey?: number;
}

function ordered(rows: readonly Row[], compat: "none" | "kubelet" = "none"): readonly string[] {
  const origins = new Map(
    rows.flatMap(({ name, builtAt }) =>
      builtAt === undefined
        ? []
        : [[anImage(name).id, { chain: null, builtAt: instant(builtAt) }] as const],
    ),
  );
  const ranked = rows.map(({ name, record, sizeBytes, orderKey }) => ({
    ...(orderKey !== undefined && { orderKey }),
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

  test("the smaller key comes first, then as without keys", () => {
    const rows = [
      { name: "often", record: life(1n, 2n), orderKey: 3 },
      { name: "seldom-late", record: life(1n, 9n), orderKey: 2 },
      { name: "seldom-early", record: life(1n, 8n), orderKey: 2 },
      { name: "once", record: life(1n, 10n), orderKey: 1 },
    ];
    const order = ["once", "seldom-early", "seldom-late", "often"];
    expect(ordered(rows)).toEqual(order);
    expect(ordered(rows.toReversed())).toEqual(order);
  });

  test("the earlier build comes first, whatever the order of the list", () => {
    const rows = [
      { name: "old", record: life(1n, null), builtAt: 7n },
      { name: "new", record: life(1n, null), builtAt: 8n },
    ];
    expect(ordered(rows)).toEqual(["old", "new"]);
    expect(ordered(rows.toReversed())).toEqual(["old", "new"]);
  });

  test("a build date of 1970, as reproducible builds have it, counts as unknown", () => {
    const rows = [
      { name: "b", record: life(1n, null), builtAt: 0n },
      { name: "a", record: life(1n, null), builtAt: 5n },
    ];
    expect(ordered(rows)).toEqual(["a", "b"]);
  });
});

test.each([
  [4, null, 6],
  [4, 1, 6],
  [4, 9, 1],
  [11, null, 0],
])(
  "at hour 10, an image seen at hour %p and used at hour %p is unused for %p hours",
  (seenAt, usedAt, unused) => {
    const record = aRecord({
      firstSeenWatched: watched(hours(seenAt)),
      lastUsedAt: usedAt === null ? null : NOW,
      lastUsedWatched: usedAt === null ? null : watched(hours(usedAt)),
    });
    expect(unusedFor(record, watched(hours(10)))).toBe(hours(unused));
  },
);

describe("the place in a repository", () => {
  const app = (tag: string, record: Partial<ImageRecord>, change: Partial<Image> = {}) => ({
    image: anImage(tag, { repoTags: [`registry.example/app:${tag}`], ...change }),
    record: aRecord(record),
  });
  const ranked = (at: bigint): Partial<ImageRecord> => ({
    lastUsedAt: NOW,
    lastUsedWatched: watched(at),
  });
  const placeOf = (places: ReturnType<typeof repositoryPlaces>, word: string) =>
    places.get(idOf(word))?.place ?? null;

  test.each([
    ["the first repository by name with its best place", ["b:1", "a:1"], "a"],
    ["the repository with its best place", ["app:both", "solo:1"], "solo"],
  ])("an image with several names counts in %s, in any order of its tags", (_, tags, best) => {
    const names = tags.map((name) => `registry.example/${name}`);
    for (const repoTags of [names, names.toReversed()]) {
      const both = app("both", ranked(1n), { repoTags });
      const places = repositoryPlaces([both, app("b", ranked(9n))]);
      expect(places.get(idOf("both"))).toEqual({
        repository: `registry.example/${best}`,
        place: 1,
      });
    }
  });

  test("images that tie share the better place, and the next one counts them all", () => {
    const places = repositoryPlaces([
      app("x", ranked(9n)),
      app("y", ranked(9n)),
      app("z", ranked(1n)),
    ]);
    expect(["x", "y", "z"].map((word) => placeOf(places, word))).toEqual([1, 1, 3]);
  });

  test("an image without a tag has no place, and a port is not a tag", () => {
    const repoDigests = [`registry.example/app@sha256:${"a1".repeat(32)}`];
    const bare = app("bare", {}, { repoTags: [], repoDigests });
    const port = app("port", {}, { repoTags: ["host:5000/app"] });
    const places = repositoryPlaces([bare, port]);
    expect([placeOf(places, "bare"), placeOf(places, "port")]).toEqual([null, null]);
  });
});
