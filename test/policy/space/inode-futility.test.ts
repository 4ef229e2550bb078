import { describe, expect, test } from "bun:test";

import type { Filesystem } from "../../../src/model/snapshot.ts";
import {
  inodeFutilityOf,
  inodesStillUseful,
  type InodeTarget,
} from "../../../src/policy/space/inode-futility.ts";
import { aFilesystem, anImage } from "../../support/build/values.ts";

const target: InodeTarget = {
  kind: "free-inodes",
  trigger: { kind: "inodes" },
  device: "8:1",
  path: "/var/lib/containerd",
  inodesFree: 100_000n,
  wantedInodes: 90_000n,
  relievedInodes: 50_000n,
};
const facts = {
  images: [anImage("a"), anImage("b")],
  filesystems: [],
  logs: null,
  users: new Map(),
};
const short = (change: Partial<Filesystem> = {}) => aFilesystem({ inodesFree: 10_000n, ...change });

describe("a filesystem that is short of inodes", () => {
  test("is helped by images that take enough of them", () => {
    const futility = inodeFutilityOf(target, short({ imageInodesUsed: 40_000n }), facts);
    expect(futility).toMatchObject({ futile: false, inodes: { bound: 40_064n, needed: 40_000n } });
  });

  test("is not helped where others' small files take them", () => {
    expect(inodeFutilityOf(target, short({ imageInodesUsed: 39_000n }), facts)?.futile).toBeTrue();
  });

  test("is judged by no guess where the runtime does not say what its images take", () => {
    expect(inodeFutilityOf(target, short({ imageInodesUsed: null }), facts)).toBeNull();
    expect(inodeFutilityOf(target, short({ imageInodesUsed: 0n }), facts)).toBeNull();
    expect(inodeFutilityOf(target, short(), facts)).toBeNull();
  });
});

test("judged again after a removal, what is left counts", () => {
  const remaining = { target, imageInodesUsed: 45_000n, unusedImages: 0 };
  const useful = (inodesFree: bigint, gainedInodes: bigint) =>
    inodesStillUseful({ ...remaining, inodesFree, gainedInodes });
  expect(useful(10_000n, 0n)).toBeTrue();
  // Somebody else took what was gained.
  expect(useful(10_000n, 6_000n)).toBeFalse();
  expect(useful(49_000n, 44_000n)).toBeTrue();
});
