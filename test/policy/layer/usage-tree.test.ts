import { describe, expect, test } from "bun:test";

import { type ChainId, chainId } from "../../../src/model/ids.ts";
import type { Image } from "../../../src/model/snapshot.ts";
import { imageUsage, usageTree } from "../../../src/policy/layer/disk-usage.ts";
import { LayerForest } from "../../../src/policy/layer/layers.ts";
import { aCandidate, anImage, aRecord, MIB } from "../../support/build/values.ts";

const image = (name: string, sizeMib: bigint): Image =>
  anImage(name, { repoTags: [`registry.example/${name}`], sizeBytes: sizeMib * MIB });

const debian = image("debian:12", 20n);
const web1 = image("web:1", 23n);
const web2 = image("web:2", 25n);
const api = image("api:1", 30n);
const lone = image("lone:1", 7n);
const chart = image("chart:1", 1n);

const chains: readonly (readonly [Image, readonly string[]])[] = [
  [debian, ["debian"]],
  [web1, ["debian", "web-1"]],
  [web2, ["debian", "web-2"]],
  [api, ["debian", "api"]],
  [lone, ["lone"]],
];
const chainOf = (layers: readonly string[]): ChainId => chainId(layers.join("/"));
const forest = new LayerForest(
  chains.map(([{ id, sizeBytes }, layers]) => ({ id, sizeBytes, chain: chainOf(layers) })),
  new Map(
    chains.flatMap(([, layers]) =>
      layers.map((_, at): [ChainId, ChainId | null] => [
        chainOf(layers.slice(0, at + 1)),
        at === 0 ? null : chainOf(layers.slice(0, at)),
      ]),
    ),
  ),
);
const plan = {
  candidates: [lone, web1].map((one) => aCandidate("x", { image: one })),
  kept: [debian, web2, api, chart].map((one) => ({
    image: one,
    record: aRecord(),
    reason: { kind: "pinned" as const },
    tried: [],
  })),
};

const inUseBytes = 1n << 60n;

describe("the tree of image usage", () => {
  const tree = usageTree({ plan, forest, inUseBytes });

  test("has families with the unique bytes of each repository and the bytes that they share", () => {
    const known = tree.filter(({ name }) => name !== null);
    expect(known.map(({ name }) => name)).toEqual([
      "registry.example/debian:12",
      "registry.example/lone:1",
    ]);
    // The configuration that a size counts may be 32 KiB.
    expect(tree[0]).toMatchObject({ bytes: 38n * MIB, sharedBytes: 20n * MIB });
    expect(tree[0]?.repositories).toEqual([
      { name: "registry.example/api", images: 1, removable: 0, uniqueBytes: 10n * MIB },
      { name: "registry.example/web", images: 2, removable: 1, uniqueBytes: 8n * MIB },
      { name: "registry.example/debian", images: 1, removable: 0, uniqueBytes: 0n },
    ]);
  });

  test("has images with unknown layers in an unnamed family that shares nothing", () => {
    expect(tree.find(({ name }) => name === null)).toEqual({
      name: null,
      bytes: MIB,
      sharedBytes: 0n,
      repositories: [{ name: "registry.example/chart", images: 1, removable: 0, uniqueBytes: MIB }],
    });
  });

  test("adds up to what crigc df shows: each repository's own, and all together", () => {
    const usage = imageUsage({
      plan,
      forest,
      inUseBytes,
      snapshot: { containers: [], sandboxes: [] },
    });
    const own = new Map<string | null, bigint>();
    for (const { name, uniqueBytes } of tree.flatMap(({ repositories }) => repositories))
      own.set(name, (own.get(name) ?? 0n) + uniqueBytes);
    expect(new Map(usage.byRepository.map((row) => [row.name, row.unique.estimateBytes]))).toEqual(
      own,
    );
    expect(tree.reduce((sum, { bytes }) => sum + bytes, 0n)).toBe(usage.total.unique.estimateBytes);
  });
});
