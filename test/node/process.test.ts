// Garbage is collected when the process has grown, however little each piece of work allocates; hot code is compiled
// when the process is busy.

import { expect, jest, spyOn, test } from "bun:test";

import { compileWhenBusy, growthCollector, shrinkOnceSettled } from "../../src/node/process.ts";

/** A collector, and the numbers of its checks and collections; each collection frees 10 MiB. */
function processOf(residentMib: number | null) {
  const state = { residentMib, collections: 0, checks: 0 };
  const collectIfGrown = growthCollector(
    () => {
      state.checks += 1;
      return state.residentMib === null ? null : state.residentMib * 1024 * 1024;
    },
    () => {
      state.collections += 1;
      state.residentMib = (state.residentMib ?? 0) - 10;
    },
  );
  return { state, collectIfGrown };
}

test("a process that does not grow collects nothing, and seldom checks", () => {
  const { state, collectIfGrown } = processOf(60);
  for (let call = 0; call < 3200; call += 1) collectIfGrown(1 / 32);
  expect(state.collections).toBe(0);
  expect(state.checks).toBeWithin(50, 110);
});

test.each([
  ["by 16 MiB of what a collection left", [60, 75, 76, 81, 82], [0, 0, 1, 1, 2]],
  ["by 16 MiB of the lowest since", [100, 50, 65, 66], [0, 0, 0, 1]],
  ["only where its memory is known", [null, 60, null, 76], [0, 0, 0, 1]],
])("a process is collected when it has grown %s", (_, resident, collections) => {
  const { state, collectIfGrown } = processOf(null);
  const counts = resident.map((mib) => {
    state.residentMib = mib;
    collectIfGrown();
    return state.collections;
  });
  expect(counts).toEqual(collections);
});

test("memory is given back once, 10 s after a process last grew", () => {
  jest.useFakeTimers();
  using shrink = spyOn(Bun, "shrink").mockImplementation(() => undefined);
  try {
    for (const pauseMs of [9_999, 9_999, 60_000]) {
      shrinkOnceSettled();
      jest.advanceTimersByTime(pauseMs);
    }
    expect(shrink).toHaveBeenCalledTimes(1);
  } finally {
    jest.useRealTimers();
  }
});

test.each([
  ["499 calls in half a second", 499, 1, 1, 0],
  ["500 calls in half a second", 500, 1, 1, 1],
  ["20,000 calls, a few in each pass", 20_000, 100, 1, 0],
  ["a list that counts for 500 calls", 1, 0, 500, 1],
])("%s: hot code is compiled accordingly", (_, calls, pauseMs, weight, expected) => {
  let nowMs = 0;
  let compiled = 0;
  const called = compileWhenBusy(
    () => nowMs,
    () => (compiled += 1),
  );
  for (let call = 0; call < calls; call += 1, nowMs += pauseMs) called(weight);
  expect(compiled).toBe(expected);
});
