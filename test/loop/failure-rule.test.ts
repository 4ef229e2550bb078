import { expect, test } from "bun:test";

import { FailureRule } from "../../src/loop/agent/failure-rule.ts";

test("the failure rule distinguishes the first failure in a row from later ones, and recovery from success", () => {
  const rule = new FailureRule();
  const runs = [false, true, true, true, false, false, true].map((failed) => rule.note(failed));
  expect(runs).toEqual([
    { kind: "succeeded" },
    { kind: "failed-first" },
    { kind: "failed-again", failures: 2 },
    { kind: "failed-again", failures: 3 },
    { kind: "recovered", failures: 3 },
    { kind: "succeeded" },
    { kind: "failed-first" },
  ]);
  expect(rule.failures()).toBe(1);
});
