// crigc fleet with the executable: snapshots of real processes, as files, with gzip and as a directory.

import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { image, removable, startNode, usedAndUnused } from "./node.ts";

test("the only copy of an image is found offline, and its list keeps it on its node", async () => {
  const own = image("own");
  const node = { ...usedAndUnused, images: [...usedAndUnused.images, own] };
  await using it = await startNode({ node, flags: removable });
  const snapshot = (await it.crigc("snapshot")).stdout;
  const { host, images, clocks, ...rest } = JSON.parse(snapshot);
  expect(host).toMatchObject({ name: expect.any(String), returnedImages: 0 });
  const directory = join(it.home, "fleet");
  mkdirSync(directory);
  writeFileSync(join(directory, "this.json"), snapshot);
  writeFileSync(join(directory, "notes.txt"), "no snapshot");
  const other = {
    ...rest,
    images: images.filter(({ id }: { readonly id: string }) => id !== own.id),
    clocks: { ...clocks, bootId: "another" },
    host: { ...host, name: "other" },
  };
  const packed = join(it.home, "other.json.gz");
  writeFileSync(packed, gzipSync(JSON.stringify(other)));
  await it.runtime.crash();

  const document = await it.json(["fleet", directory, packed]);
  expect(document.nodes).toMatchObject([
    { name: host.name, images: 3, onlyCopies: 1 },
    { name: "other", images: 2, onlyCopies: 0 },
  ]);
  expect(document.images[0]).toMatchObject({ id: own.id, nodes: 1, usedOn: 0, onlyOn: host.name });
  expect(document.images.slice(1).map((one: { readonly nodes: number }) => one.nodes)).toEqual([
    2, 2,
  ]);

  const last = await it.crigc("fleet", directory, packed, "--copies=1", "-o=name");
  expect(last).toMatchObject({ exitCode: 0, stderr: "" });
  await it.runtime.recover();
  writeFileSync(join(it.keepDir, "last-copies.list"), last.stdout);
  await it.crigc("gc", "--all-unused");
  expect(it.removedImages()).not.toContain(own.id);
  expect(it.removedImages()).toHaveLength(1);

  const twice = await it.crigc("fleet", directory, join(directory, "this.json"));
  expect(twice.exitCode).toBe(2);
  writeFileSync(join(directory, "torn.json.gz"), gzipSync(snapshot).subarray(0, 200));
  expect(await it.crigc("fleet", directory)).toMatchObject({ exitCode: 2, stdout: "" });
});
