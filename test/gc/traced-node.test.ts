// What observations say for the trace: whole lists only, each use by the name that a container asked for.

import { expect, test } from "bun:test";

import { detect } from "../../src/gc/prepare.ts";
import { trace } from "../../src/gc/traced-node.ts";
import { chainId, sandboxId } from "../../src/model/ids.ts";
import type { Ledger } from "../../src/model/ledger.ts";
import { minutes, plus } from "../../src/model/time.ts";
import { type TraceSeen, useKey } from "../../src/model/trace.ts";
import { usageOf } from "../../src/policy/image/usage.ts";
import {
  aContainer,
  aLedger,
  anImage,
  aSandbox,
  aSnapshot,
  defaultLimits,
  idOf,
  NOW,
} from "../support/build/values.ts";
import { fakeEngine, type FakeWorld } from "../support/fake-engine.ts";

/** What a detection of this node tells; `null`: it failed, or told nothing. */
async function told(change: Partial<FakeWorld>): Promise<TraceSeen | null> {
  let seen: TraceSeen | null = null;
  const { engine } = fakeEngine(change);
  const traced = { ...engine, trace: (it: TraceSeen) => void (seen = it) };
  await detect(traced, new AbortController().signal).catch(() => null);
  return seen;
}

const used = anImage("used", { repoTags: ["registry.example/used:1"] });
const images = [used, anImage("idle")];
const container = (name: string, imageName: string) =>
  aContainer(name, { imageId: idOf("used"), imageName });

test("a detection tells each image, and its uses by the names that containers asked for, each once", async () => {
  const byDigest = `registry.example/used@${idOf("digest")}`;
  const containers = [
    container("a", "registry.example/used:1"),
    container("b", "registry.example/used:1"),
    container("c", used.id),
    container("d", byDigest),
  ];
  const seen = await told({ images, containers });
  expect(seen?.at).toBe(NOW);
  expect(seen?.isComplete).toBeTrue();
  expect(seen?.node.images).toEqual(images);
  expect([...(seen?.node.keys ?? [])]).toEqual([
    used.id,
    useKey(used.id, "registry.example/used:1"),
    useKey(used.id, ""),
    useKey(used.id, byDigest),
    idOf("idle"),
  ]);
});

test("uses are incomplete while a reference cannot be resolved", async () => {
  const lost = aContainer("a", { imageId: "", imageRef: "", imageName: "registry.example/lost:1" });
  const seen = await told({ images, containers: [lost], fails: new Set(["ImageStatus"]) });
  expect(seen?.isComplete).toBeFalse();
  expect(seen?.node.images).toEqual(images);
});

test("the node is the same object while the lists are the same, with the layers that the ledger has", () => {
  const [base, top] = ["1", "2"].map((digit) => chainId(`sha256:${digit.repeat(64)}`));
  const ledger = aLedger({
    origins: new Map([[used.id, { chain: top ?? null, builtAt: null }]]),
    layers: new Map([[top, { below: null, chain: [base, top] }]]) as Ledger["layers"],
  });
  const sandboxes = [aSandbox("pod", { id: sandboxId("pod") })];
  const snapshot = aSnapshot({ images, sandboxes, containers: [container("a", "")] });
  const seen: TraceSeen[] = [];
  const engine = { limits: () => defaultLimits, trace: (it: TraceSeen) => void seen.push(it) };
  for (const wall of [NOW, plus(NOW, minutes(5))])
    trace(engine, {
      snapshot: { ...snapshot, clocks: { ...snapshot.clocks, wall } },
      usage: usageOf(snapshot),
      ledger,
    });
  expect(seen[1]?.at).toBe(plus(NOW, minutes(5)));
  expect(seen[1]?.node).toBe(seen[0]?.node as TraceSeen["node"]);
  expect(images.map(({ id }) => seen[0]?.node.chainOf(id))).toEqual([[base, top], null] as never);
});
