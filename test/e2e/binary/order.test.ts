// The order in which images go, at the executable: what is unused longest first, whatever was staged since, and on a new ledger what was built first.

import { expect, test } from "bun:test";

import { minutes } from "../../../src/model/time.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { startNode, type TestNode } from "./node.ts";
import { observedFor } from "./watched.ts";

const flags = ["--minimum-image-ttl-duration=0s", "--space-accounting=reported"];

const orderOf = async (it: TestNode, ...words: readonly string[]): Promise<readonly string[]> =>
  (await it.crigc("plan", "-o", "name", ...words)).stdout.trimEnd().split("\n");

test("a recently staged image is removed after one that was unused for longer", async () => {
  const used = { id: imageIdOf("used"), repoTags: ["r.example/used:1"], sizeBytes: 1_000 };
  const other = { id: imageIdOf("other"), repoTags: ["r.example/other:1"], sizeBytes: 1_000 };
  const staged = { id: imageIdOf("staged"), repoTags: ["r.example/staged:1"], sizeBytes: 9_000 };
  await using it = await startNode({
    node: {
      images: [used, other],
      sandboxes: [{ id: "pod" }],
      containers: [
        { id: "web", sandboxId: "pod", image: "r.example/used:1" },
        { id: "other", sandboxId: "pod", image: "r.example/other:1" },
      ],
    },
    flags,
  });
  await it.crigc("gc", "--images");
  it.runtime.node.removeContainer("web");
  await observedFor(it.stateDir, minutes(30));
  it.runtime.node.addImage(staged);
  await it.crigc("gc", "--images");
  expect(await orderOf(it, "--all-unused")).toEqual(["r.example/used:1", "r.example/staged:1"]);
});

test("with a new ledger the image built first is removed first, and of equal dates the larger", async () => {
  const image = (name: string, sizeBytes: number, builtAt?: string) => ({
    id: imageIdOf(name),
    repoTags: [`r.example/${name}:1`],
    sizeBytes,
    ...(builtAt !== undefined && { builtAt }),
  });
  await using it = await startNode({
    node: {
      images: [
        image("new", 9_000, "2026-03-01T00:00:00Z"),
        image("small", 1_000, "2025-03-01T00:00:00Z"),
        image("large", 5_000, "2025-03-01T00:00:00Z"),
        image("old", 2_000, "2019-03-01T00:00:00Z"),
      ],
    },
    flags,
  });
  expect(await orderOf(it, "--assume-seen=1h", "--max-images=1")).toEqual(
    ["old", "large", "small", "new"].map((name) => `r.example/${name}:1`),
  );
});
