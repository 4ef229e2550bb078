// Every recorded decision of the kubelet on containers and sandboxes, through the code that the executable runs.
import { describe, expect, test } from "bun:test";

import { type ContainerVector, effectOf } from "./container-vector.ts";
import { readVectors } from "./read-vectors.ts";

const vectors = readVectors<ContainerVector>("container-gc");

describe("container GC under --compat kubelet", () => {
  test("there are vectors of both operations", () => {
    const operations = new Set(vectors.map((vector) => vector.operation));
    expect([...operations].toSorted()).toEqual(["container-gc", "delete-all-unused-containers"]);
  });

  for (const vector of vectors) {
    test(`${vector.name} is what the kubelet did`, async () => {
      expect(await effectOf(vector)).toEqual(vector.expect);
    });
  }
});

describe("a vector that is changed in one ID", () => {
  const fields = [
    "stopContainers",
    "removeContainers",
    "stopSandboxes",
    "removeSandboxes",
  ] as const;

  test.each(fields)("fails where %s is changed", async (field) => {
    const vector = vectors.find((each) => each.expect[field].length > 0);
    if (vector === undefined) throw new Error(`no vector has ${field}`);
    const [first = "", ...rest] = vector.expect[field];
    const changed = [first.replace(/.$/, (digit) => (digit === "0" ? "1" : "0")), ...rest];
    expect(await effectOf(vector)).not.toEqual({ ...vector.expect, [field]: changed });
    expect(await effectOf(vector)).not.toEqual({ ...vector.expect, [field]: rest });
  });

  test("fails where a container of the node is another one", async () => {
    const vector = vectors.find((each) => each.expect.removeContainers.length > 0);
    if (vector === undefined) throw new Error("no vector removes a container");
    const id = vector.expect.removeContainers[0] ?? "";
    const containers = vector.containers.map((one) =>
      one.id === id ? { ...one, id: `f${id.slice(1)}`, state: "RUNNING" as const } : one,
    );
    expect(await effectOf({ ...vector, containers })).not.toEqual(vector.expect);
  });
});
