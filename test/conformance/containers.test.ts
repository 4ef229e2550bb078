// Every recorded decision of the kubelet on containers and sandboxes, through the code that the executable runs.
import { describe, expect, test } from "bun:test";

import { type ContainerVector, effectOf } from "./container-vector.ts";
import { readVectors } from "./read-vectors.ts";

describe("container GC under --compat kubelet", () => {
  const vectors = readVectors<ContainerVector>("container-gc");

  test("has vectors", () => expect(vectors).not.toEqual([]));

  for (const vector of vectors) {
    test(`${vector.name} is what the kubelet did`, async () => {
      expect(await effectOf(vector)).toEqual(vector.expect);
    });
  }
});
