// What a pass that failed says of why.
import { expect, test } from "bun:test";

import { failureOf } from "../../src/gc/pass-events.ts";
import type { ImageBlock } from "../../src/model/reason.ts";
import { containerOutcome, imageOutcome, imagePlan, pass, removedImage } from "../report/build.ts";

const blockedBy = (...blocks: readonly ImageBlock[]) =>
  pass({
    plan: { images: imagePlan({ blocks, candidates: [] }), containers: null },
    images: imageOutcome({ end: "blocked", items: [] }),
  });

const held: ImageBlock = { kind: "on-hold", reason: "", until: null };

test.each([
  [
    "the file and line of a keep rule that cannot be read",
    {
      kind: "keep-rules-invalid",
      problems: [{ source: "/etc/crigc/keep.d/a.list:3", text: "a b", message: "has a space" }],
    },
    "/etc/crigc/keep.d/a.list:3: has a space",
  ],
  ["what the kubelet answered", { kind: "pods-unknown", message: "status 500" }, "status 500"],
] as const)("a pass failure names %s, even during a hold", (_, block, words) => {
  expect(failureOf(blockedBy(held, block))).toContain(words);
});

test("a hold alone is not a failure", () => {
  expect(failureOf(blockedBy(held))).toBeNull();
});

test("a pod source that is not ready fails a container pass, but not one that ended the pressure by images", () => {
  const errors = ["the pod source kubelet-dir is not ready: it does not exist"];
  const containers = containerOutcome({ errors });
  expect(failureOf(pass({ kind: "container-gc", images: null, containers }))).toBe(errors.join());
  const images = imageOutcome({ end: "target-reached", items: [] });
  expect(failureOf(pass({ kind: "pressure", images, containers }))).toBeNull();
});

test("failed removals are counted among those that were tried, without images that were skipped", () => {
  const images = imageOutcome({
    items: [
      removedImage(1),
      removedImage(2, { result: { kind: "failed", message: "busy", code: "failed" } }),
      removedImage(3, { result: { kind: "skipped", reason: { kind: "pinned" } } }),
    ],
  });
  expect(failureOf(pass({ images, containers: null }))).toBe("1 of 2 image removals failed: busy");
});
