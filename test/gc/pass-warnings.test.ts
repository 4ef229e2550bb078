// What a pass that failed says of why, and which shortfall is told.
import { expect, test } from "bun:test";

import { blocksOf, failureOf, imageEvents, shortageOf } from "../../src/gc/pass-warnings.ts";
import type { Pass } from "../../src/model/pass.ts";
import type { ImageTarget } from "../../src/model/plan.ts";
import type { RemovalBlock } from "../../src/model/reason.ts";
import {
  containerOutcome,
  GIB,
  imageOutcome,
  imagePlan,
  NOW,
  pass,
  removedImage,
} from "../report/build.ts";

const blockedBy = (...blocks: readonly RemovalBlock[]) =>
  pass({
    plan: { images: imagePlan({ blocks, candidates: [] }), containers: null },
    images: imageOutcome({ end: "blocked", items: [] }),
  });

const held: RemovalBlock = { kind: "on-hold", reason: "", until: null };

/** By what began after an image was removed. */
const cutOffBy = (block: RemovalBlock["kind"]) =>
  imageOutcome({
    end: "blocked",
    items: [
      removedImage(1),
      removedImage(2, { result: { kind: "skipped", reason: { kind: "pinned" } } }),
      removedImage(3, { result: { kind: "skipped", reason: { kind: "blocked", block } } }),
    ],
  });

test.each([
  [
    "the file and line of a keep rule that cannot be read",
    {
      kind: "keep-rules-invalid",
      problems: [{ source: "/etc/crigc/keep.d/a.list:3", text: "a b", message: "has a space" }],
    },
    "/etc/crigc/keep.d/a.list:3: has a space",
  ],
  [
    "what is unknown",
    { kind: "usage-unknown", unknown: [{ subject: "sandbox s", message: "status 500" }] },
    "status 500",
  ],
] as const)("a pass failure names %s, even during a hold", (_, block, words) => {
  expect(failureOf(blockedBy(held, block))).toContain(words);
});

test.each([
  ["cannot list images: reset", "cannot list images: reset"],
  [null, "a call or a measurement failed, so the pass stopped"],
])("an observation that failed with %p is the failure of its pass", (error, words) => {
  const images = imageOutcome({ end: "observation-failed", error, items: [] });
  expect(failureOf(pass({ images, containers: null }))).toBe(words);
});

test("a hold alone is not a failure", () => {
  expect(failureOf(blockedBy(held))).toBeNull();
});

test.each<[string, Partial<Pass>, string | null]>([
  ["a pass that failed as a whole", { error: "no answer", images: imageOutcome() }, "no answer"],
  [
    "two errors of containers",
    { images: null, containers: containerOutcome({ errors: ["a", "b"] }) },
    "a; b",
  ],
  [
    "too little space",
    { images: imageOutcome({ end: "candidates-exhausted" }) },
    "no candidates left, target not reached",
  ],
  [
    "too many images",
    { images: imageOutcome({ end: "candidates-exhausted", wantedBytes: null }) },
    null,
  ],
  [
    "a disk without figures",
    { images: imageOutcome({ end: "invalid-capacity", items: [] }) },
    "invalid filesystem figures",
  ],
  [
    "a use that became unknown",
    { images: cutOffBy("usage-unknown") },
    "cannot tell which images are in use",
  ],
  ["a hold that began", { images: cutOffBy("on-hold") }, null],
])("the failure of %s", (_, change, expected) => {
  const failure = failureOf(pass({ containers: null, ...change }));
  if (expected === null) expect(failure).toBeNull();
  else expect(failure).toContain(expected);
});

test("a pass whose removals free nothing raises one event, with what fills each disk", () => {
  const inodes = { bound: 1n, needed: 2n, free: 3n, capacity: 4n };
  const breakdown = {
    capacityBytes: GIB,
    availableBytes: 0n,
    usedBytes: GIB,
    imagesBytes: 0n,
    containersBytes: null,
    otherBytes: GIB,
  };
  const one = {
    filesystem: "/",
    boundBytes: 0n,
    neededBytes: 0n,
    futile: false,
    inodes,
    breakdown,
  };
  const told = (): readonly string[] =>
    imageEvents(
      imagePlan({ futility: [one, { ...one, filesystem: "/other" }, one] }),
      imageOutcome({
        end: "nothing-freed",
        nothingFreed: { filesystem: "/", removals: 3, estimatedBytes: GIB, gainedBytes: 0n },
      }),
      { id: pass().id, now: NOW },
    ).map(({ message }) => message);
  expect(told()).toEqual([expect.stringMatching(/: \S+ has [^;]+; \/other has [^;]+$/)]);
});

test("a pod source that is not ready fails a container pass, but not one that ended the pressure by images", () => {
  const errors = ["the pod source kubelet-dir is not ready: it does not exist"];
  const containers = containerOutcome({ errors });
  expect(failureOf(pass({ kind: "container-gc", images: null, containers }))).toBe(errors.join());
  const images = imageOutcome({ end: "target-reached", items: [] });
  expect(failureOf(pass({ kind: "pressure", images, containers }))).toBeNull();
  expect(failureOf(pass({ kind: "pressure", images: null, containers }))).toBe(errors.join());
});

test("a failure counts failed removals among those that were tried; skipped images do not count", () => {
  const images = imageOutcome({
    items: [
      removedImage(1),
      removedImage(2, { result: { kind: "failed", message: "busy", code: "failed" } }),
      removedImage(3, { result: { kind: "skipped", reason: { kind: "pinned" } } }),
    ],
  });
  expect(failureOf(pass({ images, containers: null }))).toBe("1 of 2 image removals failed: busy");
});

test("a pass that frees too little reports the image budget only if no disk is short of space", () => {
  const disks = imagePlan().targets;
  const budget: ImageTarget = {
    kind: "store-bytes",
    trigger: { kind: "budget" },
    maximumBytes: 20n * GIB,
    wantedBytes: 4n * GIB,
  };
  const told = (targets: readonly ImageTarget[]): readonly string[] =>
    imageEvents(
      imagePlan({ targets, futility: [] }),
      imageOutcome({ end: "candidates-exhausted" }),
      { id: pass().id, now: NOW },
    ).map(({ message }) => message);
  expect(told([budget])).toEqual([expect.stringMatching(/of a budget of 20.0 GiB.*[^:\s]$/)]);
  expect(told([budget, ...disks])).toEqual([
    expect.stringMatching(/^The image filesystem \(50.0 GiB\) is 88% full/),
  ]);
});

test("a pass with a failed removal raises no event about too little space", () => {
  const items = [removedImage(2, { result: { kind: "failed", message: "busy", code: "failed" } })];
  const outcome = imageOutcome({ end: "candidates-exhausted", items });
  const about = { id: pass().id, now: NOW } as const;
  expect(imageEvents(imagePlan(), outcome, about)).toEqual([]);
});

test("an invalid capacity is reported only by a pass that it ended", () => {
  const blocks = [{ kind: "invalid-capacity", path: "/", message: "it reports 0 bytes" }] as const;
  const told = (end: "invalid-capacity" | "age-removal-errors") =>
    imageEvents(imagePlan({ blocks }), imageOutcome({ end, items: [] }), {
      id: pass().id,
      now: NOW,
    }).map(({ reason }) => reason);
  expect(told("invalid-capacity")).toEqual(["InvalidDiskCapacity"]);
  expect(told("age-removal-errors")).toEqual([]);
});

test("a pass that frees too few inodes reports it", () => {
  const inodes: ImageTarget = {
    kind: "free-inodes",
    trigger: { kind: "space" },
    device: "8:1",
    path: "/",
    inodesFree: 2n,
    wantedInodes: 1n,
    relievedInodes: 1n,
  };
  const outcome = imageOutcome({ end: "candidates-exhausted", items: [], wantedBytes: null });
  const about = { id: pass().id, now: NOW } as const;
  const told = (targets: readonly ImageTarget[]) =>
    imageEvents(imagePlan({ targets, futility: [] }), outcome, about).map(({ message }) => message);
  expect(told([inodes])).toEqual([expect.stringContaining("Cannot free enough inodes")]);
  expect(shortageOf(imagePlan({ targets: [inodes] }), outcome)).toBe("inodes");
  expect(told([])).toEqual([]);
});

test("a block that begins during a pass counts like a block of its plan", () => {
  const reason = { kind: "blocked", block: "usage-unknown" } as const;
  const items = [removedImage(1, { result: { kind: "skipped", reason } })];
  const plan = { images: imagePlan({ blocks: [held] }), containers: null };
  expect(blocksOf({ plan, images: imageOutcome({ items }) })).toEqual(["on-hold", "usage-unknown"]);
});
