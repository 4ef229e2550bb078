// The lists of images, plan and history: IDs alone, sorted, filtered and as names.
import { expect, test } from "bun:test";

import { minutes } from "../../../src/model/time.ts";
import {
  type ContainerDescription,
  hexId,
  imageIdOf,
} from "../../support/fake-runtime/describe.ts";
import { observedFor } from "../../support/ledger.ts";
import { image, type Json, removable, startNode } from "./node.ts";

const long = `registry.example/${"very-".repeat(20)}long/application`;
const images = [
  { id: imageIdOf("b"), repoTags: ["r.example/b:1"], sizeBytes: 2_000 },
  { id: imageIdOf("a"), repoTags: ["r.example/a:1", "r.example/a:stable"], sizeBytes: 1_000 },
  { id: imageIdOf("c"), repoTags: [`${long}:1`], sizeBytes: 3_000 },
  { id: imageIdOf("d"), repoTags: [], sizeBytes: 4_000 },
];
const bySize = ["d", "c", "b", "a"].map(imageIdOf);

test("images, plan and history print only IDs, only names or everything, sorted and filtered as asked", async () => {
  await using it = await startNode({ node: { images } });
  await it.crigc("gc", "--images");
  await observedFor(it.stateDir, minutes(3));
  const lines = async (words: string): Promise<readonly string[]> => {
    const { stdout, stderr, exitCode } = await it.crigc(...words.split(" "));
    expect({ words, exitCode, stderr }).toMatchObject({ exitCode: 0 });
    return stdout.trimEnd().split("\n");
  };
  expect(await lines("images -q")).toEqual(bySize);
  expect(await lines("images -o name --sort=name --filter=reference=r.example/*")).toEqual([
    "r.example/a:1",
    "r.example/b:1",
  ]);
  expect(await lines("images -q --filter untagged")).toEqual([imageIdOf("d")]);
  const some = await lines("images -q --filter larger-than=1.5k --filter unused-for=2m");
  expect(some).toEqual(bySize.slice(0, 3));
  expect((await lines("images")).join("\n")).toContain(`${long}:1`);
  const df = await it.json(["df", "--filter=reference=r.example/a", "--sort=name"]);
  expect(df.images.byRepository).toMatchObject([{ name: "r.example/a", images: 1 }]);

  const { candidates } = (await it.json(["plan", "--all-unused"])).images;
  expect((await lines("plan --all-unused -o name")).length).toBe(candidates.length);

  for (const name of ["a", "b"]) await it.crigc("rm", imageIdOf(name));
  expect(await lines("history -o name --kind image")).toEqual(["r.example/a:1", "r.example/b:1"]);
  expect(await lines("history -o name --image=r.example/b")).toEqual(["r.example/b:1"]);
  expect((await lines("history -o name")).length).toBeGreaterThanOrEqual(2);
});

test("an image of a container that a pass removes first has one verdict in plan, images and a recorded df", async () => {
  const dead = (attempt: number, name: string): ContainerDescription => ({
    id: hexId(name),
    sandboxId: "pod",
    name: "web",
    attempt,
    image: `r.example/${name}:1`,
    state: "exited",
    createdAt: `2026-01-0${attempt}T00:00:00Z`,
  });
  const containers = [dead(1, "old"), dead(2, "new")];
  const described = {
    images: [image("old"), image("new")],
    sandboxes: [{ id: "pod" }],
    containers,
  };
  const flags = [...removable, "--image-store-budget=1900k", "--keep=r.example/new"];
  await using node = await startNode({ node: described, flags });
  const { id } = image("old");
  expect((await node.json(["plan"])).images.candidates).toMatchObject([{ id, place: 1 }]);
  const listed = (await node.json(["images"])).images;
  expect(listed.find((one: Json) => one.id === id)).toMatchObject({
    keptBy: null,
    place: 1,
    usedBy: [{ id: hexId("old") }],
  });
  const { byState } = (await node.json(["df"])).images;
  const counts = byState.map((state: Json) => [state.name, state.images]);
  expect(Object.fromEntries(counts)).toEqual({ removable: 1, "in-use": 1 });
  const { rules } = await node.json(["keep", "list"]);
  expect(rules).toMatchObject([{ source: "--keep" }]);
});
