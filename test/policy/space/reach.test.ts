import { expect, test } from "bun:test";

import { Meter } from "../../../src/execute/image/meter.ts";
import type { ImageTarget, Purpose } from "../../../src/model/plan.ts";
import type { Image } from "../../../src/model/snapshot.ts";
import { targetReach } from "../../../src/policy/space/reach.ts";
import { aFilesystem, anImage, aSnapshot, GIB, spaceTarget } from "../../support/build/values.ts";

/** On a disk of 100 GiB with 3 GiB available and images of 8 GiB: 10 GiB can be reached, 15 GiB cannot. */
const milder = spaceTarget(10n * GIB, 7n * GIB);
const stricter = spaceTarget(15n * GIB, 12n * GIB);
const filesystem = aFilesystem({ availableBytes: 3n * GIB, imageUsedBytes: 8n * GIB });

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
    store: null,
    storeBytes: null,
    imageCount: 1,
    accounting: "measured",
  });
  await meter.start();
  return canReach(meter.progress());
}

test("the pressure on a disk ends with the last of its thresholds, so all of them have to be in reach", async () => {
  expect(await isUseful(pressure, [milder])).toBeTrue();
  expect(await isUseful(pressure, [milder, stricter])).toBeFalse();
});

test("under pressure a disk that can be helped is, whatever another one is like", async () => {
  const other = { ...stricter, device: "8:2", path: "/other" };
  expect(await isUseful(pressure, [milder, other])).toBeTrue();
});

test("of a periodic pass one target in reach is enough", async () => {
  expect(await isUseful({ kind: "periodic" }, [milder, stricter])).toBeTrue();
});

test("an image that is listed twice can be gained once", async () => {
  const image = anImage("a", { sizeBytes: 2n * GIB });
  expect(await isUseful({ kind: "periodic" }, [stricter], [image, image])).toBeFalse();
  const other = anImage("b", { sizeBytes: 2n * GIB });
  expect(await isUseful({ kind: "periodic" }, [stricter], [image, other])).toBeTrue();
});
