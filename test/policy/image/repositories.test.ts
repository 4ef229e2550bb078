import { describe, expect, test } from "bun:test";

import type { ImageRecord } from "../../../src/model/ledger.ts";
import type { Image } from "../../../src/model/snapshot.ts";
import { instant, watched } from "../../../src/model/time.ts";
import { repositoryPlaces } from "../../../src/policy/image/rank.ts";
import { anImage, aRecord, idOf, NOW } from "../../support/build/values.ts";

const app = (tag: string, record: Partial<ImageRecord>, change: Partial<Image> = {}) => ({
  image: anImage(tag, { repoTags: [`registry.example/app:${tag}`], ...change }),
  record: aRecord(record),
});
const used = (at: bigint): Partial<ImageRecord> => ({
  lastUsedAt: NOW,
  lastUsedWatched: watched(at),
});
const placeOf = (places: ReturnType<typeof repositoryPlaces>, word: string) =>
  places.get(idOf(word))?.place ?? null;

describe("the place in the repository", () => {
  test("the most recently used tag is first, and ties share the better place", () => {
    const places = repositoryPlaces([
      app("a", used(1n)),
      app("b", used(9n)),
      app("c", used(5n)),
      app("d", used(5n)),
      app("e", used(2n)),
    ]);
    expect(["b", "c", "d", "e", "a"].map((word) => placeOf(places, word))).toEqual([1, 2, 2, 4, 5]);
  });

  test("a tag that was just pulled is as recent as its first seen", () => {
    const places = repositoryPlaces([
      app("old", used(5n)),
      app("new", { firstSeenWatched: watched(7n) }),
    ]);
    expect([placeOf(places, "new"), placeOf(places, "old")]).toEqual([1, 2]);
  });

  test("an image with several names has its best place", () => {
    const both = app("both", used(1n), {
      repoTags: ["registry.example/app:both", "registry.example/solo:1"],
    });
    const places = repositoryPlaces([both, app("b", used(9n))]);
    expect(places.get(idOf("both"))).toEqual({ repository: "registry.example/solo", place: 1 });
  });

  test("an image that has the same place in several repositories has it in the first by name, whatever the order of its tags", () => {
    const names = ["registry.example/b:1", "registry.example/a:1", "registry.example/c:1"];
    for (const repoTags of [names, names.toReversed()])
      expect(repositoryPlaces([app("both", used(1n), { repoTags })]).get(idOf("both"))).toEqual({
        repository: "registry.example/a",
        place: 1,
      });
  });

  test("an image with a worse place in another repository keeps its best one", () => {
    const both = app("both", used(1n), {
      repoTags: ["registry.example/solo:1", "registry.example/app:both"],
    });
    const places = repositoryPlaces([both, app("b", used(9n))]);
    expect(places.get(idOf("both"))).toEqual({ repository: "registry.example/solo", place: 1 });
  });

  test("the place depends on observed time, whatever the wall clock says", () => {
    const images = [
      app("a", { lastUsedAt: instant(NOW + 2n), lastUsedWatched: watched(1n) }),
      app("b", { lastUsedAt: instant(NOW + 1n), lastUsedWatched: watched(2n) }),
    ];
    expect(placeOf(repositoryPlaces(images), "b")).toBe(1);
  });

  test("an image without a tag has no place, and a port is not a tag", () => {
    const bare = app(
      "bare",
      {},
      { repoTags: [], repoDigests: [`registry.example/app@sha256:${"a1".repeat(32)}`] },
    );
    const port = app("port", {}, { repoTags: ["host:5000/app"] });
    const places = repositoryPlaces([bare, port]);
    expect([placeOf(places, "bare"), placeOf(places, "port")]).toEqual([null, null]);
  });
});
