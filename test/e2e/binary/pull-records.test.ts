// What the kubelet's pull records protect with --keep-preloaded, and what crigc says of them.

import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import { hours } from "../../../src/model/time.ts";
import { type ImageDescription, imageIdOf } from "../../support/fake-runtime/describe.ts";
import { observedFor } from "../../support/ledger.ts";
import { pullFile, pullIntent, pullRecord } from "../../support/pull-records.ts";
import { put } from "../../support/scratch.ts";
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

const aNode = (more: readonly string[] = []): Promise<TestNode> =>
  startNode({
    node: { images: [image("pulled"), image("preloaded")] },
    flags: [...flags, ...more],
  });

const rootOf = (it: TestNode): string => join(it.home, "root");
const emptyRecords = (it: TestNode): void => {
  for (const part of ["pulling", "pulled"])
    mkdirSync(join(rootOf(it), "image_manager", part), { recursive: true });
};
/** A node whose kubelet pulled one of its two images. */
async function withRecord(more: readonly string[] = []): Promise<TestNode> {
  const it = await aNode(more);
  emptyRecords(it);
  pullRecord(rootOf(it), pulled);
  return it;
}
/** An observation that removes no image. */
const observe = (it: TestNode) => it.crigc("gc", "--containers");
const statesOf = async (it: TestNode): Promise<Json> => {
  const { images } = await it.json(["images", "-o", "json"]);
  return Object.fromEntries(images.map((one: Json) => [one.id, one.pull]));
};

describe("--keep-preloaded", () => {
  test("removes what the kubelet pulled, keeps the rest, and says how many it alone keeps", async () => {
    await using it = await withRecord();
    expect(await statesOf(it)).toEqual({ [pulled]: "pulled", [preloaded]: "no-record" });
    expect((await it.crigc("images", "-o", "wide")).stdout).toMatch(/preloaded.* no-record /);
    const { stdout } = await it.crigc("gc", "--all-unused");
    expect(it.removedImages()).toEqual([pulled]);
    expect(stdout).toContain("keepPreloaded alone keeps 1 image (1000 B)");
    const explained = (await it.crigc("explain", "r.example/preloaded:1")).stdout;
    expect(explained).toContain("the kubelet is not known to have pulled it (keepPreloaded)");
    const plan = await it.json(["plan", "-o", "json"]);
    expect(plan.images.keptByPreloadedAlone).toBe(1);
    const { exitCode } = await it.crigc("rm", "r.example/preloaded:1");
    expect(exitCode).not.toBe(0);
    expect(it.removedImages()).toEqual([pulled]);
  });

  test.each([
    ["without the directory", () => {}, "does not exist", "unknown"],
    ["with an empty directory", emptyRecords, "keepPreloaded alone keeps 2 images", "no-record"],
    [
      "with a record of 0 bytes",
      (it: TestNode) => {
        emptyRecords(it);
        put(rootOf(it), `image_manager/pulled/${pullFile(pulled)}`);
      },
      "keepPreloaded alone keeps 2 images",
      "unknown",
    ],
  ])("keeps every image %s, and says so", async (_, prepare, words, state) => {
    await using it = await aNode();
    prepare(it);
    const { stdout } = await it.crigc("gc", "--all-unused");
    expect(stdout).toContain("keepPreloaded alone keeps 2 images");
    expect(stdout).toContain(words);
    expect(it.removedImages()).toEqual([]);
    expect(await statesOf(it)).toMatchObject({ [pulled]: state });
  });

  test.each([[[]], [["--compat=kubelet"]]])(
    "goes by what an image was when first seen, in later processes too (%j)",
    async (more) => {
      await using it = await withRecord(more);
      await observe(it);
      rmSync(join(rootOf(it), "image_manager/pulled", pullFile(pulled)));
      pullRecord(rootOf(it), preloaded);
      await it.crigc("gc", "--all-unused");
      expect(it.removedImages()).toEqual([pulled]);
    },
  );

  test("keeps an image that comes back from an archive although its record is still there", async () => {
    await using it = await withRecord();
    await it.crigc("gc", "--all-unused");
    it.runtime.node.addImage(image("pulled", { repoDigests: [] }));
    await it.crigc("gc", "--all-unused");
    expect(it.removedImages()).toEqual([pulled]);
    expect(await statesOf(it)).toMatchObject({ [pulled]: "no-record" });
  });

  test("removes an image whose record names its digest, as CRI-O had them", async () => {
    await using it = await aNode();
    emptyRecords(it);
    pullRecord(rootOf(it), image("pulled").repoDigests?.[0] ?? "");
    await it.crigc("gc", "--all-unused");
    expect(it.removedImages()).toEqual([pulled]);
  });

  test("shows in the status of the agent how many images it alone keeps", async () => {
    await using it = await withRecord(["--image-gc-high-threshold=99"]);
    await using agent = it.start("run");
    await agent.untilSaid(/image GC/i);
    const status = await it.json(["status", "-o", "json"]);
    expect(status.keptByPreloadedAlone).toBe(1);
    expect((await it.crigc("status")).stdout).toContain("keepPreloaded alone keeps 1 image");
  });
});

describe("a pull under way", () => {
  const intent = "r.example/preloaded:1";

  test("keeps images of its name for an hour, without any flag", async () => {
    await using it = await startNode({
      node: { images: [image("preloaded"), image("other")] },
      flags: flags.slice(0, -1),
    });
    emptyRecords(it);
    pullIntent(rootOf(it), intent);
    const { stdout } = await it.crigc("plan");
    expect(stdout).toContain("being pulled");
    await it.crigc("gc", "--all-unused");
    expect(it.removedImages()).toEqual([imageIdOf("other")]);
    await observedFor(it.stateDir, hours(1));
    await it.crigc("gc", "--all-unused");
    expect(it.removedImages()).toEqual([imageIdOf("other"), preloaded]);
  });

  test("leaves a pulled image once its intent became a record", async () => {
    await using it = await aNode();
    emptyRecords(it);
    pullIntent(rootOf(it), intent);
    await it.crigc("gc", "--all-unused");
    pullRecord(rootOf(it), preloaded);
    rmSync(join(rootOf(it), "image_manager/pulling", pullFile(intent)));
    await it.crigc("gc", "--all-unused");
    expect(it.removedImages()).toEqual([preloaded]);
  });
});

test("audit lists stale records and images that the kubelet would ask the registry for, doctor counts them", async () => {
  await using it = await withRecord();
  pullRecord(rootOf(it), imageIdOf("gone"), { credentialMapping: { "r.example/gone": {} } });
  await observe(it);
  pullRecord(rootOf(it), preloaded, { credentialMapping: { "r.example/preloaded": {} } });
  const { findings } = await it.json(["audit", "-o", "json"]);
  const ours = findings.filter(({ code }: Json) => code.includes("pull"));
  expect(ours).toMatchObject([
    { code: "pull-needs-credentials", image: { id: preloaded }, because: "loaded" },
    { code: "stale-pull-record", imageRef: imageIdOf("gone"), names: ["r.example/gone"] },
  ]);
  expect(ours[0].advice).toContain("imagePullCredentialsVerificationPolicy: NeverVerify");
  const { checks } = await it.json(["doctor", "-o", "json"]);
  const check = checks.find(({ name }: Json) => name === "pull-records");
  expect(check).toMatchObject({ result: "warning" });
  expect(check.message).toContain("1 record of images that are not on the node");
  const file = join(it.home, "node.json");
  put(it.home, "node.json", (await it.crigc("snapshot")).stdout);
  const offline = await it.json(["audit", "--snapshot", file, "-o", "json"]);
  expect(offline.findings.filter(({ code }: Json) => code.includes("pull"))).toEqual(ours);
});
