// How soon a pass under pressure is followed by the next.

import { expect, test } from "bun:test";

import type { ContainerOutcome, ImageEnd, ImageItem } from "../../../src/model/outcome.ts";
import {
  effectOf,
  type PassEffect,
  pauseAfter,
  reclaimTargets,
} from "../../../src/policy/pressure/pace.ts";
import { spaceTarget } from "../../support/build/values.ts";

const item = (kind: ImageItem["result"]["kind"]) => ({ result: { kind } }) as ImageItem;
const images = (end: ImageEnd, ...items: readonly ImageItem[]) => ({ end, items }) as never;
const containers = (end: ContainerOutcome["end"], ...kinds: readonly string[]) =>
  ({
    end,
    containers: kinds.map((kind) => ({ result: { kind } })),
    sandboxes: [],
    logs: [],
  }) as never;

const removed = item("removed");
const passes: readonly (readonly [PassEffect, string, Parameters<typeof effectOf>[0]])[] = [
  ["removed", "own gain", { images: images("own-gain-reached", removed), containers: null }],
  [
    "removed",
    "no candidate left",
    { images: images("candidates-exhausted", removed), containers: null },
  ],
  [
    "removed",
    "a container",
    { images: images("candidates-exhausted"), containers: containers("done", "removed") },
  ],
  [
    "nothing",
    "no candidate",
    { images: images("candidates-exhausted"), containers: containers("done") },
  ],
  ["ruled-out", "held containers", { images: null, containers: containers("blocked", "removed") }],
  [
    "nothing",
    "a refused removal",
    { images: images("candidates-exhausted", item("failed")), containers: null },
  ],
  ["nothing", "a failed list", { images: null, containers: null }],
  [
    "ruled-out",
    "futility",
    { images: images("futile"), containers: containers("done", "removed") },
  ],
  ["ruled-out", "nothing freed", { images: images("nothing-freed", removed), containers: null }],
  ["ruled-out", "a block", { images: images("blocked", removed), containers: null }],
  [
    "ruled-out",
    "the limit of removals",
    { images: images("removal-limit", removed), containers: null },
  ],
  [
    "ruled-out",
    "that limit among containers",
    { images: images("nothing-to-do"), containers: containers("removal-limit", "removed") },
  ],
];

test.each(passes)("the effect of a pass is %s after %s", (effect, _, pass) => {
  expect(effectOf(pass)).toBe(effect);
});

test.each([
  ["removed", "none", [500, 500, 500]],
  ["nothing", "none", [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]],
  ["ruled-out", "none", [10_000, 10_000]],
  ["removed", "kubelet", [10_000, 10_000]],
] as const)(
  "passes with the effect %s, compat %s, are followed by the next after %p ms",
  (effect, compat, pauses) => {
    const after = pauses.map((_, at) =>
      pauseAfter({ effect, compat, idle: effect === "nothing" ? at + 1 : 0, periodMs: 10_000 }),
    );
    expect(after).toEqual([...pauses]);
    expect(pauseAfter({ effect, compat, idle: 5_000, periodMs: 200 })).toBe(200);
  },
);

test("pressure frees down to its targets, with compat kubelet everything for each signal, and nothing unjudged", () => {
  const target = spaceTarget(10n, 5n);
  const verdict = { targets: [target] } as never;
  expect(reclaimTargets("none", ["imagefs.available"], verdict)).toEqual([target]);
  expect(reclaimTargets("none", ["imagefs.available"], null)).toEqual([]);
  expect(reclaimTargets("kubelet", ["imagefs.available"], verdict)).toEqual([
    { kind: "everything", trigger: { kind: "pressure", signal: "imagefs.available" } },
  ]);
});
