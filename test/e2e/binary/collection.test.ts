// What gc takes and leaves by its flags and rules, what explain says of it, and what the history knows afterwards.
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { image, removable, startNode, type TestNode, usedAndUnused } from "./node.ts";

const flags = removable;
const idsOf = (node: TestNode): readonly string[] => node.runtime.node.images.map(({ id }) => id);
/** By size downwards: the order in which images of the same age go. */
const five = ["a", "b", "c", "d", "e"].map((name, index) =>
  image(name, 9_000_000 - index * 1_000_000),
);

test("gc --images leaves containers alone, and --containers images", async () => {
  const none = "--maximum-dead-containers-per-container=0";
  await using it = await startNode({ node: usedAndUnused, flags: [...flags, none] });
  await it.crigc("gc", "--images", "--all-unused");
  expect(it.changes()).toEqual(["RemoveImage"]);
  it.runtime.node.addImage(image("unused"));
  await it.crigc("gc", "--containers", "--all-unused");
  expect(it.changes()).toEqual(["RemoveImage", "RemoveContainer"]);
});

test("keep rules from the flag, the directory and the file add up", async () => {
  await using it = await startNode({ node: { images: five }, flags });
  writeFileSync(join(it.keepDir, "site.list"), "\ufeff# ours\r\nr.example/b\r\n");
  it.configure({ keep: ["r.example/c:*"] });
  const invalid = ["--keep=r.example/{d,x}", "--keep=r.example/d"];
  expect(await it.crigc("gc", "--all-unused", ...invalid)).toMatchObject({ exitCode: 2 });
  expect(it.removedImages()).toEqual([]);
  const valid = "--keep=r.example/d";
  expect(await it.crigc("gc", "--all-unused", valid)).toMatchObject({ exitCode: 0 });
  expect(idsOf(it)).toEqual(["b", "c", "d"].map(imageIdOf));
});

test("the history shows when and why an image was removed, and what that freed", async () => {
  await using it = await startNode({ node: { images: five }, flags });
  const since = new Date().toISOString();
  for (const count of [4, 3]) await it.crigc("gc", `--max-images=${count}`);
  expect(it.removedImages()).toEqual(["a", "b"].map(imageIdOf));
  const { passes, removals } = await it.json(["history", "--image", "r.example/a"]);
  expect(removals).toMatchObject([
    {
      kind: "image",
      id: imageIdOf("a"),
      names: expect.arrayContaining(["r.example/a:1"]),
      trigger: "count",
      result: "removed",
      reportedBytes: 9_000_000,
    },
  ]);
  expect(removals[0].at >= since).toBe(true);
  expect(passes).toMatchObject([{ passId: removals[0].passId, passKind: "gc", removed: 1 }]);
  const { stdout } = await it.crigc("history", "--image", "r.example/a");
  expect(stdout).toContain("r.example/a:1");
  expect(stdout).not.toContain("r.example/b:1");
});
