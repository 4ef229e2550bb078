// Leases with the executable: they keep an image for their time or until its first use, and no longer.

import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";
import { image, type Json, removable, startNode, usedAndUnused } from "./node.ts";

const unused = image("unused");
const other = image("other");
const node = { ...usedAndUnused, images: [...usedAndUnused.images, other] };
const flags = removable;

describe("a lease", () => {
  test("of keep add --until keeps an image for its time, and explain and keep list show both ends", async () => {
    await using it = await startNode({ node, flags });
    expect(await it.crigc("keep", "add", "r.example/unused", "--until", "1s")).toMatchObject({
      exitCode: 0,
      stderr: "",
    });
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
    expect(it.removedImages()).toEqual([other.id]);
    const [{ lease }] = (await it.json(["keep", "list"])).rules;
    expect(lease).toMatchObject({ untilUsed: false, lastsMs: 1000 });
    expect(lease.startedAt).toStartWith("20");
    await until("the lease is over", 10_000, async () => {
      await it.crigc("gc", "--images", "--dry-run=false");
      const [rule] = (await it.json(["keep", "list"])).rules;
      return rule.lease.remainingMs === 0;
    });
    expect(await it.crigc("keep", "check")).toMatchObject({ exitCode: 0 });
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
    expect(it.removedImages()).toContain(unused.id);
  });

  test("until the first use ends with a new container, not with one that was there", async () => {
    await using it = await startNode({ node, flags });
    writeFileSync(
      join(it.keepDir, "image.list"),
      "r.example/unused:1 # crigc: until used\nr.example/used:1 # crigc: until used\n",
    );
    await it.crigc("gc", "--all-unused");
    expect((await it.crigc("explain", unused.id)).stdout).toMatch(
      /lease ends in \S+ or with its first use, since 20/,
    );
    it.runtime.node.addContainer({
      id: "new",
      sandboxId: "pod",
      image: "r.example/unused:1",
      createdAt: new Date().toISOString(),
    });
    await it.crigc("gc", "--all-unused");
    const { rules } = await it.json(["keep", "list"]);
    expect(rules.map((rule: Json) => rule.lease.usedAt === null)).toEqual([false, true]);
    it.runtime.node.removeContainer("new");
    await it.crigc("gc", "--all-unused");
    expect(it.removedImages()).toContain(unused.id);
  });
});
