import { expect, test } from "bun:test";

import type { Filesystem } from "../../src/model/snapshot.ts";
import { breakdownOf, imageUseOf } from "../../src/policy/disk.ts";
import { layersOf } from "../support/build/layers.ts";
import { aFilesystem, anImage, aSnapshot, GIB } from "../support/build/values.ts";

const images = [anImage("app", { sizeBytes: 8n * GIB })];

test.each<[string, readonly (bigint | null)[], bigint | null, bigint | null]>([
  ["is the runtime's", [3n * GIB], 3n * GIB, 90n],
  ["is none if it counted none", [0n], null, 90n],
  ["is none if it says none", [null], null, 90n],
  ["may be a quarter of the largest image", [2n * GIB], 2n * GIB, 90n],
  ["is implausible below that", [2n * GIB - 1n], null, null],
  ["is judged for all filesystems together", [GIB, GIB], GIB, 90n],
])("the figure for images %s", (_, used, bytes, inodes) => {
  const filesystems = used.map((imageUsedBytes) =>
    aFilesystem({ imageUsedBytes, imageInodesUsed: 90n }),
  );
  expect(imageUseOf(filesystems[0]!, { images, filesystems })).toEqual({ bytes, inodes });
});

test.each<[string, Partial<Filesystem>, object]>([
  [
    "adds up by kind",
    {},
    { imagesBytes: 9n * GIB, containersBytes: 20n * GIB, otherBytes: 61n * GIB },
  ],
  [
    "never exceeds what is in use",
    { availableBytes: 75n * GIB },
    { imagesBytes: 9n * GIB, containersBytes: 16n * GIB, otherBytes: 0n },
  ],
  [
    "has what root may use among the free blocks",
    { availableBytes: 5n * GIB, freeBytes: 10n * GIB },
    { usedBytes: 90n * GIB, otherBytes: 61n * GIB },
  ],
  [
    "counts a negative figure as 0",
    { containerUsedBytes: -1n },
    { containersBytes: 0n, otherBytes: 81n * GIB },
  ],
  [
    "uses reported sizes if the runtime has no figure",
    { imageUsedBytes: null, containerUsedBytes: null },
    { imagesBytes: 8n * GIB, containersBytes: null },
  ],
])("the breakdown of a disk %s", (_, change, expected) => {
  const filesystem = aFilesystem({
    imageUsedBytes: 4n * GIB + GIB / 2n,
    containerUsedBytes: 20n * GIB,
    ...change,
  });
  const facts = { ...aSnapshot({ images, filesystems: [filesystem] }), layers: layersOf() };
  expect(breakdownOf(filesystem, facts)).toMatchObject(expected);
});
