import { describe, expect, test } from "bun:test";

import type { ImageRecord } from "../../../src/model/ledger.ts";
import type { Image } from "../../../src/model/snapshot.ts";
import { hours, instant, totalUptime } from "../../../src/model/time.ts";
import { compareImages, repositoryPlaces, unusedFor } from "../../../src/policy/image/rank.ts";
import { anImage, aRecord, idOf, NOW } from "../../support/build/values.ts";
import { words } from "../judging.ts";

test.each([
  ["the earlier build comes first", { old: 7n, new: 8n }, ["old", "new"]],
  [
    "a build date of 1970, as reproducible builds have it, is unknown",
    { b: 0n, a: 5n },
    ["a", "b"],
  ],
])("in the order of removal %s, whatever the order of the list", (_, builtAt, order) => {
  const built = Object.entries(builtAt).map(([name, at]) => ({ name, builtAt: instant(at) }));
  const imageConfigs = new Map(
    built.map(({ name, builtAt: at }) => [idOf(name), { chain: null, builtAt: at }] as const),
  );
  const ranked = built.map(({ name }) => ({ image: anImage(name), record: aRecord() }));
  for (const list of [ranked, ranked.toReversed()])
    expect(words(list.toSorted(compareImages(imageConfigs)))).toEqual(order);
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
      firstSeenUptime: totalUptime(hours(seenAt)),
      lastUsedAt: usedAt === null ? null : NOW,
      lastUsedUptime: usedAt === null ? null : totalUptime(hours(usedAt)),
    });
    expect(unusedFor(record, totalUptime(hours(10)))).toBe(hours(unused));
  },
);

describe("the place in a repository", () => {
  const app = (tag: string, record: Partial<ImageRecord>, change: Partial<Image> = {}) => ({
    image: anImage(tag, { repoTags: [`registry.example/app:${tag}`], ...change }),
    record: aRecord(record),
  });
  const ranked = (at: bigint): Partial<ImageRecord> => ({
    lastUsedAt: NOW,
    lastUsedUptime: totalUptime(at),
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
    const odd = app("odd", {}, { repoTags: [`sha256:${"a1".repeat(32)}`, "<none>:<none>"] });
    const places = repositoryPlaces([bare, port, odd]);
    expect(["bare", "port", "odd"].map((word) => placeOf(places, word))).toEqual([
      null,
      null,
      null,
    ]);
  });
});
