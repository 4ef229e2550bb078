import { expect, test } from "bun:test";

import { passExit, planExit } from "../../src/cli/exit.ts";
import { HostError } from "../../src/model/errors.ts";
import { passId } from "../../src/model/ids.ts";
import type { ImageItem, ImageOutcome } from "../../src/model/outcome.ts";
import type { Pass } from "../../src/model/pass.ts";
import type { ImageBlock } from "../../src/model/reason.ts";
import { duration } from "../../src/model/time.ts";
import { noLogs, planOf } from "../support/build/pods.ts";
import { aCandidate, anImagePlan, NOW, spaceTarget } from "../support/build/values.ts";

function outcome(change: Partial<ImageOutcome> = {}): ImageOutcome {
  return {
    end: "target-reached",
    items: [],
    wantedBytes: 10n,
    reportedFreedBytes: 0n,
    measuredFreedBytes: 0n,
    availableBefore: null,
    availableAfter: null,
    capacityBytes: null,
    error: null,
    ghosts: [],
    ...change,
  };
}

function pass(images: ImageOutcome | null, change: Partial<Pass> = {}): Pass {
  return {
    id: passId("20260101T000000Z-000000"),
    kind: "gc",
    purpose: { kind: "periodic" },
    startedAt: NOW,
    endedAt: NOW,
    dryRun: false,
    plan: {
      containers: null,
      images: anImagePlan([aCandidate("a")], { targets: [spaceTarget(100n, 10n)] }),
    },
    images,
    containers: null,
    events: [],
    steps: [],
    error: null,
    ...change,
  };
}

const skipped = (block: ImageBlock["kind"]): ImageItem => ({
  candidate: aCandidate("a"),
  trigger: { kind: "space" },
  result: { kind: "skipped", reason: { kind: "blocked", block } },
  startedAt: NOW,
  took: duration(0n),
});

test.each<[string, ImageOutcome | null, number]>([
  ["reached its target", outcome(), 0],
  ["has no candidate left", outcome({ end: "candidates-exhausted" }), 4],
  ["is futile", outcome({ end: "futile" }), 4],
  ["was put on hold", outcome({ end: "blocked", items: [skipped("on-hold")] }), 7],
  [
    "could not read the use of an image",
    outcome({ end: "blocked", items: [skipped("usage-unknown")] }),
    3,
  ],
  ["could not read a list", outcome({ end: "observation-failed", error: "cannot list" }), 3],
  ["was stopped", outcome({ end: "stopped" }), 4],
  ["was stopped before its images", null, 4],
])("a pass that %s ends so", (_, images, code) => {
  expect(passExit(pass(images), null)).toBe(code);
});

test("a pass or plan whose log directories cannot be read exits 3, whatever else was done", () => {
  const plan = { images: null, containers: planOf({ logs: { kind: "failed", message: "no" } }) };
  const containers = {
    end: "done",
    containers: [],
    sandboxes: [],
    logs: [],
    measuredFreedBytes: null,
    errors: ["logs stay"],
  } as const;
  expect(passExit(pass(outcome(), { plan, containers }), null)).toBe(3);
  expect(planExit(plan)).toBe(3);
  expect(planExit({ images: null, containers: planOf({ logs: noLogs }) })).toBeNull();
});

test("a pass that another one kept waiting too long exits 6", () => {
  const busy = new HostError("lock", "another pass was still running");
  expect(passExit(pass(null, { error: busy.message }), busy)).toBe(6);
});
