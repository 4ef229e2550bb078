// The counts of scripts/test: a suite that broke off, or ran nothing, never passes for a good one.

import { expect, test } from "bun:test";

import { countsInJunit, countsInLine, failuresIn, judged } from "../../scripts/counts.ts";

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

test("the counts of a good run are unchanged", () => {
  expect(judged(good)).toEqual({ passed: 3, failed: 0, skipped: 1, note: "" });
});

test.each([
  ["it is ended by a signal", { ...good, exitCode: 143, signal: "SIGTERM" }],
  ["it left no counts", { ...good, counts: undefined }],
  ["it exits with an error although no test failed", { ...good, exitCode: 1 }],
  ["no test ran", { ...good, counts: { passed: 0, failed: 0, skipped: 4 } }],
])("a suite counts one failure when %s", (_, run) => {
  const { failed, note } = judged(run);
  expect(failed).toBe(1);
  expect(note).not.toBe("");
});

test("failed tests are not counted twice when the suite also exits with an error", () => {
  const counts = { passed: 3, failed: 2, skipped: 0 };
  expect(judged({ ...good, exitCode: 1, counts }).failed).toBe(2);
});

test("the lines about failures are found in a suite's output, without colours", () => {
  const said = [
    "(pass) one [0.10ms]",
    "12 |   expect(a).toBe(b);",
    "\u001B[31merror\u001B[0m: expect(received).toBe(expected)",
    "Expected: 2",
    "Received: 1",
    "(fail) two > three [0.20ms]",
    "FAILED the unit is active",
    "ok the runtime answers",
  ];
  expect(failuresIn(said.join("\n"))).toEqual([
    "error: expect(received).toBe(expected)",
    "Expected: 2",
    "Received: 1",
    "(fail) two > three [0.20ms]",
    "FAILED the unit is active",
  ]);
  expect(failuresIn("(fail) x\n".repeat(100))).toHaveLength(40);
});
