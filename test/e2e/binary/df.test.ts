// crigc df explains a disk: images with what only they have and what they share, and what lies beside them.
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { type ImageDescription, imageIdOf } from "../../support/fake-runtime/describe.ts";
import { diskObstacle, layer, MiB, smallDisk } from "./disk.ts";
import { type Json, startNode } from "./node.ts";

const image = (name: string, layers: ImageDescription["layers"]): ImageDescription => ({
  id: imageIdOf(name),
  repoTags: [`registry.example/${name}`],
  layers: layers ?? [],
});

const bytesOf = (bytes: number): string => (bytes === 0 ? "0 B" : `${bytes / MiB}.0 MiB`);

const row = (rows: readonly Json[], name: string | null): Json =>
  rows.find((entry) => entry.name === name);

describe.skipIf(diskObstacle !== null)("df", () => {
  const images = [
    image("debian:12", [layer("debian", 20)]),
    image("shop/web:1", [layer("debian", 20), layer("web-1", 3)]),
    image("shop/web:2", [layer("debian", 20), layer("web-2", 5)]),
    image("lone:1", [layer("lone", 7)]),
    { ...image("chart:1", [layer("chart", 1)]), isArtifact: true },
  ];
  const node = {
    images,
    sandboxes: [{ id: "pod", uid: "uid", name: "web", namespace: "shop" }],
    containers: [
      { id: "app", sandboxId: "pod", image: "registry.example/shop/web:2", writableBytes: 2 * MiB },
    ],
  };

  test("shows unique and shared bytes by rule, repository, namespace and base, and other data", async () => {
    await using disk = await smallDisk(100 * MiB);
    const store = { directory: join(disk.directory, "store") };
    mkdirSync(join(disk.directory, "models"));
    writeFileSync(join(disk.directory, "models", "big"), new Uint8Array(9 * MiB).fill(1));
    await using it = await startNode({ node, store, flags: ["--keep=registry.example/lone"] });
    const logs = join(it.podLogsDir, "shop_web_uid");
    mkdirSync(logs);
    writeFileSync(join(logs, "0.log"), new Uint8Array(MiB).fill(1));

    const usage = await it.json(["df"]);
    expect(usage.kind).toBe("DiskUsage");
    const page = (await it.crigc("report", "--html=-")).stdout.replaceAll("<wbr />", "");
    const rows = page.split("<tr>").filter((one) => one.includes('data-label="Repository"'));
    for (const { name, uniqueBytes, sharedBytes } of usage.images.byRepository) {
      const figures = rows.find((one) => one.includes(`>${name}<`)) ?? "";
      expect(figures).toContain(`data-label="Unique">${bytesOf(uniqueBytes)}<`);
      expect(figures).toContain(`data-label="Shared">${bytesOf(sharedBytes)}<`);
    }
    expect(usage.filesystems[0]).toMatchObject({ capacityBytes: 100 * MiB });
    expect(usage.images).toMatchObject({
      images: 5,
      reportedBytes: (20 + 23 + 25 + 7 + 1) * MiB,
      withoutLayers: 1,
    });
    // Each layer once: 20 + 3 + 5 + 7 + 1.
    expect(usage.images.uniqueBytes).toBe(36 * MiB);
    expect(usage.images.sharedBytes).toBe(0);
    const web = row(usage.images.byRepository, "registry.example/shop/web");
    expect(web).toMatchObject({ images: 2, uniqueBytes: 8 * MiB, sharedBytes: 20 * MiB });
    expect(row(usage.images.byNamespace, "shop")).toMatchObject({
      images: 1,
      uniqueBytes: 5 * MiB,
      sharedBytes: 20 * MiB,
    });
    expect(row(usage.images.byFamily, "registry.example/debian:12")).toMatchObject({
      images: 3,
      uniqueBytes: 28 * MiB,
      sharedBytes: 0,
    });
    expect(row(usage.images.byFamily, null)).toMatchObject({ images: 1 });
    expect(row(usage.images.byState, "in-use")).toMatchObject({ images: 1 });
    expect(row(usage.images.byState, "keep-rule")).toMatchObject({ images: 1 });
    expect(usage.containers).toEqual([
      { id: "app", name: "main", podName: "web", podNamespace: "shop", writableBytes: 2 * MiB },
    ]);
    expect(usage.podLogs[0].path).toBe(logs);
    expect(usage.podLogs[0].bytes).toBeGreaterThanOrEqual(MiB);
    expect(usage.rest.complete).toBe(true);
  });
});
