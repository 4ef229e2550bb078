// How soon a pass under pressure is followed by the next.

import { expect, test } from "bun:test";

import type { ContainerOutcome, ImageEnd, ImageItem } from "../../../src/model/pass.ts";
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

const [removed, refused] = [item("removed"), item("failed")];
const noContainers = containers("done");
const oneContainer = containers("done", "removed");
type Pass = Parameters<typeof effectOf>[0];

test.each<[PassEffect, string, Pass["images"], Pass["containers"]]>([
  ["removed", "own gain", images("own-gain-reached", removed), null],
  ["removed", "no candidate left", images("candidates-exhausted", removed), null],
  ["removed", "a container", images("candidates-exhausted"), oneContainer],
  ["nothing", "no candidate", images("candidates-exhausted"), noContainers],
  ["ruled-out", "held containers", null, containers("blocked", "removed")],
  ["nothing", "a refused removal", images("candidates-exhausted", refused), null],
  ["nothing", "a failed list", null, null],
  ["ruled-out", "futility", images("futile"), oneContainer],
  ["ruled-out", "nothing freed", images("nothing-freed", removed), null],
  ["ruled-out", "a block", images("blocked", removed), null],
  [
    "removed",
    "futility, once others are stopped",
    images("futile"),
    containers("stopped", "removed"),
  ],
  ["nothing", "futility, with none of the others gone", images("futile"), containers("stopped")],
  [
    "removed",
    "a part of a log directory",
    null,
    { ...Object(containers("stopped")), logs: [{ result: { kind: "skipped" }, bytes: 1n }] },
  ],
])("the effect of a pass is %s after %s", (effect, _, ofImages, ofContainers) => {
  expect(effectOf({ images: ofImages, containers: ofContainers })).toBe(effect);
});

const HAS_IDLE: ReadonlySet<string> = new Set(["nothing", "failed"]);

test.each([
  ["removed", "none", [500, 500, 500]],
  ["nothing", "none", [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]],
  ["failed", "none", [500, 1_000, ...Array<number>(28).fill(2_000), 10_000, 10_000]],
  ["ruled-out", "none", [10_000, 10_000]],
  ["removed", "kubelet", [10_000, 10_000]],
] as const)(
  "passes with the effect %s, compat %s, are followed by the next after %p ms",
  (effect, compat, pauses) => {
    const after = pauses.map((_, at) =>
      pauseAfter({ effect, compat, idle: HAS_IDLE.has(effect) ? at + 1 : 0, periodMs: 10_000 }),
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
