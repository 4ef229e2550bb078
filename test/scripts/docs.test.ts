// The pages that repeat what the tables in the code say are held against them.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { generated, regenerated } from "../../scripts/docs.ts";
import { fieldByFlag, fieldNames, fieldOf } from "../../src/config/fields.ts";

const page = (path: string): string => readFileSync(join(import.meta.dir, "../..", path), "utf8");

describe.each(Object.keys(generated).map((path) => [path] as const))("%s", (path) => {
  test("is up to date with the tables; if not, run scripts/docs", () => {
    expect(page(path)).toBe(regenerated(path, page(path)));
  });

  // Other pages name flags of other programs.
  if (!path.startsWith("docs/")) return;
  test("all flags that it mentions exist", () => {
    const written = page(path).match(/(?<=`)--[a-z][a-z-]+/g) ?? [];
    const options = [...(page("docs/cli.md").match(/--[a-z][a-z-]+/g) ?? [])];
    const known = new Set([...[...fieldByFlag.keys()].map((flag) => `--${flag}`), ...options]);
    expect(written.filter((flag) => !known.has(flag))).toEqual([]);
  });
});

test("docs/configuration.md has every field and its flag", () => {
  const text = page("docs/configuration.md");
  for (const name of fieldNames) {
    const { flag, outsideFiles } = fieldOf(name);
    expect(text).toContain(`\`${flag.length === 1 ? "-" : "--"}${flag}`);
    if (outsideFiles !== true) expect(text).toContain(`] \`${name}\``);
  }
});
