// The layout, the import table and the style of the project, executed; each check is shown to be able to fail.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import {
  forbiddenImports,
  leftoverMarkers,
  misstyled,
  type Source,
  source,
  unusedFiles,
  unusedGrants,
} from "./tidy/checks.ts";
import { folderRules } from "./tidy/table.ts";

const top = join(import.meta.dir, "..");
const read = (pattern: string): readonly Source[] =>
  [...new Bun.Glob(pattern).scanSync(top)]
    .toSorted()
    .map((path) => source(path, readFileSync(join(top, path), "utf8")));

const src = read("src/**/*.ts");
const rest = ["{test,scripts}/**/*.ts", "{docs,proto}/**/*.{md,proto}", "*.md"].flatMap(read);

const files = (texts: Readonly<Record<string, string>>): readonly Source[] =>
  Object.entries(texts).map(([path, text]) => source(path, text));

test.each([
  ["imports only what the table allows", forbiddenImports],
  ["is imported by another one", unusedFiles],
  ["has no re-exports, no process or environment but in main.ts, and a sentence first", misstyled],
])("every source %s", (_, check) => {
  expect(check(src)).toEqual([]);
});

test("no source or document is marked as unfinished", () => {
  expect(leftoverMarkers([...src, ...rest])).toEqual([]);
});

test("the table allows nothing that no source uses, and names only folders that it has", () => {
  expect(unusedGrants(src)).toEqual([]);
  const named = Object.values(folderRules).flatMap((rule) => rule.folders);
  const known = ["*", "package.json", ...Object.keys(folderRules)];
  expect(named.filter((name) => !known.includes(name))).toEqual([]);
});

describe("what is wrong is found", () => {
  test.each([
    ["src/policy/a.ts", 'import { x } from "../cri/client.ts";'],
    ["src/policy/a.ts", 'import type { X } from "../cri/client.ts";'],
    ["src/policy/a.ts", 'type X = typeof import("../cri/client.ts");'],
    ["src/policy/a.ts", 'const x = await import("../cri/client.ts");'],
    ["src/model/a.ts", 'import {\n  a,\n  b,\n} from "../policy/b.ts";'],
    ["src/model/a.ts", 'import "../policy/b.ts";'],
    ["src/model/a.ts", 'import { readFile } from "node:fs/promises";'],
    ["src/store/a.ts", 'import grpc from "@grpc/grpc-js";'],
    ["src/agent/a.ts", 'import grpc from "@grpc/grpc-js";'],
    ["src/model/a.ts", "const x = Bun.file(path);"],
    ["src/model/a.ts", 'import { b } from "./b";'],
    ["src/model/a.ts", 'import { b } from "../../test/support/b.ts";'],
    ["src/utils/a.ts", ""],
  ])("in %s: %s", (path, text) => {
    expect(forbiddenImports(files({ [path]: text }))).toHaveLength(1);
  });

  test("an import granted to one file, in another one", () => {
    const text = 'import { readFileSync } from "node:fs";';
    const both = files({ "src/config/a.ts": text, "src/config/b.ts": text });
    expect(forbiddenImports(both)).toEqual([
      "src/config/b.ts uses node:fs, which the table does not allow",
    ]);
  });

  test.each([
    ["src/model/a.ts", 'export * from "./a.ts";', 1],
    ["src/model/a.ts", 'export type { A } from "./a.ts";', 1],
    ["src/cli/gc.ts", "process.exit(1);", 1],
    ["src/cli/gc.ts", 'const x = process["env"];', 1],
    ["src/node/event-hook.ts", "Bun.env;", 1],
    ["src/config/settings.ts", "import.meta.env;", 1],
    ["src/main.ts", "process.exit(1);", 0],
    ["src/cli/gc.ts", 'const text = "process.exit"; // process.exit', 0],
    ["src/cli/gc.ts", "child.process.id;", 0],
  ])("in %s: %s (%d)", (path, text, count) => {
    expect(misstyled(files({ [path]: `// Says a.\n${text}` }))).toHaveLength(count);
  });
});
