import { expect, test } from "bun:test";

import type { Filesystem, Snapshot } from "../../../src/model/snapshot.ts";
import { imageUseOf } from "../../../src/policy/image/image-use.ts";
import { breakdownOf, futilityOf } from "../../../src/policy/space/futility.ts";
import { storeBytes, storeTargets } from "../../../src/policy/space/targets.ts";
import {
  aFilesystem,
  anImage,
  aSnapshot,
  defaultImageLimits,
  GIB,
  MIB,
  spaceTarget,
} from "../../support/build/values.ts";

/** Eight images of 32 MiB, and a figure of the runtime's for all of them. */
function node(change: Partial<Filesystem>): Snapshot {
  const filesystem = aFilesystem({ availableBytes: GIB, ...change });
  const images = Array.from({ length: 8 }, (_, index) =>
    anImage(`i${index}`, { sizeBytes: 32n * MIB }),
  );
  return aSnapshot({ images, filesystems: [filesystem] });
}
const KILOBYTES = { imageUsedBytes: 65_000n, imageInodesUsed: 12n };

function useOf(snapshot: Snapshot) {
  const [filesystem = aFilesystem()] = snapshot.filesystems;
  return imageUseOf(filesystem, snapshot);
}

test("a figure far below the size of a single image is none, of bytes and of inodes", () => {
  expect(useOf(node(KILOBYTES))).toEqual({ bytes: null, inodes: null });
});

test("images that share layers take far less than their sizes add up to, and that is a figure", () => {
  expect(useOf(node({ imageUsedBytes: 40n * MIB })).bytes).toBe(40n * MIB);
});

test("a quarter of the largest image is a figure, and less is none, wherever the image stands in the list", () => {
  const images = [anImage("large", { sizeBytes: 32n * MIB }), anImage("small", { sizeBytes: 1n })];
  for (const [imageUsedBytes, bytes] of [
    [8n * MIB, 8n * MIB],
    [8n * MIB - 1n, null],
  ] as const)
    expect(useOf({ ...node({ imageUsedBytes }), images }).bytes).toBe(bytes);
});

test("0 is no figure", () => {
  expect(useOf(node({ imageUsedBytes: 0n, imageInodesUsed: 0n }))).toEqual({
    bytes: null,
    inodes: null,
  });
});

test("two image filesystems are judged together, since the largest image may lie on either", () => {
  const one = aFilesystem({ imageUsedBytes: 65_000n });
  const other = aFilesystem({ device: "8:2", imageUsedBytes: 300n * MIB });
  const snapshot = { ...node({}), filesystems: [one, other] };
  expect(imageUseOf(one, snapshot).bytes).toBe(65_000n);
});

test("with a figure that is invalid a budget goes by the reported sizes", () => {
  const snapshot = node(KILOBYTES);
  expect(storeBytes(snapshot)).toBe(256n * MIB);
  const limits = { ...defaultImageLimits, storeBudgetBytes: 128n * MIB };
  expect(storeTargets(snapshot, limits)).toMatchObject([{ wantedBytes: 128n * MIB }]);
});

test("with a figure that is invalid a pass that can succeed is not futile, and images are named among what fills the disk", () => {
  const snapshot = node(KILOBYTES);
  const [filesystem = aFilesystem()] = snapshot.filesystems;
  const facts = { ...snapshot, users: new Map() };
  const target = spaceTarget(GIB + 300n * MIB, 300n * MIB);
  if (target.kind !== "available-bytes") throw new Error("the target is one of space");
  expect(futilityOf(target, filesystem, facts)).toMatchObject({ futile: false });
  expect(breakdownOf(filesystem, snapshot).imagesBytes).toBe(256n * MIB);
});
