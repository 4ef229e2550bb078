// JSON documents: exact integers, escaped control characters, one envelope.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import {
  document,
  type Json,
  lazily,
  printedJson,
  printedPieces,
  timeOf,
  toJson,
} from "../../../src/report/document.ts";
import { gcDocument } from "../../../src/report/gc.ts";
import { planDocument } from "../../../src/report/plan.ts";
import { at, candidate, image, imagePlan, NOW, pass, runtime } from "../build.ts";

describe("serialization", () => {
  test("a document writes integers beyond 2^53 digit for digit", () => {
    expect(toJson({ sizeBytes: 18_446_744_073_709_551_615n, small: -3n })).toBe(
      '{"sizeBytes":18446744073709551615,"small":-3}',
    );
  });

  test("a document writes any bigint as its digits, and ordinary values as JSON does", () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.string({ unit: "binary" }), (figure, text) => {
        const written = toJson({ figure, text });
        expect(written).toContain(`{"figure":${figure},`);
        expect((JSON.parse(written) as { text: string }).text).toBe(text);
      }),
    );
  });

  test("a document escapes characters that mislead a terminal, and they parse back unchanged", () => {
    const text = "a\u001b[31mb\u009bc\u202ed\u200be";
    const written = toJson({ text });
    expect(written).toBe('{"text":"a\\u001b[31mb\\u009bc\\u202ed\\u200be"}');
    expect(JSON.parse(written)).toEqual({ text });
  });

  test("a Map in a document is refused rather than written as an empty object", () => {
    expect(() => toJson(new Map() as never)).toThrow("a Map or Set reached a JSON document");
  });

  test("a printed document is indented and ends in one newline", () => {
    expect(printedJson({ a: 1n })).toBe('{\n  "a": 1\n}\n');
  });

  test("a document that is printed in pieces has the same text, lists that are made meanwhile too", () => {
    const { json } = fc.letrec<{ json: Json }>((tie) => {
      const key = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("__proto__", "toString"));
      const list = fc.array(tie("json"), { maxLength: 4 });
      return {
        json: fc.oneof(
          { depthSize: "small" },
          fc.constantFrom(null, true, 1.5, undefined as never),
          fc.bigInt(),
          fc.string({ unit: "binary" }),
          list,
          list.map((items) => lazily(items, (it) => it)),
          fc.dictionary(key, tie("json"), { maxKeys: 4 }).map((it) => ({ ...it })),
        ),
      };
    });
    fc.assert(
      fc.property(json, (value) => {
        expect([...printedPieces({ value })].join("")).toBe(printedJson({ value }));
      }),
    );
  });

  test("a long document is printed in many pieces, of which none is long", () => {
    const items = lazily(Array.from({ length: 5000 }), (_, index) => ({
      index,
      text: "x".repeat(99),
    }));
    const pieces = [...printedPieces({ items })];
    expect(pieces.join("")).toBe(printedJson({ items }));
    expect(pieces.length).toBeGreaterThan(5);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(70_000);
  });

  test("a Map in a document that is printed in pieces is refused, too", () => {
    expect(() => [...printedPieces({ items: new Map() as never })]).toThrow("a Map or Set");
  });
});

test("a document starts with its version and kind", () => {
  expect(toJson(document("Plan", { a: 1 }))).toBe('{"apiVersion":"crigc/v1","kind":"Plan","a":1}');
});

test("a document writes times as RFC 3339 in UTC, and an absent one as null", () => {
  expect([timeOf(at("2026-01-15T13:00:00.25+01:00")), timeOf(null)]).toEqual([
    "2026-01-15T12:00:00.25Z",
    null,
  ]);
});

interface Written {
  readonly [field: string]: Written;
}

const parsed = (value: Parameters<typeof toJson>[0]): Written =>
  JSON.parse(toJson(value)) as Written;

describe("the documents of a plan and a pass", () => {
  const plan = parsed(planDocument({ plan: pass().plan, runtime, observedAt: NOW })) as unknown as {
    kind: string;
    images: {
      candidates: readonly object[];
      kept: readonly { reason: object; tried: readonly string[] }[];
      expectedFreedBytes: number;
    };
    containers: { containers: readonly object[]; strays: readonly string[] };
  };

  test("a candidate in the plan document has its place, its age in milliseconds and its triggers in words", () => {
    expect(plan.images.candidates[0]).toMatchObject({
      place: 1,
      name: "registry.example/team/app-1:1.1",
      sizeBytes: 122_683_392,
      unusedForMs: 356_400_000,
      lastUsedAt: "2026-01-12T08:00:00Z",
      triggers: [{ code: "space", text: "disk usage over the high threshold" }],
      expected: true,
    });
  });

  test("a kept image in the plan document has the code, the sentence and the data of its reason", () => {
    expect(plan.images.kept.map((it) => it.reason)).toContainEqual({
      code: "too-young",
      text: "first seen 40s ago; the minimum age is 2m",
      ageMs: 40_000,
      minimumAgeMs: 120_000,
    });
  });

  test("a container in the plan document has its decision, and stray log entries are named", () => {
    expect(plan.containers.containers[0]).toMatchObject({
      decision: "remove",
      reason: { code: "pod-gone" },
    });
    expect(plan.containers.strays).toEqual(["lost+found"]);
  });

  test("the document of a pass says how it ended, what each removal freed, and how long each step took", () => {
    expect(parsed(gcDocument(pass())) as object).toMatchObject({
      kind: "GcReport",
      passId: "20260115T120000Z-0a1b2c",
      tookMs: 1850,
      images: {
        end: "target-reached",
        endText: "target reached",
        measuredFreedBytes: 526_385_152,
        items: [{ result: { kind: "removed", measuredBytes: 245_366_784 } }, {}],
      },
      containers: { end: "done", containers: [{ reason: { code: "pod-gone" } }] },
      steps: [{ name: "observe", tookMs: 40 }, {}, {}],
    });
  });

  test("a size of 64 bits is exact in the plan document", () => {
    const huge = imagePlan({
      candidates: [candidate(1, { image: image(1, { sizeBytes: 18_446_744_073_709_551_615n }) })],
    });
    const text = toJson(
      planDocument({ plan: { images: huge, containers: null }, runtime, observedAt: NOW }),
    );
    expect(text).toContain('"sizeBytes":18446744073709551615');
  });

  test("the halves of the plan document that were not requested are null", () => {
    const empty = planDocument({
      plan: { images: null, containers: null },
      runtime,
      observedAt: NOW,
    });
    expect(parsed(empty) as object).toMatchObject({ images: null, containers: null });
  });
});
