// crigc simulate in the executable: one trace in it, many in processes of it, and what they reject.

import { expect, test } from "bun:test";

import { runProgram } from "../../support/program.ts";
import { put, scratch } from "../../support/scratch.ts";
import { TRACE } from "../../support/trace.ts";

const traces = scratch();
const [first = "", second = ""] = ["one.trace", "two.trace"].map((name, at) =>
  put(traces, name, TRACE.replace("node-1", `node-${at + 1}`)),
);
put(traces, "README", "no trace");

const simulate = (...words: readonly string[]) => runProgram(["simulate", ...words]);

test("many traces give the same figures side by side as one by one", async () => {
  const vary = ["--vary", "capacity=100,90", "--bound", "-o", "json"];
  const [all, one, two] = await Promise.all([
    simulate("--trace", traces, ...vary),
    simulate("--trace", first, ...vary),
    simulate("--trace", second, ...vary),
  ]);
  expect(all.stderr).toBe("");
  const nodesOf = (text: string) =>
    JSON.parse(text).runs.map(({ nodes }: { readonly nodes: readonly unknown[] }) => nodes);
  const [left, right] = [nodesOf(one.stdout), nodesOf(two.stdout)];
  expect(nodesOf(all.stdout)).toEqual(
    left.map((own: unknown[], at: number) => [...own, ...right[at]]),
  );
  expect(left[0]).toMatchObject([{ node: "node-1", pulls: 3, pullsAgain: 1 }]);
});

const broken = put(scratch(), "broken.trace", TRACE.replace('"sizeBytes":30', '"sizeBytes":-1'));

test.each([
  ["an empty state directory", ["--state-dir", scratch()], 8, /no trace in/],
  ["an empty directory of traces", ["--trace", scratch()], 2, /--trace: no /],
  ["an empty directory of results", ["--result", scratch()], 2, /--result: no /],
  ["a broken trace", ["--trace", broken], 2, /broken\.trace: .*line 3: /],
  ["a broken one of two", ["--trace", first, "--trace", broken], 2, /broken\.trace: .*line 3: /],
])("%s is refused, and named with what is wrong", async (_, words, code, said) => {
  const { exitCode, stderr } = await simulate(...words);
  expect([exitCode, stderr]).toEqual([code, expect.stringMatching(said)]);
});
