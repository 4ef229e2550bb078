import { describe, expect, test } from "bun:test";

import { Meter } from "../../../src/execute/image/meter.ts";
import type { ImageTarget, Purpose } from "../../../src/model/plan.ts";
import type { Image, Snapshot } from "../../../src/model/snapshot.ts";
import type { Progress } from "../../../src/policy/space/progress.ts";
import { targetReach } from "../../../src/policy/space/reach.ts";
import {
  aContainer,
  aFilesystem,
  anImage,
  aSnapshot,
  GIB,
  idOf,
  spaceTarget,
} from "../../support/build/values.ts";

/** On a disk of 100 GiB with 3 GiB available and images of 8 GiB: 10 GiB can be reached, 15 GiB cannot. */
const milder = spaceTarget(10n * GIB, 7n * GIB);
const stricter = spaceTarget(15n * GIB, 12n * GIB);
const filesystem = aFilesystem({ availableBytes: 3n * GIB, imageUsedBytes: 8n * GIB });

const after = (change: Partial<Progress>): Progress => ({
  accounting: "measured",
  availableBytes: new Map(),
  inodesFree: new Map([["8:1", 100n]]),
  gainedBytes: new Map(),
  gainedInodes: new Map(),
  storeBytes: null,
  imageCount: 2,
  mayAppear: false,
  reportedBytes: 0n,
  removed: 0,
  ...change,
});

const pressure: Purpose = { kind: "pressure", signals: ["nodefs.available", "imagefs.available"] };

async function isUseful(
  purpose: Purpose,
  targets: readonly ImageTarget[],
  images: readonly Image[] = [],
): Promise<boolean> {
  const snapshot = aSnapshot({ filesystems: [filesystem], images });
  const canReach = targetReach({ snapshot, purpose }, targets);
  const meter = new Meter({
    disk: { measure: async () => filesystem },
    targets,
    stores: [],
    storeBytes: null,
    imageCount: 1,
    accounting: "measured",
  });
  await meter.start();
  return canReach(meter.progress(false));
}

test("pressure on a disk can be ended only if all of its thresholds are in reach", async () => {
  expect(await isUseful(pressure, [milder])).toBeTrue();
  expect(await isUseful(pressure, [milder, stricter])).toBeFalse();
});

test("a disk under pressure is relieved if possible, whatever the other disks", async () => {
  const other = { ...stricter, device: "8:2", path: "/other" };
  expect(await isUseful(pressure, [milder, other])).toBeTrue();
});

test("one target in reach is enough for a periodic pass", async () => {
  expect(await isUseful({ kind: "periodic" }, [milder, stricter])).toBeTrue();
});

test("an image listed twice counts once", async () => {
  const image = anImage("a", { sizeBytes: 2n * GIB });
  expect(await isUseful({ kind: "periodic" }, [stricter], [image, image])).toBeFalse();
  const other = anImage("b", { sizeBytes: 2n * GIB });
  expect(await isUseful({ kind: "periodic" }, [stricter], [image, other])).toBeTrue();
});

test("what is in use, or was removed before, cannot be gained", async () => {
  const images = ["a", "b"].map((name) => anImage(name, { sizeBytes: 2n * GIB }));
  const reaches = (change: Partial<Snapshot>, progress: Partial<Progress>) => {
    const snapshot = aSnapshot({ filesystems: [filesystem], images, ...change });
    const judged = { availableBytes: new Map([["8:1", 3n * GIB]]), ...progress };
    return targetReach({ snapshot, purpose: { kind: "periodic" } }, [stricter])(after(judged));
  };
  expect(reaches({}, {})).toBeTrue();
  expect(reaches({ containers: [aContainer("c", { imageId: idOf("a") })] }, {})).toBeFalse();
  expect(reaches({}, { reportedBytes: 2n * GIB })).toBeFalse();
});

test("a target that is met helps no other one", async () => {
  const met = spaceTarget(2n * GIB, 0n);
  expect(await isUseful({ kind: "periodic" }, [met, stricter])).toBeFalse();
});

test("a target without a disk can always be reached, even under pressure", async () => {
  const all: ImageTarget = { kind: "everything", trigger: { kind: "all-unused" } };
  expect(await isUseful({ kind: "periodic" }, [stricter])).toBeFalse();
  expect(await isUseful({ kind: "periodic" }, [stricter, all])).toBeTrue();
  expect(await isUseful(pressure, [stricter])).toBeFalse();
  expect(await isUseful(pressure, [stricter, all])).toBeTrue();
});

describe("inodes", () => {
  const images = [anImage("a"), anImage("b")];
  const disk = aFilesystem({ inodesFree: 100n, imageInodesUsed: 1_000n });
  const inodes = (relievedInodes: bigint): ImageTarget => ({
    kind: "free-inodes",
    trigger: { kind: "inodes" },
    device: "8:1",
    path: "/var/lib/containerd",
    inodesFree: 9_000n,
    wantedInodes: 8_900n,
    relievedInodes,
  });
  const reaches = (relievedInodes: bigint, change: Partial<Progress> = {}): boolean =>
    targetReach(
      { snapshot: aSnapshot({ filesystems: [disk], images }), purpose: { kind: "periodic" } },
      [inodes(relievedInodes)],
    )(after(change));

  test("within reach are those of images, and a few for each remaining image", () => {
    expect(reaches(100n + 1_000n + 64n)).toBeTrue();
    expect(reaches(100n + 1_000n + 65n)).toBeFalse();
    expect(reaches(100n + 1_000n + 64n, { removed: 1 })).toBeFalse();
    expect(reaches(100n + 1_000n + 32n, { removed: 1 })).toBeTrue();
  });

  test("count once, and an unmeasured disk has none free", () => {
    expect(reaches(700n, { gainedInodes: new Map([["8:1", 464n]]) })).toBeTrue();
    expect(reaches(701n, { gainedInodes: new Map([["8:1", 464n]]) })).toBeFalse();
    expect(reaches(1_064n, { inodesFree: new Map() })).toBeTrue();
    expect(reaches(1_065n, { inodesFree: new Map() })).toBeFalse();
  });

  test("of an unknown disk count as in reach", () => {
    const elsewhere = { ...inodes(10_000n), device: "8:2" };
    const snapshot = aSnapshot({ filesystems: [disk], images });
    const reach = targetReach({ snapshot, purpose: { kind: "periodic" } }, [elsewhere]);
    expect(reach(after({}))).toBeTrue();
  });
});
