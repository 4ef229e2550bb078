// Garbage is collected when the process has grown, however little each piece of work allocates, and not before.
import { expect, test } from "bun:test";

import { growthCollector } from "../../src/node/process.ts";

const MIB = 1024 * 1024;

function processOf(startMib: number) {
  const state = { residentMib: startMib, collections: 0, looks: 0, nowMs: 0 };
  const worked = growthCollector(
    () => {
      state.looks += 1;
      return state.residentMib * MIB;
    },
    () => {
      state.collections += 1;
      state.residentMib -= 10;
    },
    () => state.nowMs,
  );
  return { state, worked };
}

test("a process that does not grow collects nothing, and seldom looks", () => {
  const { state, worked } = processOf(60);
  for (let call = 0; call < 3200; call += 1) worked(1 / 32);
  expect(state.collections).toBe(0);
  expect(state.looks).toBeWithin(50, 110);
});

test("growth is collected, and counts from what a collection left", () => {
  const { state, worked } = processOf(60);
  worked();
  state.residentMib = 75;
  worked();
  expect(state.collections).toBe(0);
  state.residentMib = 76;
  worked();
  expect(state).toMatchObject({ collections: 1, residentMib: 66 });
});

test("of a large process less growth is enough soon after a collection", () => {
  const { state, worked } = processOf(150);
  worked();
  state.residentMib = 166;
  worked();
  state.nowMs = 4_999;
  state.residentMib = 163;
  worked();
  expect(state.collections).toBe(1);
  state.residentMib = 164;
  worked();
  expect(state).toMatchObject({ collections: 2, residentMib: 154 });
  state.nowMs = 9_999;
  state.residentMib = 169;
  worked();
  expect(state.collections).toBe(2);
  state.residentMib = 170;
  worked();
  expect(state.collections).toBe(3);
});

test("of a small one it is not", () => {
  const { state, worked } = processOf(60);
  worked();
  state.residentMib = 76;
  worked();
  state.residentMib = 81;
  worked();
  expect(state.collections).toBe(1);
  state.residentMib = 82;
  worked();
  expect(state.collections).toBe(2);
});

test("growth counts from the lowest that was seen since", () => {
  const { state, worked } = processOf(100);
  worked();
  state.residentMib = 50;
  worked();
  state.residentMib = 67;
  worked();
  expect(state.collections).toBe(1);
});

test("what lives and is not collected is not looked through each time", () => {
  const state = { residentMib: 60, collections: 0 };
  const worked = growthCollector(
    () => state.residentMib * MIB,
    () => (state.collections += 1),
  );
  for (let step = 0; step < 100; step += 1) {
    worked();
    state.residentMib += 2;
  }
  expect(state.collections).toBeWithin(17, 24);
});

test("a machine that does not tell how much memory is resident has no collections forced on it", () => {
  const state = { residentMib: null as number | null, collections: 0 };
  const worked = growthCollector(
    () => (state.residentMib === null ? null : state.residentMib * MIB),
    () => (state.collections += 1),
  );
  for (let step = 0; step < 10; step += 1) worked();
  expect(state.collections).toBe(0);
  for (const residentMib of [60, null, 76]) {
    state.residentMib = residentMib;
    worked();
  }
  expect(state.collections).toBe(1);
});
