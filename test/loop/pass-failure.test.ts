// What a pass that failed says of why.
import { expect, test } from "bun:test";

import { failureOf } from "../../src/loop/pass-failure.ts";
import type { ImageBlock } from "../../src/model/reason.ts";
import { imageOutcome, imagePlan, pass } from "../report/build.ts";

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
] as const)("names %s, although a hold stands beside it", (_, block, words) => {
  expect(failureOf(blockedBy(held, block))).toContain(words);
});

test("a hold alone is no failure", () => {
  expect(failureOf(blockedBy(held))).toBeNull();
});
