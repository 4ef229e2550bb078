// crigc simulate in the executable: one trace in it, many in processes of it, and what they reject.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { runProgram } from "../../support/program.ts";
import { put, scratch } from "../../support/scratch.ts";
import { TRACE } from "../../support/trace.ts";

const traces = scratch();
const [first, second] = ["one.trace", "two.trace"].map((name, at) =>
  put(traces, name, TRACE.replace("node-1", `node-${at + 1}`)),
);
put(traces, "README", "no trace");

const simulate = (...words: readonly string[]) => runProgram(["simulate", ...words]);

test("many traces give the same figures side by side as one by one", async () => {
  const vary = ["--vary", "capacity=100,90", "--bound", "-o", "json"];
  const [all, one, two] = await Promise.all([
    simulate("--trace", traces, ...vary),
    simulate("--trace", first ?? "", ...vary),
    simulate("--trace", second ?? "", ...vary),
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

test("a page is written, and a trace may be gzip by any name", async () => {
  const packed = join(scratch(), "packed.trace");
  await Bun.write(packed, gzipSync(TRACE));
  const page = join(traces, "page.html");
  const { exitCode, stdout } = await simulate("--trace", packed, "--html", page);
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining("as configured")]);
  expect(readFileSync(page, "utf8")).toContain("<svg");
});

test("a broken trace is named with its line, alone and among others", async () => {
  const broken = put(scratch(), "broken.trace", TRACE.replace('"sizeBytes":30', '"sizeBytes":-1'));
  for (const words of [
    ["--trace", broken],
    ["--trace", first ?? "", "--trace", broken],
  ]) {
    const { exitCode, stderr } = await simulate(...words);
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/broken\.trace: .*line 3: /)]);
  }
});

test.each([
  ["--state-dir", 8, "no trace in"],
  ["--trace", 2, "--trace: no "],
  ["--result", 2, "--result: no "],
])("an empty directory for %s is refused", async (option, code, said) => {
  const { exitCode, stderr } = await simulate(option, scratch());
  expect([exitCode, stderr]).toEqual([code, expect.stringContaining(said)]);
});
