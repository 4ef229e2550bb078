import { describe, expect, test } from "bun:test";

import { chainId } from "../../../src/model/ids.ts";
import type { Filesystem } from "../../../src/model/snapshot.ts";
import { LayerForest } from "../../../src/policy/layer/layers.ts";
import {
  boundBytes,
  breakdownOf,
  futilityDiffers,
  futilityOf,
  type SpaceTarget,
  stillUseful,
} from "../../../src/policy/space/futility.ts";
import { aFilesystem, anImage, GIB } from "../../support/build/values.ts";

const target: SpaceTarget = {
  kind: "available-bytes",
  trigger: { kind: "space" },
  device: "8:1",
  path: "/var/lib/containerd",
  availableBytes: 20n * GIB,
  wantedBytes: 17n * GIB,
  relievedBytes: 16n * GIB,
};
const images = [anImage("a", { sizeBytes: 2n * GIB }), anImage("b", { sizeBytes: 1n * GIB })];
const full = (change: Partial<Filesystem> = {}) =>
  aFilesystem({ availableBytes: 3n * GIB, ...change });
const none = { images, filesystems: [], logs: null, users: new Map() };

describe("the bound", () => {
  test("is what the image filesystem says is used, and the unused images' sizes on top", () => {
    expect(boundBytes({ imageUsedBytes: 10n, unusedReportedBytes: 3n })).toBe(13n);
  });

  test("without a figure of the runtime, is five times the reported sizes", () => {
    expect(boundBytes({ imageUsedBytes: null, unusedReportedBytes: 3n })).toBe(15n);
  });
});

describe("a pass is futile", () => {
  test("exactly where not even the bound brings the disk back under the high threshold", () => {
    expect(futilityOf(target, full({ imageUsedBytes: 10n * GIB }), none)).toMatchObject({
      futile: false,
      neededBytes: 13n * GIB,
      boundBytes: 13n * GIB,
    });
    expect(futilityOf(target, full({ imageUsedBytes: 10n * GIB - 1n }), none).futile).toBeTrue();
    expect(futilityOf(target, full({ imageUsedBytes: null }), none).futile).toBeFalse();
    expect(
      futilityOf(target, full({ imageUsedBytes: null, availableBytes: GIB - 1n }), none).futile,
    ).toBeTrue();
  });

  test("images in use are no part of the bound", () => {
    const users = new Map([[anImage("a").id, []]]);
    expect(futilityOf(target, full({ imageUsedBytes: null }), { ...none, users }).boundBytes).toBe(
      5n * GIB,
    );
  });
});

test("layers that a used image has are no part of the bound, and an image of unknown layers counts whole", () => {
  const base = chainId("base");
  const child = (word: string, sizeBytes: bigint) => ({
    image: anImage(word, { sizeBytes }),
    chain: chainId(`base/${word}`),
  });
  const children = [child("used", 10n * GIB), child("one", 10n * GIB), child("two", 11n * GIB)];
  const alone = anImage("alone", { sizeBytes: 2n * GIB });
  const all = [
    anImage("root", { sizeBytes: 9n * GIB }),
    ...children.map(({ image }) => image),
    alone,
  ];
  const parents = new Map([[base, null], ...children.map(({ chain }) => [chain, base] as const)]);
  const forest = new LayerForest(
    [
      { id: anImage("root").id, sizeBytes: 9n * GIB, chain: base },
      ...children.map(({ image: { id, sizeBytes }, chain }) => ({ id, sizeBytes, chain })),
    ],
    parents,
  );
  const users = new Map([[anImage("used").id, []]]);
  const facts = { ...none, images: all, users };
  const without = futilityOf(target, full({ imageUsedBytes: null }), facts);
  expect(without.boundBytes).toBe(5n * (9n + 10n + 11n + 2n) * GIB);
  const { boundBytes: most } = futilityOf(target, full({ imageUsedBytes: null }), {
    ...facts,
    forest,
  });
  // 1 and 2 GiB of their own, 2 GiB of the unknown one; the root frees no more than its configuration.
  expect(most).toBeGreaterThanOrEqual(5n * 5n * GIB);
  expect(most).toBeLessThan(5n * 5n * GIB + GIB / 100n);
});

describe("after each removal it is judged again", () => {
  const remaining = {
    target,
    imageUsedBytes: 12n * GIB,
    gainedBytes: 0n,
    unusedReportedBytes: 3n * GIB,
    availableBytes: 3n * GIB,
  };

  test("useful while what is left can reach the threshold", () => {
    expect(stillUseful(remaining)).toBeTrue();
    expect(stillUseful({ ...remaining, availableBytes: 1n * GIB - 1n })).toBeFalse();
  });

  test("what was gained is no longer there to gain", () => {
    const after = { ...remaining, gainedBytes: 12n * GIB, unusedReportedBytes: 0n };
    expect(stillUseful({ ...after, availableBytes: 15n * GIB })).toBeFalse();
    expect(stillUseful({ ...after, availableBytes: 16n * GIB })).toBeTrue();
  });

  test("without a figure of the runtime five times the rest counts", () => {
    const told = { ...remaining, imageUsedBytes: null };
    expect(stillUseful({ ...told, availableBytes: 1n * GIB })).toBeTrue();
    expect(stillUseful({ ...told, availableBytes: 1n * GIB - 1n })).toBeFalse();
  });
});

describe("what fills the disk", () => {
  const logs = {
    kind: "read" as const,
    podLogsDirectory: "/l",
    podLogs: [],
    strays: [],
    danglingLinks: [],
    sizeBytes: 5n * GIB,
  };

  test("adds up to what is used", () => {
    const parts = breakdownOf(full({ imageUsedBytes: 10n * GIB, containerUsedBytes: 2n * GIB }), {
      images,
      filesystems: [],
      logs,
    });
    expect(parts).toMatchObject({
      imagesBytes: 10n * GIB,
      containersBytes: 2n * GIB,
      logsBytes: 5n * GIB,
      otherBytes: 80n * GIB,
    });
  });

  test("is never negative, however large the parts claim to be", () => {
    const parts = breakdownOf(full({ imageUsedBytes: 96n * GIB, containerUsedBytes: 9n * GIB }), {
      images,
      filesystems: [],
      logs,
    });
    expect(parts).toMatchObject({
      imagesBytes: 96n * GIB,
      containersBytes: 1n * GIB,
      logsBytes: 0n,
      otherBytes: 0n,
    });
  });

  test("leaves out what cannot be told, and logs that lie elsewhere", () => {
    const parts = breakdownOf(full({ roles: ["imagefs"], imageUsedBytes: null }), {
      images,
      filesystems: [],
      logs,
    });
    expect(parts).toMatchObject({
      imagesBytes: 3n * GIB,
      containersBytes: null,
      logsBytes: null,
      otherBytes: 94n * GIB,
    });
  });
});

describe("what makes another state", () => {
  const at = (availableBytes: bigint) => futilityOf(target, full({ availableBytes }), none);

  test("a file that is written and rotated away does not, two percent of the disk do", () => {
    expect(futilityDiffers(at(3n * GIB), at(4n * GIB))).toBeFalse();
    expect(futilityDiffers(at(4n * GIB), at(3n * GIB))).toBeFalse();
    expect(futilityDiffers(at(3n * GIB), at(5n * GIB))).toBeTrue();
  });

  test("a bound that is another one does, unless nothing at all is left to gain", () => {
    const one = { ...none, images: [anImage("a", { sizeBytes: GIB })] };
    const nothing = { ...none, images: [] };
    const withImages = (facts: typeof none) =>
      futilityOf(target, full({ imageUsedBytes: null }), facts);
    expect(futilityDiffers(withImages(one), withImages(none))).toBeTrue();
    expect(futilityDiffers(withImages(none), withImages(nothing))).toBeFalse();
  });
});
