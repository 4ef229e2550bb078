// How many calls a pass with removals makes: as many as it removes, and nothing that grows with the node.
import { expect, test } from "bun:test";

import {
  aContainer,
  aLedger,
  anImage,
  aSandbox,
  idOf,
  recordsOf,
} from "../support/build/values.ts";
import { fakeEngine, runFakePass } from "../support/fake-engine.ts";

/** Calls by method of a pass that removes every unused image but ten that are in use. */
async function callsAt(count: number): Promise<Readonly<Record<string, number>>> {
  const words = Array.from({ length: count }, (_, index) => `i${index}`);
  const used = words.slice(0, 10);
  const fake = fakeEngine({
    // Nothing is expected of them, or the pass would end because they free nothing.
    images: words.map((word) => anImage(word, { sizeBytes: 0n })),
    sandboxes: [aSandbox("a")],
    containers: used.map((word) => aContainer(word, { imageId: idOf(word) })),
    ledger: aLedger({ images: recordsOf(words) }),
  });
  const { calls, writes } = fake;
  const { pass } = await runFakePass(fake, {
    purpose: { kind: "all-unused" },
    containers: "none",
  });
  expect(pass.images?.items).toHaveLength(count - 10);
  const byMethod = Object.groupBy(calls, (method) => method);
  const { ImageStatus, statfs, podDirectories, ...rest } = Object.fromEntries(
    Object.entries(byMethod).map(([method, made]) => [method, made?.length ?? 0]),
  );
  expect(writes).toHaveLength(count - 10);
  // Once for the layers of each image, once after each removal.
  expect(ImageStatus).toBe(count + count - 10);
  expect(statfs).toBeLessThanOrEqual(2 * (count - 10) + 3);
  expect(podDirectories).toBeLessThanOrEqual(count + 5);
  return rest;
}

test("a pass over 1,000 images makes the same calls as one over 200, except for removals", async () => {
  const small = await callsAt(200);
  expect(small).toMatchObject({ ListImages: 1, ListContainers: 1, ListPodSandbox: 1 });
  expect(await callsAt(1_000)).toEqual(small);
});
