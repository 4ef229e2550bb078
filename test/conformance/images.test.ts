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

describe("a vector that is changed in one ID", () => {
  test("fails if an attempt is another image, comes in another order, or is missing", async () => {
    const vector = vectors.find((each) => each.expect.removeAttempts.length > 1);
    if (vector === undefined) throw new Error("no vector removes two images");
    const attempts = vector.expect.removeAttempts;
    const actual = await effectOf(vector);
    const [first = "", ...rest] = attempts;
    const other = first.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
    for (const removeAttempts of [[other, ...rest], attempts.toReversed(), rest]) {
      expect(actual).not.toEqual({ ...vector.expect, removeAttempts });
    }
  });
});
