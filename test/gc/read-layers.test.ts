// Layers are read beside the passes: once for an image, and no removal under pressure waits for them.

import { describe, expect, test } from "bun:test";

import { detect, learnLayers } from "../../src/gc/prepare.ts";
import { chainId, type ImageId } from "../../src/model/ids.ts";
import { kubeletPolicy } from "../../src/policy/kubelet/kubelet.ts";
import { aRelease } from "../sim/node.ts";
import { aThreshold, MINUTE, SECOND, Simulation, withThresholds } from "../sim/simulation.ts";
import { anImage } from "../support/build/values.ts";
import { type FakeEngine, fakeEngine } from "../support/fake-engine.ts";

const { signal } = new AbortController();

const images = Array.from({ length: 40 }, (_, at) => anImage(`app-${at}`));
const statuses = ({ calls }: FakeEngine): number =>
  calls.filter((method) => method === "ImageStatus").length;
/** A look: the node is observed, then layers are read. */
const looks = async (node: FakeEngine, times: number): Promise<void> => {
  for (let time = 0; time < times; time += 1) {
    await detect(node.engine, signal);
    await learnLayers(node.engine, signal);
  }
};

describe("the reading of layers", () => {
  test("reads each image once, however often the node is observed, and then only new images", async () => {
    const node = fakeEngine({ images: images.slice(0, 10) });
    await looks(node, 3);
    expect(statuses(node)).toBe(10);
    node.world.images.push(anImage("new"));
    await looks(node, 2);
    expect(statuses(node)).toBe(11);
  });

  test("reads none under the kubelet's rules", async () => {
    const node = fakeEngine({ images: [...images], policy: kubeletPolicy(null) });
    await looks(node, 2);
    expect(statuses(node)).toBe(0);
  });

  test("retries a failed call at the next look", async () => {
    const node = fakeEngine({ images: [...images], fails: new Set(["ImageStatus"]) });
    await looks(node, 1);
    expect(statuses(node)).toBe(40);
    node.world.fails.clear();
    await looks(node, 1);
    expect(statuses(node)).toBe(80);
    expect(node.engine.memory.current().imageConfigs.size).toBe(40);
  });

  test("is not blocked by an image whose status always fails", async () => {
    const bad = new Set(images.slice(0, 20).map(({ id }) => id as string));
    const node = fakeEngine({
      images: [...images],
      before: (method, about) => {
        if (method === "ImageStatus" && bad.has(about)) throw new Error("it cannot be read");
      },
    });
    await looks(node, 2);
    const { imageConfigs } = node.engine.memory.current();
    expect(imageConfigs.size).toBe(20);
    expect([...imageConfigs.keys()].some((id) => bad.has(id))).toBe(false);
  });
});

const limits = withThresholds(aThreshold("imagefs.available", 10));

test("pressure finds the layers of every image that is old enough to go", async () => {
  const sim = new Simulation({
    weather: { limits },
    refit: (engine, { node }) => {
      const imageConfig = async (id: ImageId) => ({
        chain: node.images.get(id)?.release.layers.map((layer) => chainId(layer.id)) ?? null,
        builtAt: null,
      });
      const runtime = { ...engine.observe.runtime, imageConfig };
      return { ...engine, observe: { ...engine.observe, runtime } };
    },
  });
  sim.start();
  // The last detection before the pressure was at the fifth minute.
  await sim.run(6 * MINUTE);
  const base = aRelease("base", 900);
  sim.node.pull(base);
  for (let at = 0; at < 30; at += 1) {
    const own = aRelease(`version${at}`, 100);
    sim.node.pull({ ...own, layers: [...base.layers, ...own.layers] });
  }
  await sim.run(3 * MINUTE);
  sim.fill(9.05);
  await sim.run(12 * SECOND);
  const [first] = sim.passes("pressure");
  expect(first?.images).toMatchObject({ end: "target-reached" });
  expect(first?.images?.items).toBeArrayOfSize(10);
});

describe("a runtime that does not answer verbose status", () => {
  test.each([
    // Each list of the cache asks again, and waits for two minutes.
    ["the cache calls it", "image-gc", 10 * MINUTE + SECOND, null],
    // Over the high threshold, not yet under pressure: the pass of the tenth minute begins and asks.
    ["an image pass calls it", "image-cache", 9 * MINUTE + 55 * SECOND, 14],
  ] as const)(
    "does not delay a removal under pressure while %s",
    async (_, off, ms, percentFree) => {
      const sim = new Simulation({
        weather: { limits, layersHang: true },
        periods: { [off]: 1_000 * 60 * MINUTE },
      });
      for (let at = 0; at < 60; at += 1) sim.node.pull(aRelease(`image${at}`, 1_000));
      sim.start();
      await sim.run(ms);
      if (percentFree !== null) {
        sim.fill(percentFree);
        await sim.run(8 * SECOND);
      }
      expect(sim.record.removals).toEqual([]);
      sim.fill(5);
      const from = sim.clock.monotonicNs();
      await sim.run(30 * SECOND);
      expect(Number((sim.record.removals[0]?.atNs ?? 0n) - from) / 1e9).toBeWithin(0, 15);
    },
  );
});
