// What the kubelet's pull records protect with --keep-preloaded, and what crigc says of them.

import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { hours } from "../../../src/model/time.ts";
import { type ImageDescription, imageIdOf } from "../../support/fake-runtime/describe.ts";
import { observedFor } from "../../support/ledger.ts";
import { pullIntent, pullRecord } from "../../support/pull-records.ts";
import { type Json, startNode, type TestNode } from "./node.ts";

const image = (name: string, more: Partial<ImageDescription> = {}): ImageDescription => ({
  id: imageIdOf(name),
  repoTags: [`r.example/${name}:1`],
  repoDigests: [`r.example/${name}@${imageIdOf(`digest of ${name}`)}`],
  sizeBytes: 1_000,
  ...more,
});
const [pulled, preloaded] = [imageIdOf("pulled"), imageIdOf("preloaded")];
const flags = [
  "--minimum-image-ttl-duration=0s",
  "--space-accounting=reported",
  "--image-gc-high-threshold=100",
  "--eviction-hard=",
  "--keep-preloaded",
];

const rootOf = (it: TestNode): string => join(it.home, "root");
async function aNode(more: readonly string[] = flags): Promise<TestNode> {
  const it = await startNode({
    node: { images: [image("pulled"), image("preloaded")] },
    flags: more,
  });
  for (const part of ["pulling", "pulled"])
    mkdirSync(join(rootOf(it), "image_manager", part), { recursive: true });
  return it;
}
/** A node whose kubelet pulled one of its two images. */
async function withRecord(): Promise<TestNode> {
  const it = await aNode();
  pullRecord(rootOf(it), pulled);
  return it;
}
const statesOf = async (it: TestNode): Promise<Json> => {
  const { images } = await it.json(["images"]);
  return Object.fromEntries(images.map((one: Json) => [one.id, one.pull]));
};

test("--keep-preloaded removes what the kubelet pulled, keeps the rest and what comes back from an archive, and says how many it alone keeps", async () => {
  await using it = await withRecord();
  expect(await statesOf(it)).toEqual({ [pulled]: "pulled", [preloaded]: "no-record" });
  expect((await it.crigc("images", "-o", "wide")).stdout).toMatch(/preloaded.* no-record /);
  const { stdout } = await it.crigc("gc", "--all-unused");
  expect(it.removedImages()).toEqual([pulled]);
  expect(stdout).toContain("keepPreloaded alone keeps 1 image (1000 B)");
  const explained = (await it.crigc("explain", "r.example/preloaded:1")).stdout;
  expect(explained).toContain("the kubelet is not known to have pulled it (keepPreloaded)");
  expect((await it.json(["plan"])).images.keptByPreloadedAlone).toBe(1);
  expect((await it.crigc("rm", "r.example/preloaded:1")).exitCode).not.toBe(0);
  await using agent = it.start("run", "--image-gc-high-threshold=99");
  expect((await it.firstPass()).keptByPreloadedAlone).toBe(1);
  expect((await it.crigc("status")).stdout).toContain("keepPreloaded alone keeps 1 image");
  await agent.stop();
  // Its record is still there.
  it.runtime.node.addImage(image("pulled", { repoDigests: [] }));
  await it.crigc("gc", "--all-unused");
  expect(it.removedImages()).toEqual([pulled]);
  expect(await statesOf(it)).toMatchObject({ [pulled]: "no-record" });
});

test("a pull under way keeps images of its name for an hour, without any flag", async () => {
  await using it = await aNode(flags.slice(0, -1));
  pullIntent(rootOf(it), "r.example/preloaded:1");
  expect((await it.crigc("plan")).stdout).toContain("being pulled");
  await it.crigc("gc", "--all-unused");
  expect(it.removedImages()).toEqual([pulled]);
  await observedFor(it.stateDir, hours(1));
  await it.crigc("gc", "--all-unused");
  expect(it.removedImages()).toEqual([pulled, preloaded]);
});
