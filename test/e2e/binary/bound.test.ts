// What removing all unused images can free is bounded by their layers: plan and gc give up on a disk that images cannot relieve.
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { type ImageDescription, imageIdOf } from "../../support/fake-runtime/describe.ts";
import { crio137 } from "../../support/fake-runtime/traits.ts";
import { diskObstacle, layer, MiB, type SmallDisk, smallDisk } from "./disk.ts";
import { type Json, type NodeOptions, startNode } from "./node.ts";

const flags = ["--minimum-image-ttl-duration=0s", "--eviction-hard=off"];

interface Family {
  readonly members: number;
  /** What each has beside the base, in MiB. */
  readonly own: number;
  /** How much of what it takes an image reports. */
  readonly share?: number;
}

/** Images on a base of 10 MiB, which is one too, and the first. */
const family = (name: string, { members, own, share = 1 }: Family): readonly ImageDescription[] =>
  Array.from({ length: members + 1 }, (_, index) => {
    const layers = [layer(`${name} base`, 10)];
    if (index > 0) layers.push(layer(`${name}-${index}`, own));
    const bytes = layers.reduce((sum, one) => sum + one.bytes, 0);
    return {
      id: imageIdOf(`${name}-${index}`),
      repoTags: [`registry.example/${name}:${index}`],
      sizeBytes: bytes * share,
      layers,
    };
  });
const apps = family("app", { members: 12, own: 1 });

/** Data of other programs. */
const fill = (disk: SmallDisk, name: string, mebibytes: number): void =>
  writeFileSync(join(disk.directory, name), new Uint8Array(mebibytes * MiB).fill(1));

const nodeOn = (disk: SmallDisk, options: NodeOptions, usedBytes: number | null) => {
  const directory = join(disk.directory, "store");
  const imageFilesystems = [{ mountpoint: directory, usedBytes }];
  return startNode({
    flags,
    ...options,
    node: { imageFilesystems, ...options.node },
    store: { directory },
  });
};
const crio = (images: readonly ImageDescription[]): NodeOptions => ({
  node: { images },
  traits: crio137,
});
/** CRI-O reports the use of a directory of metadata. */
const METADATA = 65_000;

describe.skipIf(diskObstacle !== null)("a disk that its images cannot relieve", () => {
  test("keeps all of them on CRI-O, whose sizes count a shared base in each image, and says what fills it", async () => {
    await using disk = await smallDisk(100 * MiB);
    await using it = await nodeOn(disk, crio(apps), METADATA);
    fill(disk, "others", 73);
    const high = ["--image-gc-high-threshold=72", "--image-gc-low-threshold=71"];
    const [futility] = (await it.json(["plan", "--images", ...high])).images.futility;
    expect(futility).toMatchObject({ futile: true });
    expect(futility.boundBytes).toBeWithin(22 * MiB, 23 * MiB);
    expect(futility.breakdown.imagesAtLeastBytes).toBeWithin(21 * MiB, 22 * MiB + 1);
    expect(futility.breakdown.imagesBytes).toBeWithin(22 * MiB, 23 * MiB);
    expect(futility.breakdown.otherBytes).toBeWithin(72 * MiB, 74 * MiB);
    const report = await it.json(["gc", "--images", ...high], 4);
    expect(report.images.end).toBe("futile");
    expect(it.removedImages()).toEqual([]);
  });

  test("keeps all of them where three removals showed how much smaller than its images a runtime reports them", async () => {
    await using disk = await smallDisk(100 * MiB);
    // Without a figure and a measurement the bound would be five times what is reported.
    const images = family("old", { members: 5, own: 4, share: 0.5 });
    await using it = await nodeOn(disk, { node: { images } }, null);
    fill(disk, "others", 60);
    expect((await it.json(["gc", "--images"])).images.end).toBe("target-reached");
    expect(it.removedImages()).toHaveLength(3);
    for (const { id } of images) it.runtime.node.removeImage(id);
    for (const one of family("new", { members: 4, own: 4, share: 0.5 }))
      it.runtime.node.addImage(one);
    fill(disk, "more", 8);
    const [near] = (await it.json(["plan", "--images"])).images.futility;
    expect(near).toMatchObject({ futile: false });
    const high = ["--image-gc-high-threshold=60", "--image-gc-low-threshold=59"];
    const [far] = (await it.json(["plan", "--images", ...high])).images.futility;
    expect(far).toMatchObject({ futile: true });
    expect(far.boundBytes).toBeWithin(32 * MiB, 34 * MiB);
    expect((await it.json(["gc", "--images", ...high], 4)).images.end).toBe("futile");
    expect(it.removedImages()).toHaveLength(3);
  });
});

describe.skipIf(diskObstacle !== null)("a budget for the image store", () => {
  test("counts a shared base once on CRI-O: what is within it stays, and what is over it goes until it fits", async () => {
    await using disk = await smallDisk(100 * MiB);
    await using it = await nodeOn(disk, crio(apps), METADATA);
    const removed = async (budget: string): Promise<number> => {
      const report: Json = await it.json(["gc", "--images", `--image-store-budget=${budget}`]);
      return report.images.items.length;
    };
    expect(await removed("23Mi")).toBe(0);
    expect(await removed("18Mi")).toBe(4);
    expect(await removed("18Mi")).toBe(0);
  });
});

describe.skipIf(diskObstacle !== null)("df on a fresh ledger", () => {
  test("says a range where no image tells how large a base is, and never more than is in use", async () => {
    await using disk = await smallDisk(100 * MiB);
    await using it = await nodeOn(disk, crio(apps.slice(1)), METADATA);
    const { images, filesystems } = await it.json(["df"]);
    const [{ usedBytes }] = filesystems;
    expect(usedBytes).toBeWithin(22 * MiB, 23 * MiB);
    for (const field of ["uniqueBytes", "uniqueAtMostBytes", "sharedBytes", "sharedAtMostBytes"])
      expect(images[field]).toBeLessThanOrEqual(usedBytes);
    expect(images.uniqueAtLeastBytes).toBeLessThanOrEqual(22 * MiB);
    expect((await it.crigc("df")).stdout).toMatch(/^all +12 +11\.\d MiB to 22\.\d MiB +0 B /m);
  });
});
