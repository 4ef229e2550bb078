import { expect, test } from "bun:test";

import type { KeepRule } from "../../src/model/snapshot.ts";
import { steadyKeepRules } from "../../src/node/keep-files.ts";

const LIST = "/etc/crigc/keep.d/site.list";
const inList = (pattern: string, line: number): KeepRule => ({
  pattern,
  source: `${LIST}:${line}`,
});

/** Readings at seconds, each with the rules that the files hold then; the patterns in force after each. */
async function inForce(
  readings: readonly (readonly [number, readonly KeepRule[]])[],
): Promise<readonly (readonly string[])[]> {
  let now = 0n;
  let rules: readonly KeepRule[] = [];
  const read = steadyKeepRules(
    async () => ({ rules, problems: [], directoriesRead: [] }),
    () => now,
  );
  const found: (readonly string[])[] = [];
  for (const [second, held] of readings) {
    now = BigInt(second) * 1_000_000_000n;
    rules = held;
    found.push((await read([])).rules.map(({ pattern }) => pattern));
  }
  return found;
}

test("a rule that a keep file loses while it is rewritten stays in force", async () => {
  const whole = [inList("app", 1), inList("db", 2)];
  expect(
    await inForce([
      [0, whole],
      [60, [inList("app", 1)]],
      [64, whole],
      [124, []],
    ]),
  ).toEqual([
    ["app", "db"],
    ["app", "db"],
    ["app", "db"],
    ["app", "db"],
  ]);
});

test("a deleted rule ends with the first reading ten seconds after it was missed", async () => {
  const left = [inList("app", 1)];
  expect(
    await inForce([
      [0, [inList("app", 1), inList("db", 2)]],
      [60, left],
      [69, left],
      [70, left],
    ]),
  ).toEqual([["app", "db"], ["app", "db"], ["app", "db"], ["app"]]);
});

test("a rule whose line has moved is listed once", async () => {
  expect(
    await inForce([
      [0, [inList("app", 1)]],
      [1, [inList("app", 7)]],
    ]),
  ).toEqual([["app"], ["app"]]);
});

test("a rule of a flag ends at once, because flags are never half-written", async () => {
  expect(
    await inForce([
      [0, [{ pattern: "app", source: "--keep" }]],
      [1, []],
    ]),
  ).toEqual([["app"], []]);
});
