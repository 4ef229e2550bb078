// The lists of images, plan and history: IDs alone, sorted, filtered, uncut, wide and as names.
import { expect, test } from "bun:test";

import { minutes } from "../../../src/model/time.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { observedFor } from "../../support/ledger.ts";
import { startNode } from "./node.ts";

const long = `registry.example/${"very-".repeat(20)}long/application`;
const images = [
  { id: imageIdOf("b"), repoTags: ["r.example/b:1"], sizeBytes: 2_000 },
  { id: imageIdOf("a"), repoTags: ["r.example/a:1", "r.example/a:stable"], sizeBytes: 1_000 },
  { id: imageIdOf("c"), repoTags: [`${long}:1`], sizeBytes: 3_000 },
  { id: imageIdOf("d"), repoTags: [], sizeBytes: 4_000 },
];
const bySize = ["d", "c", "b", "a"].map(imageIdOf);

test("images, plan and history print only IDs, only names or everything, sorted and filtered as asked", async () => {
  await using it = await startNode({ node: { images }, flags: ["--space-accounting=reported"] });
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
  const wide = (await lines("images -o wide")).join("\n");
  for (const part of ["r.example/a:1,r.example/a:stable", imageIdOf("a"), `${long}:1`])
    expect(wide).toContain(part);

  const { candidates } = (await it.json(["plan", "--all-unused"])).images;
  const order = candidates.map(({ id }: { readonly id: string }) => id);
  expect(await lines("plan --all-unused -q")).toEqual(order);
  expect(await lines("plan --all-unused -q --sort size")).toEqual(bySize);
  const table = (await lines("plan --all-unused --sort name -o wide")).join("\n");
  expect(table).toContain(imageIdOf("a"));

  for (const name of ["a", "b"]) await it.crigc("rm", imageIdOf(name));
  const removed = ["a", "b"].map(imageIdOf);
  expect(await lines("history -q --filter kind=image")).toEqual(removed);
  expect(await lines("history -q --kind=image --sort=newest")).toEqual(removed.toReversed());
  expect(await lines("history -o name --filter=image=r.example/b")).toEqual(["r.example/b:1"]);
  const passes = await lines("history -q");
  expect(passes.length).toBeGreaterThanOrEqual(2);
  expect(await lines("history -q --sort newest")).toEqual(passes.toReversed());
});
