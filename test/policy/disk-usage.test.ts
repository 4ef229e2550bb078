import { describe, expect, test } from "bun:test";

import type { KeptImage } from "../../src/model/plan.ts";
import type { ImageKeepReason, ImageUser } from "../../src/model/reason.ts";
import type { Image } from "../../src/model/snapshot.ts";
import { hours, type Instant, instant } from "../../src/model/time.ts";
import { imageUsage, type ImageUsageFacts } from "../../src/policy/disk-usage.ts";
import { Layers } from "../../src/policy/layers.ts";
import { layersOf } from "../support/build/layers.ts";
import {
  aCandidate,
  aContainer,
  anImage,
  aRecord,
  aSandbox,
  MIB,
  NOW,
} from "../support/build/values.ts";

const NO_LAYERS = new Layers([], new Map());

const kept = (
  image: Image,
  reason: ImageKeepReason = { kind: "pinned" },
  lastUsedAt: Instant | null = null,
): KeptImage => ({ image, record: aRecord({ lastUsedAt }), reason, tried: [] });

/** Of kept images, unless said otherwise, whose bytes are no more than the disk has in use. */
const usageOf = (images: readonly KeptImage[], change: Partial<ImageUsageFacts> = {}) =>
  imageUsage({
    plan: { candidates: [], kept: images },
    snapshot: { containers: [], sandboxes: [] },
    layers: NO_LAYERS,
    inUseBytes: 1n << 60n,
    ...change,
  });

describe("disk usage of images", () => {
  test("is grouped by decision: images kept only by a missing trigger, a block or a change meanwhile count as removable", () => {
    const all = [
      kept(anImage("idle"), { kind: "no-trigger" }),
      kept(anImage("held"), { kind: "blocked", block: "on-hold" }),
      kept(anImage("moved"), { kind: "changed", what: "its tags changed" }),
      kept(anImage("stays")),
    ];
    const usage = usageOf([], { plan: { candidates: [aCandidate("goes")], kept: all } });
    expect(usage.byState.map(({ name, images }) => [name, images])).toEqual([
      ["removable", 4],
      ["pinned", 1],
    ]);
    expect([usage.total, ...usage.byState].map(({ removable }) => removable)).toEqual([4, 4, 0]);
  });

  test("is split into unique and shared bytes", () => {
    const base = anImage("base", { sizeBytes: 20n * MIB });
    const app = anImage("app", { sizeBytes: 30n * MIB });
    const usage = usageOf([kept(base), kept(app)], { layers: layersOf([base, "b"], [app, "b/a"]) });
    const sharedBytes = 20n * MIB;
    expect(usage.byRepository).toMatchObject([
      { name: "registry.example/app", uniqueBytes: 10n * MIB, sharedBytes },
      { name: "registry.example/base", uniqueBytes: 0n, sharedBytes },
    ]);
    // All together share nothing with others.
    expect(usage.total.sharedBytes).toBe(0n);
  });

  test("has the last use of its most recently used image, or none", () => {
    const [early, late] = [instant(NOW - hours(9)), instant(NOW - hours(2))];
    const lastUse = (...uses: readonly (Instant | null)[]) =>
      usageOf(uses.map((at, index) => kept(anImage(`${index}`), undefined, at))).total.lastUsedAt;
    expect(lastUse(early, late, null)).toBe(late);
    expect(lastUse(null, late, early)).toBe(late);
    expect(lastUse(null, null)).toBeNull();
  });
});

test("images by family are named by the image with the fewest layers, and have no name with unknown layers", () => {
  const root = anImage("root", { sizeBytes: 20n * MIB });
  const child = anImage("child", { sizeBytes: 90n * MIB });
  const loaded = anImage("loaded", { sizeBytes: MIB });
  const layers = layersOf([child, "b/one"], [root, "b"]);
  for (const images of [
    [root, child, loaded],
    [child, root, loaded],
  ]) {
    const all = images.map((image) => kept(image));
    expect(usageOf(all, { layers }).byFamily).toMatchObject([
      { name: "registry.example/root:v1", images: 2 },
      { name: null, images: 1 },
    ]);
  }
});

describe("images by namespace", () => {
  const container = aContainer("web", { podNamespace: "shop" });
  const unnamed = aContainer("stray", { podNamespace: "" });
  const sandbox = aSandbox("dns", { namespace: "kube-system" });
  const snapshot = { containers: [container, unnamed], sandboxes: [sandbox] };
  const namespacesOf = (...by: readonly ImageUser[]) =>
    usageOf([kept(anImage("used"), { kind: "in-use", users: by })], { snapshot }).byNamespace.map(
      ({ name }) => name,
    );
  const pod = { name: "web", podName: "pod" };
  const users: Readonly<Record<string, ImageUser>> = {
    container: { kind: "container", id: container.id, ...pod, state: "running" },
    volume: { kind: "image-volume", id: container.id, ...pod },
    unnamed: { kind: "container", id: unnamed.id, ...pod, state: "running" },
    spec: { kind: "pod-spec", uid: sandbox.podUid },
  };

  test.each([
    ["a container", ["container"], ["shop"]],
    ["a volume of a container", ["volume"], ["shop"]],
    ["the specification of a pod", ["spec"], ["kube-system"]],
    ["a container that names no namespace", ["unnamed"], [null]],
    ["several of one namespace", ["container", "volume"], ["shop"]],
  ])("are in the namespace of their user if it is %s", (_, by, namespaces) => {
    expect(namespacesOf(...by.map((one) => users[one]!))).toEqual(namespaces);
  });
});

describe("the rows of a view", () => {
  const named = (name: string | null, sizeMib: bigint): Image =>
    anImage(name ?? "unnamed", {
      repoTags: name === null ? [] : [`registry.example/${name}:v1`],
      sizeBytes: sizeMib * MIB,
    });
  const rows = (images: readonly Image[], layers = NO_LAYERS) => {
    const all = images.map((image) => kept(image));
    const { byRepository } = usageOf(all, { layers });
    return byRepository.map(({ name }) => name?.replace("registry.example/", "") ?? null);
  };

  test("are sorted by unique bytes, then by reported bytes", () => {
    const sizes = [named("small", 1n), named("large", 9n), named("middle", 5n)];
    expect(rows(sizes)).toEqual(["large", "middle", "small"]);
    // Both have the same layers, so neither frees anything alone.
    const [less, more] = [named("less", 10n), named("more", 11n)];
    const layers = layersOf([less, "b"], [more, "b"]);
    expect(rows([less, more], layers)).toEqual(["more", "less"]);
  });

  test("are sorted by name if equal, unnamed ones last, whatever the order of the images", () => {
    const images = [named("a", 1n), named("b", 1n), named(null, 1n), named("c", 1n)];
    const expected = ["a", "b", "c", null];
    expect(rows(images)).toEqual(expected);
    expect(rows(images.toReversed())).toEqual(expected);
  });
});
