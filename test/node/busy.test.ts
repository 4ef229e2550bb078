import { expect, test } from "bun:test";

import { compileWhenBusy } from "../../src/node/process.ts";

/** How often code was asked to be compiled, after these calls, each so many milliseconds after the one before. */
function compiledAfter(calls: number, pauseMs: number): number {
  let nowMs = 0;
  let compiled = 0;
  const called = compileWhenBusy(
    () => nowMs,
    () => (compiled += 1),
  );
  for (let call = 0; call < calls; call += 1) {
    nowMs += pauseMs;
    called();
  }
  return compiled;
}

test("a process that makes many calls in a short time has its code compiled once", () => {
  expect(compiledAfter(499, 1)).toBe(0);
  expect(compiledAfter(500, 1)).toBe(1);
  expect(compiledAfter(20_000, 1)).toBe(1);
});

test("an agent that makes a few calls in each pass never has its code compiled for them, however long it runs", () => {
  expect(compiledAfter(20_000, 100)).toBe(0);
});

test("a long list counts at once by its size", () => {
  let compiled = 0;
  const called = compileWhenBusy(
    () => 0,
    () => (compiled += 1),
  );
  called(499);
  expect(compiled).toBe(0);
  called(0.5);
  expect(compiled).toBe(0);
  called(0.5);
  expect(compiled).toBe(1);
});
