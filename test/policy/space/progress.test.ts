import { expect, test } from "bun:test";

import { type Progress, targetsMet } from "../../../src/policy/space/progress.ts";
import { spaceTarget } from "../../support/build/values.ts";

const progress = (available: bigint, gained: bigint): Progress => ({
  accounting: "measured",
  availableBytes: new Map([["8:1", available]]),
  inodesFree: new Map(),
  gainedBytes: new Map([["8:1", gained]]),
  gainedInodes: new Map(),
  storeBytes: null,
  imageCount: 0,
  mayAppear: false,
  reportedBytes: 0n,
  removed: 0,
});

test("a pass that gained nothing has not gained enough, even where nothing was wanted at its start", () => {
  const target = spaceTarget(100n, 0n);
  expect(targetsMet([target], progress(90n, 0n))).toBeNull();
  expect(targetsMet([target], progress(90n, 1n))).toBe("own-gain-reached");
  expect(targetsMet([target], progress(100n, 0n))).toBe("target-reached");
});
