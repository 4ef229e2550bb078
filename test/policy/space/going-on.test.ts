import { describe, expect, test } from "bun:test";

import { Meter } from "../../../src/gc/meter.ts";
import { chainId } from "../../../src/model/ids.ts";
import type { Ledger } from "../../../src/model/ledger.ts";
import type { ImageLimits } from "../../../src/model/limits.ts";
import type { ImageItem } from "../../../src/model/outcome.ts";
import type { ImageCandidate, ImagePlan, ImageTarget, Purpose } from "../../../src/model/plan.ts";
import type { Image, Snapshot } from "../../../src/model/snapshot.ts";
import { duration } from "../../../src/model/time.ts";
import { targetReach } from "../../../src/policy/space/futility.ts";
import {
  lackedBytes,
  metAfterAll,
  type Progress,
  targetsMet,
} from "../../../src/policy/space/targets.ts";
import {
  aCandidate,
  aFilesystem,
  aLedger,
  anImage,
  aSnapshot,
  defaultLimits,
  GIB,
  NOW,
  spaceTarget,
} from "../../support/build/values.ts";

const progress = (available: bigint, gained: bigint): Progress => ({
  accounting: "measured",
  availableBytes: new Map([["8:1", available]]),
  inodesFree: new Map(),
  gainedBytes: new Map([["8:1", gained]]),
  gainedInodes: new Map(),
  storeBytes: null,
  imageCount: 0,
  reportedBytes: 0n,
  estimatedBytes: 0n,
  removed: 0,
});

test("a pass that freed nothing has not freed enough, even with an initial target of zero", () => {
  const target = spaceTarget(100n, 0n);
  expect(targetsMet([target], progress(90n, 0n))).toBeNull();
  expect(targetsMet([target], progress(90n, 1n))).toBe("own-gain-reached");
  expect(targetsMet([target], progress(100n, 0n))).toBe("target-reached");
});

test("with sizes as reported a removal has to be made where nothing is wanted, unless there was none to make", () => {
  const reported = { ...progress(0n, 0n), accounting: "reported" } as const;
  expect(targetsMet([spaceTarget(100n, 0n)], reported)).toBeNull();
  expect(metAfterAll([spaceTarget(100n, 0n)], reported)).toBe("target-reached");
});

describe("a target for the number of images", () => {
  const target: ImageTarget = {
    kind: "image-count",
    trigger: { kind: "count" },
    maximumImages: 10,
    wantedImages: 1,
  };

  test.each([
    [9, "target-reached"],
    [10, "target-reached"],
    [11, null],
  ] as const)("with %i of 10 images ends in %p", (imageCount, end) => {
    expect(targetsMet([target], { ...progress(0n, 0n), imageCount })).toBe(end);
  });
});

describe("a budget for the store", () => {
  const target: ImageTarget = {
    kind: "store-bytes",
    trigger: { kind: "budget" },
    maximumBytes: 100n,
    wantedBytes: 20n,
  };
  const at = (change: Partial<Progress>) =>
    targetsMet([target], { ...progress(0n, 0n), storeBytes: 101n, ...change });

  test("counts shared layers once if the runtime does not report the store's use, and adds up sizes with reported accounting", () => {
    expect(at({ storeBytes: null, reportedBytes: 50n, estimatedBytes: 19n })).toBeNull();
    expect(at({ storeBytes: null, estimatedBytes: 20n })).toBe("target-reached");
    expect(at({ accounting: "reported", storeBytes: 1n, reportedBytes: 19n })).toBeNull();
    expect(at({ accounting: "reported", reportedBytes: 21n })).toBe("target-reached");
  });

  test("and a target for space are met when both are", () => {
    const space = spaceTarget(100n, 10n);
    const both = (change: Partial<Progress>) =>
      targetsMet([space, target], { ...progress(90n, 10n), storeBytes: 101n, ...change });
    expect(both({})).toBeNull();
    expect(both({ storeBytes: 100n })).toBe("own-gain-reached");
  });
});

describe("a target for inodes", () => {
  const target: ImageTarget = {
    kind: "free-inodes",
    trigger: { kind: "inodes" },
    device: "8:1",
    path: "/",
    inodesFree: 500n,
    wantedInodes: 100n,
    relievedInodes: 450n,
  };
  const at = (free: bigint, gained: bigint) =>
    targetsMet([target], {
      ...progress(0n, 0n),
      inodesFree: new Map([["8:1", free]]),
      gainedInodes: new Map([["8:1", gained]]),
    });

  test("is met by free inodes, or by what the pass itself freed", () => {
    expect(at(499n, 99n)).toBeNull();
    expect(at(500n, 0n)).toBe("target-reached");
    expect(at(499n, 100n)).toBe("own-gain-reached");
  });

  test("of space is not met by another disk", () => {
    const space = spaceTarget(0n, 1n);
    expect(targetsMet([space], { ...progress(0n, 0n), availableBytes: new Map() })).toBeNull();
  });

  test("is not met by space, nor by another disk", () => {
    expect(targetsMet([target], progress(1_000n, 1_000n))).toBeNull();
    expect(targetsMet([{ ...target, device: "8:2" }], progress(0n, 0n))).toBeNull();
  });
});

describe("what a target lacks", () => {
  const budget: ImageTarget = {
    kind: "store-bytes",
    trigger: { kind: "budget" },
    maximumBytes: 100n,
    wantedBytes: 20n,
  };
  const count: ImageTarget = {
    kind: "image-count",
    trigger: { kind: "count" },
    maximumImages: 1,
    wantedImages: 1,
  };
  const store = (storeBytes: bigint | null) => ({ ...progress(0n, 0n), storeBytes });

  test.each<[string, ImageTarget, Progress, bigint | null]>([
    ["is what the disk lacks", spaceTarget(100n, 40n), progress(90n, 0n), 10n],
    ["is what the own gain lacks, if that is less", spaceTarget(100n, 40n), progress(10n, 35n), 5n],
    [
      "is all of it on a disk that was not measured",
      spaceTarget(100n, 200n),
      { ...progress(0n, 0n), availableBytes: new Map(), gainedBytes: new Map() },
      100n,
    ],
    ["is what the store has above its budget", budget, store(130n), 30n],
    ["is unknown for a store that is not measured", budget, store(null), null],
    ["is no number of bytes for a count", count, progress(0n, 0n), null],
  ])("%s", (_, target, now, lacked) => {
    expect(lackedBytes(target, now)).toBe(lacked);
  });
});

describe("whether targets can be reached", () => {
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
    reportedBytes: 0n,
    estimatedBytes: 0n,
    removed: 0,
    ...change,
  });

  /** How a pass judges on this node; candidates are its images in order. */
  const reachOf = (
    {
      snapshot,
      purpose = { kind: "periodic" },
      ledger = aLedger(),
      candidates = [],
      change = {},
    }: {
      readonly snapshot: Snapshot;
      readonly purpose?: Purpose;
      readonly ledger?: Ledger;
      readonly candidates?: ImagePlan["candidates"];
      readonly change?: Partial<ImageLimits>;
    },
    targets: readonly ImageTarget[],
  ) =>
    targetReach(
      {
        snapshot,
        purpose,
        ledger,
        limits: { ...defaultLimits, images: { ...defaultLimits.images, ...change } },
      },
      { targets, candidates },
    );

  const removed = (candidate: ImageCandidate, measuredBytes = 0n): ImageItem => ({
    candidate,
    trigger: { kind: "space" },
    result: {
      kind: "removed",
      reportedBytes: candidate.image.sizeBytes,
      measuredBytes,
      settled: "at-once",
    },
    startedAt: NOW,
    took: duration(0n),
  });

  const pressure: Purpose = {
    kind: "pressure",
    signals: ["nodefs.available", "imagefs.available"],
  };

  async function isUseful(
    purpose: Purpose,
    targets: readonly ImageTarget[],
    images: readonly Image[] = [],
  ): Promise<boolean> {
    const snapshot = aSnapshot({ filesystems: [filesystem], images });
    const canReach = reachOf({ snapshot, purpose }, targets);
    const meter = new Meter({
      disk: { measure: async () => filesystem },
      timer: { monotonicNs: () => 0n },
      targets,
      stores: [],
      storeBytes: null,
      imageCount: 1,
      accounting: "measured",
    });
    await meter.start();
    return canReach(meter.progress(), []);
  }

  test("pressure on a disk can be ended only if all of its thresholds are in reach", async () => {
    expect(await isUseful(pressure, [milder])).toBeTrue();
    expect(await isUseful(pressure, [milder, stricter])).toBeFalse();
  });

  test("one target in reach is enough for a periodic pass", async () => {
    expect(await isUseful({ kind: "periodic" }, [milder, stricter])).toBeTrue();
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
    const reaches = (
      relievedInodes: bigint,
      change: Partial<Progress> = {},
      items: readonly ImageItem[] = [],
    ): boolean =>
      reachOf({ snapshot: aSnapshot({ filesystems: [disk], images }) }, [inodes(relievedInodes)])(
        after(change),
        items,
      );

    test("within reach are those of images, and a few for each remaining image", () => {
      expect(reaches(100n + 1_000n + 64n)).toBeTrue();
      expect(reaches(100n + 1_000n + 65n)).toBeFalse();
      expect(reaches(100n + 1_000n + 64n, {}, [removed(aCandidate("a"))])).toBeFalse();
      expect(reaches(100n + 1_000n + 32n, {}, [removed(aCandidate("a"))])).toBeTrue();
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
      expect(reachOf({ snapshot }, [elsewhere])(after({}), [])).toBeTrue();
    });
  });

  describe("the layers of what is left", () => {
    const chain = (word: string) => ({ chain: chainId(word), builtAt: null });
    const sized = (word: string, gibibytes: bigint) =>
      aCandidate(word, { image: anImage(word, { sizeBytes: gibibytes * GIB }) });
    /** Two images of a base of 4 GiB, which is one too, and one of its own: 7 GiB in all, 15 GiB as reported. */
    const [one, two, base, lone] = [
      sized("one", 5n),
      sized("two", 5n),
      sized("base", 4n),
      sized("lone", 1n),
    ];
    const candidates = [one, two, base, lone].map((candidate, at) => ({
      ...candidate,
      sharersKnown: true,
      unscaled: {
        lowerBytes: [1n, 1n, 4n, 1n][at]! * GIB,
        estimateBytes: [1n, 1n, 4n, 1n][at]! * GIB,
        upperBytes: [1n, 1n, 4n, 1n][at]! * GIB,
      },
    }));
    const ledger = aLedger({
      origins: new Map([
        [one.image.id, chain("b/1")],
        [two.image.id, chain("b/2")],
        [base.image.id, chain("b")],
        [lone.image.id, chain("l")],
      ]),
      layers: new Map([
        [chainId("b"), { below: null, chain: [chainId("b")] }],
        [chainId("b/1"), { below: chainId("b"), chain: [chainId("b/1")] }],
        [chainId("b/2"), { below: chainId("b"), chain: [chainId("b/2")] }],
        [chainId("l"), { below: null, chain: [chainId("l")] }],
      ]),
    });
    /** What has to become free so that it is just in reach, to a hundredth of a GiB; nothing is free now. */
    const boundOf = (
      items: readonly ImageItem[],
      runtime: Partial<Snapshot["runtime"]> = {},
      change: Partial<ImageLimits> = {},
    ) => {
      const images = candidates.map(({ image }) => image);
      const disk = aFilesystem({ availableBytes: 0n, imageUsedBytes: 65_000n });
      const snapshot = aSnapshot({ images, filesystems: [disk] });
      const node = { ...snapshot, runtime: { ...snapshot.runtime, ...runtime } };
      const reaches = (bytes: bigint) =>
        reachOf({ snapshot: node, ledger, candidates, change }, [spaceTarget(bytes, bytes)])(
          after({ availableBytes: new Map([["8:1", 0n]]) }),
          items,
        );
      let [low, high] = [0n, 100n * GIB];
      while (high - low > GIB / 100n) {
        const middle = (low + high) / 2n;
        if (reaches(middle)) low = middle;
        else high = middle;
      }
      return Math.round(Number(low) / Number(GIB));
    };
    const crio = { name: "cri-o", version: "1.37.0" };

    test("are fewer after each removal, in whatever order", () => {
      const [first, second, third, fourth] = candidates.map((candidate) => removed(candidate));
      expect(boundOf([first!], crio)).toBe(6);
      expect(boundOf([first!, second!], crio)).toBe(5);
      expect(boundOf([first!, second!, third!], crio)).toBe(1);
      expect(boundOf([first!, second!, third!, fourth!], crio)).toBe(0);
      expect(boundOf([fourth!, third!], crio)).toBe(6);
      expect(boundOf([fourth!, third!, second!], crio)).toBe(5);
    });

    test("are left as they were by what was not removed, and do not count with reported sizes", () => {
      const failed: ImageItem = {
        ...removed(candidates[0]!),
        result: { kind: "failed", message: "busy", code: "failed" },
      };
      expect(boundOf([failed], crio)).toBe(7);
      expect(boundOf([], crio, { accounting: "reported" })).toBe(75);
    });
  });
});
