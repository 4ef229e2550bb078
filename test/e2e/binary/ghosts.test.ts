// An image that its removal does not remove: on CRI-O, one of a read-only store.
import { expect, test } from "bun:test";

import { hours } from "../../../src/model/time.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { crio137 } from "../../support/fake-runtime/traits.ts";
import { observedFor } from "../../support/ledger.ts";
import { image, startNode } from "./node.ts";

const flags = ["--minimum-image-ttl-duration=0s"];

test("an image that is still listed after two removals an hour apart is kept, and listed once", async () => {
  const repoDigests = [`r.example/stays@${imageIdOf("digest")}`];
  const stays = image("stays", 1_000_000, { isReadOnly: true, repoDigests });
  const images = [stays, image("other")];
  await using it = await startNode({ node: { images }, traits: crio137, flags });
  const collect = ["gc", "--images", "--all-unused"] as const;
  const { items } = (await it.json(collect, 5)).images;
  expect(items).toContainEqual(
    expect.objectContaining({ id: stays.id, result: expect.objectContaining({ kind: "ghost" }) }),
  );
  await it.json(collect);
  await observedFor(it.stateDir, hours(1));
  await it.json(collect, 5);
  await observedFor(it.stateDir, hours(100));
  await it.json(collect);
  const removed = it.removedImages().filter((id) => id !== imageIdOf("other"));
  expect(removed).toEqual([stays.id, stays.id]);
  expect(it.runtime.node.images).toHaveLength(1);
  const { stdout } = await it.crigc("explain", "r.example/stays:1");
  expect(stdout).toContain("keeps it until its tags, its digests or the runtime change");
}, 30_000);
