// The format of traces: what is written is read back, what a later version adds is skipped, and anything else is named.

import { expect, test } from "bun:test";

import fc from "fast-check";

import { FieldError } from "../../src/model/codec.ts";
import { imageId } from "../../src/model/ids.ts";
import { type NodeTrace, readTrace, TRACE_LINE_MAX, traceLines } from "../../src/model/trace.ts";
import { failureOf } from "../support/failure.ts";

const HEAD =
  '{"apiVersion":"crigc/v1","kind":"Trace","node":"a","fromMs":0,"untilMs":9,"precisionMs":1}';

const read = (lines: readonly string[]): NodeTrace => readTrace(lines.join("\n"));

const ms = fc.nat();
const size = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const image = fc.constantFrom("sha256:1", "sha256:2").map(imageId);
const interval = fc
  .record({ image, fromMs: ms, lasts: fc.option(ms) })
  .map(({ lasts, ...rest }) => ({ ...rest, untilMs: lasts === null ? null : rest.fromMs + lasts }));
const nodeTrace: fc.Arbitrary<NodeTrace> = fc.record({
  node: fc.string(),
  fromMs: fc.constant(1),
  untilMs: ms.map((it) => it + 1),
  precisionMs: ms,
  capacityBytes: fc.option(size),
  otherBytes: fc.option(size),
  images: fc.array(
    fc.record({
      kind: fc.constant("Image"),
      image,
      names: fc.array(fc.string()),
      sizeBytes: size,
      layers: fc.option(fc.array(fc.record({ id: fc.string(), sizeBytes: size }))),
    }),
  ),
  present: fc.array(interval.map((it) => ({ kind: "Present" as const, ...it }))),
  uses: fc.array(
    fc
      .tuple(interval, fc.option(fc.string()))
      .map(([it, name]) => ({ kind: "Use" as const, ...it, name })),
  ),
});

test("a trace is read as it was written, one line a record", () => {
  fc.assert(
    fc.property(nodeTrace, (any) => {
      const known = new Set(any.images.map((it) => it.image));
      const present = any.present.filter((it) => known.has(it.image));
      const trace = { ...any, present, uses: any.uses.filter((it) => known.has(it.image)) };
      const lines = [...traceLines(trace)];
      expect(lines.every((it) => it.indexOf("\n") === it.length - 1)).toBeTrue();
      expect(read(lines)).toEqual(trace);
    }),
  );
});

test("what a later version adds is skipped, and what a converter need not know may be absent", () => {
  const trace = read([
    HEAD,
    '{"kind":"Weather","image":3}',
    "",
    '{"kind":"Image","image":"a","names":[],"sizeBytes":1,"colour":"red"}',
    '{"kind":"Use","image":"a","fromMs":1,"untilMs":2}',
  ]);
  expect(trace).toMatchObject({
    capacityBytes: null,
    otherBytes: null,
    images: [{ image: "a", layers: null }],
    uses: [{ image: "a", name: null }],
  });
});

test.each([
  ["a line that is no JSON", [HEAD, "{"], /^line 2: expected JSON/],
  ["a line that is no record", [HEAD, "[]"], "line 2: expected a record"],
  ["a line without a kind", [HEAD, "{}"], "line 2.kind: expected a string"],
  ["a wrong field", [HEAD, '{"kind":"Present","image":"a","fromMs":-1,"untilMs":null}'], /fromMs/],
  [
    "an interval that ends before it begins",
    [HEAD, '{"kind":"Use","image":"a","fromMs":2,"untilMs":1}'],
    "line 2.untilMs: expected a time that is not before fromMs",
  ],
  ["another version", [HEAD.replace("v1", "v2")], /line 1.apiVersion/],
  [
    "a use of an image that it does not describe",
    [HEAD, '{"kind":"Use","image":"a","fromMs":1,"untilMs":2}'],
    'it has no line of kind Image for "a"',
  ],
  ["no head", [], "it has no line of kind Trace"],
  ["a second head", [HEAD, HEAD], /line 2.kind: expected one line of kind Trace/],
  [
    "a record before the head",
    ['{"kind":"Use","image":"a","fromMs":1,"untilMs":1}'],
    /line 1.kind/,
  ],
  ["a line without end", [HEAD, " ".repeat(TRACE_LINE_MAX + 1)], /line 2: expected at most/],
])("a trace with %s is refused with the line and the field", async (_, lines, message) => {
  const failure = await failureOf(Promise.try(() => read(lines)));
  expect(failure).toBeInstanceOf(FieldError);
  const { path, message: what } = failure as FieldError;
  expect([path.join("."), what].filter((it) => it !== "").join(": ")).toMatch(message);
});
