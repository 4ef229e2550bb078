import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { compileGlob, globMatches } from "../../../src/policy/keep/keep-pattern.ts";

const matches = (pattern: string, text: string): boolean => globMatches(compileGlob(pattern), text);

describe("a star stays within a component, two cross it", () => {
  const rows: readonly [string, string, boolean][] = [
    ["a/b", "a/b", true],
    ["a/b", "a/bc", false],
    ["a/*", "a/b", true],
    ["a/*", "a/b/c", false],
    ["a/**", "a/b/c", true],
    ["**", "a/b/c", true],
    ["*", "abc", true],
    ["*", "a/b", false],
    ["*/pause", "registry.k8s.io/pause", true],
    ["*/pause", "registry.k8s.io/x/pause", false],
    ["**/pause", "registry.k8s.io/x/pause", true],
    ["a/b*c/d", "a/bxxc/d", true],
    ["a/b*c/d", "a/bx/c/d", false],
    ["a/b**c/d", "a/bx/c/d", true],
    ["a*", "a", true],
    ["**a*b**", "x/ayb/z", true],
    ["**a*b**", "x/ay/b/z", false],
    ["***", "a/b", true],
    ["a*a", "a", false],
  ];
  for (const [pattern, text, expected] of rows) {
    test(`${pattern} ${expected ? "matches" : "does not match"} ${text}`, () => {
      expect(matches(pattern, text)).toBe(expected);
    });
  }
});

test("the matcher agrees with a regular expression on every short text", () => {
  const pattern = fc.stringMatching(/^[ab/*]{0,8}$/);
  const text = fc.stringMatching(/^[ab/]{0,10}$/);
  fc.assert(
    fc.property(pattern, text, (source, subject) => {
      const expected = source.replaceAll(/\*+/g, (stars) => (stars.length > 1 ? "[^]*" : "[^/]*"));
      expect(matches(source, subject)).toBe(new RegExp(`^${expected}$`).test(subject));
    }),
    { numRuns: 2_000 },
  );
});

test("a pattern that would blow up a backtracking matcher takes no time", () => {
  const evil = compileGlob(`${"*a".repeat(60)}**${"*a".repeat(60)}b*`);
  // It has all that the pattern asks for in its order, but for the component.
  const text = `${"a".repeat(500)}b/`;
  const before = performance.now();
  expect(globMatches(evil, text)).toBeFalse();
  // A backtracking matcher would need longer than the machine lasts.
  expect(performance.now() - before).toBeLessThan(2_000);
});
