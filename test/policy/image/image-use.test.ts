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

test("a reported use far below the size of one image is ignored, for bytes and inodes", () => {
  expect(useOf(node(KILOBYTES))).toEqual({ bytes: null, inodes: null });
});

test("a reported use far below the sum of sizes is valid, because images share layers", () => {
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

test("a reported use of 0 is ignored", () => {
  expect(useOf(node({ imageUsedBytes: 0n, imageInodesUsed: 0n }))).toEqual({
    bytes: null,
    inodes: null,
  });
});

test("the use of two image filesystems is judged together, because the largest image may be on either", () => {
  const one = aFilesystem({ imageUsedBytes: 65_000n });
  const other = aFilesystem({ device: "8:2", imageUsedBytes: 300n * MIB });
  const snapshot = { ...node({}), filesystems: [one, other] };
  expect(imageUseOf(one, snapshot).bytes).toBe(65_000n);
});

test("a budget uses reported sizes if the reported use is invalid", () => {
  const snapshot = node(KILOBYTES);
  expect(storeBytes(snapshot, null)).toBe(256n * MIB);
  const limits = { ...defaultImageLimits, storeBudgetBytes: 128n * MIB };
  expect(storeTargets(snapshot, limits, null)).toMatchObject([{ wantedBytes: 128n * MIB }]);
});

test("with an invalid reported use a pass that can succeed is not futile, and the breakdown includes images", () => {
  const snapshot = node(KILOBYTES);
  const [filesystem = aFilesystem()] = snapshot.filesystems;
  const facts = { ...snapshot, users: new Map(), layers: null };
  const target = spaceTarget(GIB + 300n * MIB, 300n * MIB);
  if (target.kind !== "available-bytes") throw new Error("the target is one of space");
  expect(futilityOf(target, filesystem, facts)).toMatchObject({ futile: false });
  expect(breakdownOf(filesystem, facts).imagesBytes).toBe(256n * MIB);
});
