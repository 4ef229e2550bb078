import { describe, expect, test } from "bun:test";

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

const code = (it: Pass): number => passExit(it, null);

const skipped = (block: ImageBlock["kind"]): ImageItem => ({
  candidate: aCandidate("a"),
  trigger: { kind: "space" },
  result: { kind: "skipped", reason: { kind: "blocked", block } },
  startedAt: NOW,
  took: duration(0n),
});

describe("the exit of a pass", () => {
  test("is 0 if the target is reached, and 4 if not", () => {
    expect(code(pass(outcome()))).toBe(0);
    expect(code(pass(outcome({ end: "candidates-exhausted" })))).toBe(4);
    expect(code(pass(outcome({ end: "futile" })))).toBe(4);
  });

  test("is 7 for a hold that began during the pass, too", () => {
    expect(code(pass(outcome({ end: "blocked", items: [skipped("on-hold")] })))).toBe(7);
  });

  test("is 3 if the use of an image could not be read during the pass", () => {
    expect(code(pass(outcome({ end: "blocked", items: [skipped("usage-unknown")] })))).toBe(3);
  });

  test("is 3 if a list or a measurement failed between removals", () => {
    expect(code(pass(outcome({ end: "observation-failed", error: "cannot list images" })))).toBe(3);
  });

  test("is 4 if the pass was stopped before it was done, but 0 if it was done", () => {
    expect(code(pass(outcome({ end: "stopped" })))).toBe(4);
    expect(code(pass(null))).toBe(4);
  });

  test("is 3 if the log directories could not be read, whatever else was done", () => {
    const plan = { images: null, containers: planOf({ logs: { kind: "failed", message: "no" } }) };
    const containers = {
      end: "done",
      containers: [],
      sandboxes: [],
      logs: [],
      measuredFreedBytes: null,
      errors: ["logs stay"],
    } as const;
    expect(code(pass(outcome(), { plan, containers }))).toBe(3);
    expect(planExit(plan)).toBe(3);
    expect(planExit({ images: null, containers: planOf({ logs: noLogs }) })).toBeNull();
  });

  test("is 6 if another pass was running", () => {
    const busy = new HostError("lock", "another pass was still running");
    expect(passExit(pass(null, { error: busy.message }), busy)).toBe(6);
  });
});
