// Every recorded decision of the kubelet on images, through the pass that the executable runs: order, outcome and events.
import { describe, expect, test } from "bun:test";

import { effectOf, type ImageVector } from "./image-vector.ts";
import { readVectors } from "./read-vectors.ts";

const vectors = readVectors<ImageVector>("image-gc");

describe("image GC under --compat kubelet", () => {
  test("the vectors cover both operations", () => {
    const operations = new Set(vectors.map((vector) => vector.operation));
    expect([...operations].toSorted()).toEqual(["delete-unused-images", "image-gc"]);
  });

  for (const vector of vectors) {
    test(`${vector.name} is what the kubelet did`, async () => {
      expect(await effectOf(vector)).toEqual(vector.expect);
    });
  }
});
