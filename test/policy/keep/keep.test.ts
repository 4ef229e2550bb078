import { describe, expect, test } from "bun:test";

import {
  compileKeepRules,
  keepRuleMatches,
  matchKeepRules,
  unmatchedKeepRules,
} from "../../../src/policy/keep/keep.ts";
import { anImage } from "../../support/build/values.ts";

const rule = (pattern: string) => ({ pattern, source: "--keep" });

test("the first rule that matches is named with the name that it matched", () => {
  const compiled = compileKeepRules([
    rule("redis"),
    rule("**/app"),
    rule("registry.example/app"),
    rule("**"),
  ]);
  expect(matchKeepRules(compiled, anImage("app"))).toEqual({
    rule: rule("**/app"),
    name: "registry.example/app:v1",
  });
  expect(matchKeepRules(compileKeepRules([rule("redis")]), anImage("app"))).toBeNull();
});

test("a digest rule keeps the image with that ID, whatever its names", () => {
  const { id } = anImage("app");
  const compiled = compileKeepRules([rule(id)]);
  expect(matchKeepRules(compiled, anImage("app", { repoTags: [] }))).toEqual({
    rule: rule(id),
    name: id,
  });
  expect(matchKeepRules(compiled, anImage("web"))).toBeNull();
});

test("no rules keep nothing", () => {
  expect(matchKeepRules(compileKeepRules([]), anImage("app"))).toBeNull();
});

test("an invalid rule is a problem and never silently ignored", () => {
  const compiled = compileKeepRules([rule("a b"), rule("nginx")]);
  expect(compiled.problems).toEqual([
    { source: "--keep", message: expect.stringContaining("space") },
  ]);
});

test("rules that match nothing are distinguished from those that match", () => {
  const rules = [rule("registry.example/app"), rule("registry.example/ap"), rule("**")];
  const images = [anImage("app"), anImage("web")];
  const compiled = compileKeepRules(rules);
  expect([...keepRuleMatches(compiled, images).values()].map((kept) => kept.length)).toEqual([
    1, 0, 2,
  ]);
  expect(unmatchedKeepRules(compiled, images).map(({ pattern }) => pattern)).toEqual([
    "registry.example/ap",
  ]);
});

test("a rule matches an image by an earlier name, but not by a tag that another image has now", () => {
  const [app, web] = [anImage("app"), anImage("web")];
  const compiled = compileKeepRules([
    rule("registry.example/old"),
    rule("registry.example/web:v1"),
  ]);
  const earlierNames = ["registry.example/old:v1", "registry.example/web:v1"];
  const matches = keepRuleMatches(compiled, [app, web], new Map([[app.id, { earlierNames }]]));
  expect([...matches.values()]).toEqual([[app], [web]]);
});

describe("speed", () => {
  test("a thousand images are matched against two hundred rules within the time limit", () => {
    const images = Array.from({ length: 1_000 }, (_, at) => anImage(`team-${at % 40}/app-${at}`));
    const rules = Array.from({ length: 200 }, (_, at) =>
      rule(at % 2 === 0 ? `**/team-${at}*/**-${at}` : `registry.example/none-${at}`),
    );
    const before = performance.now();
    const compiled = compileKeepRules(rules);
    expect(images.filter((image) => matchKeepRules(compiled, image) !== null).length).toBeLessThan(
      1_000,
    );
    expect(performance.now() - before).toBeLessThan(2_000);
  });
});
