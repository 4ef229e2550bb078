// What a removal costs and what it relies on: its own calls, lists at most a second old, and the runtime's word on the image.
import { describe, expect, test } from "bun:test";

import { hours } from "../../../src/model/time.ts";
import { type ImageDescription, imageIdOf } from "../../support/fake-runtime/describe.ts";
import { crio137 } from "../../support/fake-runtime/traits.ts";
import { observedFor } from "../../support/ledger.ts";
import {
  image as plainImage,
  type Json,
  numberedImages,
  startNode,
  type TestNode,
} from "./node.ts";

const flags = ["--minimum-image-ttl-duration=0s"];
const image = (name: string, change: Partial<ImageDescription> = {}): ImageDescription =>
  plainImage(name, 1_000_000, {
    repoDigests: [`r.example/${name}@${imageIdOf(`digest of ${name}`)}`],
    ...change,
  });
const resultOf = (report: Json, name: string): Json =>
  report.images.items.find((item: Json) => item.id === imageIdOf(name))?.result;
const removedNames = (it: TestNode): readonly string[] => it.removedImages();

test("a pass asks for each image twice, for its layers and after its removal, and lists the node once a second", async () => {
  await using it = await startNode({ node: { images: numberedImages(600) }, flags });
  const report = await it.json(["gc", "--images", "--all-unused"]);
  expect(report.images.items).toHaveLength(600);
  expect(it.runtime.callsOf("RemoveImage")).toHaveLength(600);
  expect(it.runtime.callsOf("ImageStatus")).toHaveLength(2 * 600);
  for (const list of ["ListImages", "ListContainers", "ListPodSandbox"])
    expect(it.runtime.callsOf(list).length).toBeLessThanOrEqual(2 + report.tookMs / 750);
});

describe("an image of CRI-O that its removal by ID does not remove", () => {
  test.each([
    ["one of a read-only store", { isReadOnly: true }],
    ["an OCI artifact", { isArtifact: true }],
  ])(
    "is kept after two removals an hour apart, and listed once: %s",
    async (_, change) => {
      const images = [image("stays", change), image("other")];
      await using it = await startNode({ node: { images }, traits: crio137, flags });
      const collect = ["gc", "--images", "--all-unused"] as const;
      const first = await it.json(collect, 5);
      expect(resultOf(first, "stays")).toMatchObject({ kind: "ghost" });
      await it.json(collect);
      await observedFor(it.stateDir, hours(1));
      await it.json(collect, 5);
      await observedFor(it.stateDir, hours(100));
      await it.json(collect);
      const idOfIt = imageIdOf("stays");
      expect(removedNames(it).filter((name) => name !== imageIdOf("other"))).toEqual([
        idOfIt,
        idOfIt,
      ]);
      expect(it.runtime.node.images).toHaveLength(1);
      const { stdout } = await it.crigc("explain", "r.example/stays:1");
      expect(stdout).toContain("keeps it until its tags, its digests or the runtime change");
    },
    30_000,
  );
});

test("an image whose removal a crash of the runtime cut off is tried again at once, but only once", async () => {
  await using it = await startNode({ node: { images: [image("deadly")] }, flags });
  const lift = it.runtime.fail("RemoveImage", { kind: "crash" });
  const collect = ["gc", "--images", "--all-unused"] as const;
  // It may or may not be back by the time crigc looks what came of the removal.
  for (const _ of [1, 2]) expect([3, 5]).toContain((await it.crigc(...collect)).exitCode);
  await it.json(collect);
  expect(removedNames(it)).toHaveLength(2);
  lift();
  await observedFor(it.stateDir, hours(1));
  expect(resultOf(await it.json(collect), "deadly")).toMatchObject({ kind: "removed" });
}, 30_000);
