// Every recorded decision of the kubelet on containers and sandboxes, through the code that the executable runs.
import { describe, expect, test } from "bun:test";

import { put, scratch } from "../support/scratch.ts";
import { type ContainerVector, effectOf } from "./container-vector.ts";
import { ownVectors, readVectors } from "./read-vectors.ts";

describe("container GC under --compat kubelet", () => {
  const vectors = readVectors<ContainerVector>("container-gc");

  test("the suite has vectors", () => {
    expect(vectors.length).toBeGreaterThan(0);
  });

  for (const vector of vectors) {
    test(`${vector.name} is what the kubelet did`, async () => {
      expect(await effectOf(vector)).toEqual(vector.expect);
    });
  }
});

describe("a vector that is changed in one ID", () => {
  const vectors = readVectors<ContainerVector>("container-gc", ownVectors);
  const fields = [
    "stopContainers",
    "removeContainers",
    "stopSandboxes",
    "removeSandboxes",
  ] as const;
  type Field = (typeof fields)[number];

  function withSome(field: Field): ContainerVector {
    const vector = vectors.find((each) => each.expect[field].length > 0);
    if (vector === undefined) throw new Error(`no vector has ${field}`);
    return vector;
  }
  function changed(vector: ContainerVector, field: Field): ContainerVector {
    const [first = "", ...rest] = vector.expect[field];
    const other = first.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
    return { ...vector, expect: { ...vector.expect, [field]: [other, ...rest] } };
  }

  test("one of 300 changed vectors fails", () => {
    expect(vectors).toHaveLength(300);
  });

  test.each(fields)("fails where %s is changed", async (field) => {
    const vector = withSome(field);
    const effect = await effectOf(vector);
    expect(effect).toEqual(vector.expect);
    expect(effect).not.toEqual(changed(vector, field).expect);
  });

  test.each(["own", "changed"] as const)("decides on the exit of the suite: %s", async (kind) => {
    const vector = withSome("removeContainers");
    const directory = scratch();
    const line = kind === "own" ? vector : changed(vector, "removeContainers");
    put(directory, "container-gc.jsonl", `${JSON.stringify(line)}\n`);
    const run = Bun.spawn(
      [
        process.execPath,
        "test",
        import.meta.path,
        "--test-name-pattern",
        "is what the kubelet did",
      ],
      { env: { ...process.env, CRIGC_VECTORS: directory }, stdout: "ignore", stderr: "ignore" },
    );
    expect(await run.exited).toBe(kind === "own" ? 0 : 1);
  });
});
