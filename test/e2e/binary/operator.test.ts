// A day of an operator with the executable: hold, keep, look, ask who removed what; beside an agent where that matters.
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";

import { writeImageArchive } from "../../support/containerd/archive.ts";
import { until } from "../../support/containerd/until.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { image, removable, startNode, usedAndUnused } from "./node.ts";

const unused = image("unused");
const other = image("other");
const [, used] = usedAndUnused.images;
const node = { ...usedAndUnused, images: [...usedAndUnused.images, other] };
const flags = removable;

describe("hold", () => {
  test("stops gc with exit 7 until release, and shows its end and reason", async () => {
    await using it = await startNode({ node, flags });
    const held = await it.crigc("hold", "1h", "--reason", "upgrade");
    expect(held).toMatchObject({ exitCode: 0, stderr: "" });
    expect(held.stdout).toMatch(/^Garbage collection is on hold for 1h, until .*Z \(upgrade\); /);
    const stopped = await it.crigc("gc", "--all-unused");
    expect(stopped.exitCode).toBe(7);
    expect(stopped.stdout).toContain("upgrade");
    expect(it.changes()).toEqual([]);
    expect((await it.crigc("release")).stdout).toContain("Hold released: it would have lasted");
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
    expect(it.removedImages()).toHaveLength(2);
  });
});

describe("keep baseline", () => {
  test("keeps today's images and no later one", async () => {
    await using it = await startNode({ node, flags });
    expect(await it.crigc("keep", "baseline")).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await it.crigc("keep", "check")).toMatchObject({ exitCode: 0 });
    const later = { id: imageIdOf("later"), repoTags: ["r.example/later:1"], sizeBytes: 1000 };
    it.runtime.node.addImage(later);
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
    expect(it.removedImages()).toEqual([later.id]);
    expect((await it.crigc("explain", unused.id)).stdout).toContain("baseline.list:");
  });

  test("with --once waits on a node without images, and keeps only the first ones loaded", async () => {
    await using it = await startNode({ flags });
    const list = join(it.keepDir, "baseline.list");
    const empty = await it.crigc("keep", "baseline", "--once");
    expect(empty).toMatchObject({ exitCode: 3, stdout: "" });
    expect(empty.stderr).toContain("lists no image");
    expect(existsSync(list)).toBeFalse();
    it.runtime.node.addImage(unused);
    expect(await it.crigc("keep", "baseline", "--once")).toMatchObject({ exitCode: 0 });
    it.runtime.node.addImage(other);
    expect(await it.crigc("keep", "baseline", "--once")).toMatchObject({ exitCode: 0 });
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
    expect(it.removedImages()).toEqual([other.id]);
  });

  test("from an archive keeps an image imported later, with or without its tag", async () => {
    await using it = await startNode({ node, flags });
    const { file, images } = writeImageArchive(join(it.home, "a.tar"), [
      { names: ["docker.io/library/app:1"], withBusybox: false },
    ]);
    await it.runtime.crash();
    expect(await it.crigc("keep", "baseline", "--from", file)).toMatchObject({ exitCode: 0 });
    await it.runtime.recover();
    const [app] = images;
    it.runtime.node.addImage({ id: app?.id ?? "", sizeBytes: 1000 });
    await it.crigc("gc", "--all-unused");
    expect(it.removedImages().toSorted()).toEqual([unused.id, other.id].toSorted());
  });
});

describe("keep missing", () => {
  const crio = {
    name: "cri-o",
    statusInfo: { config: JSON.stringify({ sandboxImage: "r.example/other:1" }) },
  };

  test("finds what CRI-O lost when it wiped its store at boot, and the archive that has it", async () => {
    await using it = await startNode({ flags, traits: crio });
    const { file, images } = writeImageArchive(join(it.home, "a.tar"), [
      { names: ["docker.io/library/app:1"], withBusybox: false },
    ]);
    const app = { id: images[0]?.id ?? "", repoTags: ["docker.io/library/app:1"], sizeBytes: 1000 };
    for (const one of [app, other]) it.runtime.node.addImage(one);
    await it.crigc("keep", "baseline");
    expect(await it.crigc("keep", "missing")).toMatchObject({
      exitCode: 0,
      stdout: "2 baseline images: 2 on this node.\n",
    });
    for (const { id } of [app, other]) it.runtime.node.removeImage(id);
    const found = await it.json(["keep", "missing", "--from", it.home], 8);
    expect(found).toMatchObject({
      runtime: { name: "cri-o" },
      baselineImages: 2,
      presentImages: 0,
      images: [
        { problem: "missing", archives: [file], command: `podman load -i ${file}` },
        { problem: "sandbox-image", name: "r.example/other:1", archives: [] },
      ],
    });
  });

  test("an agent raises one event for it, and status shows it until it is back", async () => {
    const pinned = { ...unused, pinned: true };
    const traits = { statusInfo: {} };
    await using it = await startNode({ node: { ...node, images: [pinned, used] }, flags, traits });
    await it.crigc("keep", "baseline");
    it.runtime.node.removeImage(used.id);
    // As k3s drops the label of an imported image when it restarts.
    it.runtime.node.removeImage(unused.id);
    it.runtime.node.addImage({ ...unused, pinned: false });
    await using agent = it.start("run", "--image-detection-period=1s");
    const baseline = async () => (await it.json(["status"])).baseline;
    await until("the agent compares", 10_000, async () => {
      const status = await it.crigc("status", "-o", "json");
      return status.exitCode === 0 && JSON.parse(status.stdout).baseline !== null;
    });
    expect(await baseline()).toMatchObject({ images: 2, present: 1, missing: 1 });
    const { stdout } = await it.crigc("status");
    expect(stdout).toContain(
      "1 missing (r.example/used:1), 1 no longer pinned (r.example/unused:1)",
    );
    it.runtime.node.addImage(used);
    await until("it is back", 10_000, async () => (await baseline()).missing === 0);
    expect(await agent.stop()).toBe(0);
    const events = (await it.json(["history"])).events as { reason: string }[];
    expect(events.filter(({ reason }) => reason === "BaselineImageMissing")).toHaveLength(1);
  });
});

describe("keep add", () => {
  test("by several processes at once loses no pattern, and keeps the matching images", async () => {
    await using it = await startNode({ node, flags });
    const names = Array.from({ length: 6 }, (_, at) => `r.example/added-${at}`);
    const adding = [...names, "r.example/unused"].map((name) => it.crigc("keep", "add", name));
    for (const ran of await Promise.all(adding))
      expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
    const rules = (await it.json(["keep", "list"])).rules as { pattern: string }[];
    expect(rules.map(({ pattern }) => pattern).toSorted()).toEqual(
      [...names, "r.example/unused"].toSorted(),
    );
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
    expect(it.removedImages()).toEqual([other.id]);
  });
});

describe("doctor", () => {
  const resultOf = (document: { checks: { name: string; result: string }[] }, name: string) =>
    document.checks.find((check) => check.name === name)?.result;

  test("reports a healthy agent, and one whose runtime is down", async () => {
    await using it = await startNode({ node, flags: [...flags, "--image-cache-period=1s"] });
    await using agent = it.start("run");
    await until("doctor finds the agent", 10_000, async () => {
      const { stdout } = await it.crigc("doctor", "-o", "json");
      return resultOf(JSON.parse(stdout), "agent") === "ok";
    });
    await it.runtime.crash();
    await until("doctor finds the agent unwell", 20_000, async () => {
      const { stdout } = await it.crigc("doctor", "-o", "json");
      return resultOf(JSON.parse(stdout), "agent") === "failed";
    });
    const { checks } = await it.json(["doctor"], 8);
    expect(resultOf({ checks }, "socket")).toBe("failed");
    expect(resultOf({ checks }, "node")).toBe("skipped");
    expect(await agent.stop()).toBe(0);
  });
});
