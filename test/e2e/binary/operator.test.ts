// A day of an operator with the executable: hold, keep, look, ask who removed what; beside an agent where that matters.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { writeImageArchive } from "../../support/containerd/archive.ts";
import { until } from "../../support/containerd/until.ts";
import { hexId, imageIdOf, type NodeDescription } from "../../support/fake-runtime/describe.ts";
import { startNode } from "./node.ts";

const unused = { id: imageIdOf("unused"), repoTags: ["r.example/unused:1"], sizeBytes: 1_000_000 };
const other = { id: imageIdOf("other"), repoTags: ["r.example/other:1"], sizeBytes: 1_000_000 };
const used = { id: imageIdOf("used"), repoTags: ["r.example/used:1"], sizeBytes: 2_000_000 };
const node: NodeDescription = {
  images: [unused, other, used],
  sandboxes: [{ id: "pod" }],
  containers: [{ id: "web", sandboxId: "pod", image: "r.example/used:1" }],
};
const flags = ["--minimum-image-ttl-duration=0s", "--space-accounting=reported"];

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

  test("ends a running container pass with the removal in flight, and gc exits 7", async () => {
    const dead = Array.from({ length: 20 }, (_, attempt) => ({
      id: hexId(`dead ${attempt}`),
      sandboxId: "pod",
      image: "r.example/used:1",
      state: "exited" as const,
      attempt,
    }));
    await using it = await startNode({ node: { ...node, containers: dead }, flags });
    it.runtime.before("RemoveContainer", async () => {
      await it.crigc("hold", "1h");
    });
    const { exitCode, stdout } = await it.crigc("gc");
    expect(exitCode).toBe(7);
    expect(stdout).toContain("Containers: a hold began, so the pass stopped. 1 container");
    expect(it.changes()).toEqual(["RemoveContainer"]);
  });

  test("that is damaged stays in force until release", async () => {
    await using it = await startNode({ node, flags });
    await it.crigc("hold", "1h");
    writeFileSync(join(it.stateDir, "hold.json"), '{"until": ');
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 7 });
    expect(await it.crigc("release")).toMatchObject({ exitCode: 0 });
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
  });

  test("and its end are noticed by a running agent at once", async () => {
    await using it = await startNode({ node, flags });
    await using agent = it.start("run");
    await until("the agent answers", 10_000, async () => (await it.crigc("status")).exitCode === 0);
    expect((await it.json(["status"])).hold).toBeNull();
    await it.crigc("hold", "1h", "--reason", "upgrade");
    expect((await it.json(["status"])).hold).toMatchObject({ reason: "upgrade" });
    expect((await it.crigc("status")).stdout).toMatch(/On hold until .*Z \(upgrade\)\./);
    await it.crigc("release");
    expect((await it.json(["status"])).hold).toBeNull();
    expect(await agent.stop()).toBe(0);
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

  test("with --once writes once on a node, and later edits of the list are kept", async () => {
    await using it = await startNode({ node, flags });
    const list = join(it.keepDir, "baseline.list");
    expect(await it.crigc("keep", "baseline", "--once")).toMatchObject({ exitCode: 0 });
    writeFileSync(list, "r.example/used:1\n");
    const again = await it.crigc("keep", "baseline", "--once");
    expect(again).toMatchObject({ exitCode: 0 });
    expect(again.stdout).toContain("nothing to do");
    expect(readFileSync(list, "utf8")).toBe("r.example/used:1\n");
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

  test("with --once writes the list but fails if the state directory cannot be written", async () => {
    await using it = await startNode({ node, flags });
    const ran = await it.crigc("keep", "baseline", "--once", "--state-dir=/proc/no");
    expect(ran.exitCode).toBe(1);
    expect(ran.stderr).toContain("will be written again on the next boot");
    expect(existsSync(join(it.keepDir, "baseline.list"))).toBeTrue();
  });

  test("from an archive keeps an image imported later, with or without its tag", async () => {
    await using it = await startNode({ node, flags });
    const { file, images } = writeImageArchive(join(it.home, "a.tar"), [
      { names: ["docker.io/library/app:1"], withBusybox: false },
    ]);
    await it.runtime.crash();
    expect(await it.crigc("keep", "baseline", "--from", file)).toMatchObject({ exitCode: 0 });
    await it.runtime.recover();
    const [image] = images;
    it.runtime.node.addImage({ id: image?.id ?? "", sizeBytes: 1000 });
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
    for (const image of [app, other]) it.runtime.node.addImage(image);
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

  test("and keep remove at once lose no added pattern", async () => {
    await using it = await startNode({ node, flags });
    await it.crigc("keep", "add", "r.example/a", "r.example/b", "r.example/c");
    await Promise.all([
      ...["a", "b", "c"].map((name) => it.crigc("keep", "remove", `r.example/${name}`)),
      ...["d", "e"].map((name) => it.crigc("keep", "add", `r.example/${name}`)),
    ]);
    const rules = (await it.json(["keep", "list"])).rules as { pattern: string }[];
    expect(rules.map(({ pattern }) => pattern).toSorted()).toEqual(["r.example/d", "r.example/e"]);
  });
});

describe("history", () => {
  test("works while the runtime is down", async () => {
    await using it = await startNode({ node, flags });
    await it.crigc("gc", "--all-unused");
    await it.runtime.crash();
    expect((await it.json(["history"])).removals).toHaveLength(2);
  });
});

describe("audit", () => {
  test("finds a ghost, a nameless image and a container of another tool", async () => {
    const nameless = { id: imageIdOf("nameless"), sizeBytes: 1000 };
    await using it = await startNode({
      node: {
        ...node,
        images: [...(node.images ?? []), nameless],
        sandboxes: [{ id: "pod" }, { id: "by-hand", labels: {} }],
      },
      flags,
    });
    it.runtime.node.ghosts.add(unused.id);
    await it.crigc("gc", "--all-unused");
    it.runtime.node.addImage(nameless);
    const { findings } = await it.json(["audit"]);
    const codes = findings.map(({ code }: { code: string }) => code);
    expect(codes).toContain("ghost-image");
    expect(codes).toContain("nameless-image");
    expect(codes).toContain("foreign-sandbox");
    expect(it.removedImages()).not.toContain("by-hand");
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
