// What gc takes and leaves by its flags and rules, what explain says of it, and what the history knows afterwards.
import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { hours, minutes } from "../../../src/model/time.ts";
import {
  type ImageDescription,
  imageIdOf,
  type NodeDescription,
} from "../../support/fake-runtime/describe.ts";
import { type Json, startNode, type TestNode } from "./node.ts";
import { observedFor, passesApart } from "./watched.ts";

const image = (
  name: string,
  sizeBytes: number,
  more: Partial<ImageDescription> = {},
): ImageDescription => ({
  id: imageIdOf(name),
  repoTags: [`r.example/${name}:1`],
  repoDigests: [`r.example/${name}@${imageIdOf(`digest of ${name}`)}`],
  sizeBytes,
  ...more,
});
const flags = ["--minimum-image-ttl-duration=0s", "--space-accounting=reported"];
const idsOf = (node: TestNode): readonly string[] => node.runtime.node.images.map(({ id }) => id);
/** By size downwards: the order in which images of the same age go. */
const five = ["a", "b", "c", "d", "e"].map((name, index) =>
  image(name, 9_000_000 - index * 1_000_000),
);

const used: NodeDescription = {
  images: [image("unused", 2_000_000), image("used", 1_000_000)],
  sandboxes: [{ id: "pod" }],
  containers: [
    { id: "web", sandboxId: "pod", image: "r.example/used:1" },
    { id: "old", sandboxId: "pod", image: "r.example/used:1", state: "exited" },
    {
      id: "older",
      sandboxId: "pod",
      image: "r.example/used:1",
      state: "exited",
      createdAt: "2025-01-01T00:00:00Z",
    },
  ],
};

describe("gc", () => {
  test("--images leaves containers alone, and --containers images", async () => {
    const none = "--maximum-dead-containers-per-container=0";
    await using it = await startNode({ node: used, flags: [...flags, none] });
    await it.crigc("gc", "--images", "--all-unused");
    expect(it.changes()).toEqual(["RemoveImage"]);
    await using other = await startNode({ node: used, flags: [...flags, none] });
    await other.crigc("gc", "--containers", "--all-unused");
    expect(other.changes()).toEqual(["RemoveContainer", "RemoveContainer"]);
    expect(idsOf(other)).toHaveLength(2);
  });

  test("removes dead containers first, so that the same pass can remove their images", async () => {
    const containers = [
      {
        id: "one",
        sandboxId: "pod",
        image: "r.example/unused:1",
        name: "job",
        state: "exited" as const,
      },
    ];
    const sandboxes = [{ id: "pod", state: "not-ready" as const }];
    const node = { ...used, sandboxes, containers };
    await using it = await startNode({
      node,
      flags: [...flags, "--collect-foreign", "--dead-pod-ttl=0s"],
    });
    await it.crigc("gc", "--all-unused");
    await passesApart(it.stateDir);
    await it.crigc("gc", "--all-unused");
    const calls = it.changes();
    expect(calls).toContain("RemoveContainer");
    expect(calls.indexOf("RemoveContainer")).toBeLessThan(calls.lastIndexOf("RemoveImage"));
    expect(idsOf(it)).toEqual([]);
  });

  test("--max-images removes down to the number, the largest of equal age first", async () => {
    await using it = await startNode({ node: { images: five }, flags });
    expect(await it.crigc("gc", "--max-images=3")).toMatchObject({ exitCode: 0 });
    expect(it.removedImages()).toEqual([imageIdOf("a"), imageIdOf("b")]);
  });

  test("--image-store-budget frees down to the budget", async () => {
    await using it = await startNode({ node: { images: five }, flags });
    expect(await it.crigc("gc", "--image-store-budget=20M")).toMatchObject({ exitCode: 0 });
    expect(it.removedImages()).toEqual([imageIdOf("a"), imageIdOf("b")]);
  });

  test("--max-removals-per-pass leaves the rest to the next pass", async () => {
    await using it = await startNode({ node: { images: five }, flags });
    const words = ["--max-images=1", "--max-removals-per-pass=2"];
    const first = await it.crigc("gc", ...words);
    expect(it.removedImages()).toHaveLength(2);
    expect(first.stdout).toContain("maximum removals per pass reached");
    await it.crigc("gc", ...words);
    expect(idsOf(it)).toEqual([imageIdOf("e")]);
  });

  test("with --compat kubelet, plan, explain, a dry run and gc decide as a kubelet that has just started", async () => {
    await using it = await startNode({ node: { images: five } });
    await it.crigc("gc");
    await observedFor(it.stateDir, hours(3));
    const [{ firstSeenAt }] = (await it.json(["images"])).images;
    it.configure({ compat: "kubelet" });
    expect((await it.json(["images"])).images).toMatchObject(five.map(() => ({ firstSeenAt })));
    const recorded = await it.json(["snapshot"]);
    expect(recorded.ledger.images).toMatchObject(five.map(() => ({ firstSeenAt })));
    const asked = ["--images", "--all-unused"];
    const planned = (await it.json(["plan", ...asked])).images;
    const dry = (await it.json(["gc", "--dry-run", ...asked])).plan.images;
    const report = await it.json(["gc", ...asked], 4);
    for (const plan of [planned, dry, report.plan.images]) {
      expect(plan.candidates).toEqual([]);
      expect(plan.kept.map((one: Json) => one.reason.code)).toEqual(five.map(() => "too-young"));
    }
    expect(it.removedImages()).toEqual([]);
    expect((await it.json(["explain", imageIdOf("a")])).things).toMatchObject([
      { firstSeenAt, reason: { code: "too-young" } },
    ]);
  }, 30_000);

  test("--compat kubelet keeps what a keep rule names, as always", async () => {
    const words = ["--compat=kubelet", "--keep=r.example/a"];
    const own = ["--minimum-image-ttl-duration=0s"];
    await using it = await startNode({ node: { images: five }, flags: own });
    await it.crigc("gc", "--all-unused", ...words);
    expect(idsOf(it)).toEqual([imageIdOf("a")]);
  });
});

describe("keep rules", () => {
  test("from the flag, the directory and the file add up", async () => {
    await using it = await startNode({ node: { images: five }, flags });
    writeFileSync(join(it.keepDir, "site.list"), "\ufeff# ours\r\nr.example/b\r\n");
    it.configure({ keep: ["r.example/c:*"] });
    expect(
      await it.crigc("gc", "--all-unused", "--keep=r.example/{d,x}", "--keep=r.example/d"),
    ).toMatchObject({
      exitCode: 2,
    });
    expect(it.removedImages()).toEqual([]);
    expect(await it.crigc("gc", "--all-unused", "--keep=r.example/d")).toMatchObject({
      exitCode: 0,
    });
    expect(idsOf(it)).toEqual(["b", "c", "d"].map(imageIdOf));
  });

  test("that cannot be read stop image removal: a stray file, an empty one, a missing directory", async () => {
    await using it = await startNode({ node: { images: five }, flags });
    const stray = join(it.keepDir, "rules.txt");
    writeFileSync(stray, "r.example/a\n");
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 2 });
    rmSync(stray);
    const empty = join(it.keepDir, "empty.list");
    writeFileSync(empty, "");
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 2 });
    rmSync(empty);
    mkdirSync(join(it.keepDir, "folder.list"));
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 2 });
    rmSync(it.keepDir, { recursive: true });
    const { exitCode, stdout } = await it.crigc("gc", "--all-unused");
    expect(exitCode).toBe(2);
    expect(stdout).toContain(it.keepDir);
    expect(it.removedImages()).toEqual([]);
  });

  test("--keep-loaded and --keep-per-repository keep the images that they select", async () => {
    const images = [
      image("pulled", 1_000),
      image("loaded", 1_000, { repoDigests: [] }),
      image("imported", 1_000, { repoDigests: [`import-2026-01-01@${imageIdOf("x")}`] }),
    ];
    await using it = await startNode({ node: { images }, flags });
    await it.crigc("gc", "--all-unused", "--keep-loaded");
    expect(it.removedImages()).toEqual([imageIdOf("pulled")]);
    const tagged = ["1", "2"].map((tag) =>
      image(`t${tag}`, 1_000, { repoTags: [`r.example/app:${tag}`] }),
    );
    await using other = await startNode({ node: { images: tagged }, flags });
    await other.crigc("gc", "--all-unused", "--keep-per-repository=1");
    // Neither was used more recently: ties stay together.
    expect(other.removedImages()).toEqual([]);
  });
});

describe("explain", () => {
  /** Old enough images, and a young one, under a budget that asks for one of them. */
  const prepared = async (): Promise<TestNode> => {
    const images = [
      ...five.slice(0, 2),
      image("pinned", 1_000_000, { pinned: true }),
      image("used", 1_000_000),
      image("kept", 1_000_000),
      { id: imageIdOf("pause"), repoTags: ["registry.k8s.io/pause:3.8"], sizeBytes: 500_000 },
    ];
    const it = await startNode({
      node: { ...used, images },
      flags: ["--space-accounting=reported"],
    });
    writeFileSync(join(it.keepDir, "site.list"), "# ours\nr.example/kept\n");
    await it.crigc("gc", "--images");
    await observedFor(it.stateDir, minutes(3));
    return it;
  };
  const budget = "--image-store-budget=19M";

  test("lists the rules in order of evaluation, up to the one that decides", async () => {
    await using it = await prepared();
    const expectations = [
      ["r.example/used:1", "kept", "in-use"],
      ["r.example/pinned", "kept", "pinned"],
      ["registry.k8s.io/pause:3.8", "kept", "sandbox-image"],
      ["r.example/kept", "kept", "keep-rule"],
      ["r.example/a:1", "would-go", null],
      [imageIdOf("b").slice(0, 20), "behind-the-stop", null],
    ] as const;
    for (const [reference, verdict, code] of expectations) {
      const { things } = await it.json(["explain", reference, budget]);
      expect(things).toHaveLength(1);
      expect(things[0]).toMatchObject({ verdict });
      if (code === null) continue;
      expect(things[0].reason.code).toBe(code);
      expect(things[0].tried.at(-1)).toBe(code);
      expect(things[0].tried[0]).toBe("in-use");
    }
    const unasked = await it.json(["explain", "r.example/a:1"]);
    expect(unasked.things[0].reason.code).toBe("no-trigger");
    expect(unasked.things[0].tried.at(-1)).toBe("no-trigger");
    const { stdout } = await it.crigc("explain", "r.example/kept", budget);
    expect(stdout).toContain("site.list:2");
    const { things } = await it.json(["explain", "r.example/used:1"]);
    expect(things[0].reason.users[0]).toMatchObject({ kind: "container", podName: "pod-pod" });
  });
});

describe("history", () => {
  test("shows when and why an image was removed, and what that freed", async () => {
    await using it = await startNode({ node: { images: five }, flags });
    const since = new Date().toISOString();
    await it.crigc("gc", "--max-images=4");
    await it.crigc("gc", "--max-images=3");
    const { passes, removals } = await it.json(["history", "--image", "r.example/a"]);
    expect(removals).toHaveLength(1);
    expect(removals[0]).toMatchObject({
      kind: "image",
      id: imageIdOf("a"),
      names: expect.arrayContaining(["r.example/a:1"]),
      trigger: "count",
      result: "removed",
      reportedBytes: 9_000_000,
    });
    expect(removals[0].at >= since).toBe(true);
    expect(passes).toHaveLength(1);
    expect(passes[0]).toMatchObject({ passId: removals[0].passId, passKind: "gc", removed: 1 });
    const { stdout } = await it.crigc("history", "--image", "r.example/a");
    expect(stdout).toContain("r.example/a:1");
    expect(stdout).not.toContain("r.example/b:1");
  });
});
