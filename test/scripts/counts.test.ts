// The counts of scripts/test: a suite that broke off, or ran nothing, never passes for a good one.

import { expect, test } from "bun:test";

import { countsInJunit, countsInLine, judged } from "../../scripts/test.d/counts.ts";

const good = {
  minutesMax: 5,
  exitCode: 0,
  signal: null,
  counts: { passed: 3, failed: 0, skipped: 1 },
};

test("a JUnit report is counted by its header, skipped tests separately", () => {
  const xml =
    '<?xml version="1.0"?>\n<testsuites name="bun test" tests="9" assertions="4" failures="2" skipped="3" time="1.5">';
  expect(countsInJunit(xml)).toEqual({ passed: 4, failed: 2, skipped: 3 });
  expect(countsInJunit("")).toBeUndefined();
});

test("the last line of an executable suite is read, others are not", () => {
  expect(countsInLine("5 passed, 1 failed")).toEqual({ passed: 5, failed: 1, skipped: 0 });
  expect(countsInLine("5 passed, 0 failed, 2 skipped")).toEqual({
    passed: 5,
    failed: 0,
    skipped: 2,
  });
  expect(countsInLine("then 5 passed, 0 failed")).toBeUndefined();
});

test.each([
  ["all is well", good, 0, ""],
  ["it is ended by a signal", { ...good, exitCode: 143, signal: "SIGTERM" }, 1, /./],
  ["it left no counts", { ...good, counts: undefined }, 1, /./],
  ["it exits with an error although no test failed", { ...good, exitCode: 1 }, 1, /./],
  ["no test ran", { ...good, counts: { passed: 0, failed: 0, skipped: 4 } }, 1, /./],
  ["tests failed", { ...good, exitCode: 1, counts: { passed: 3, failed: 2, skipped: 0 } }, 2, ""],
])("the failures of a suite are counted once when %s", (_, run, failures, note) => {
  const counted = judged(run);
  expect(counted.failed).toBe(failures);
  expect(counted.note).toMatch(note);
});
