// The layout, the import table and the style of the project, executed; each check is shown to be able to fail.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import {
  forbiddenImports,
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

test.each([
  ["imports only what the table allows", forbiddenImports],
  ["is imported by another one", unusedFiles],
  ["has no re-exports, no process or environment but in main.ts, and a sentence first", misstyled],
])("every source %s", (_, check) => {
  expect(check(src)).toEqual([]);
});

test("the table allows nothing that no source uses, and names only folders that it has", () => {
  expect(unusedGrants(src)).toEqual([]);
  const named = Object.values(folderRules).flatMap((rule) => rule.folders);
  const known = ["*", "deploy", "package.json", ...Object.keys(folderRules)];
  expect(named.filter((name) => !known.includes(name))).toEqual([]);
});

test.each([
  ["src/policy/a.ts", 'import { x } from "../cri/client.ts";', forbiddenImports],
  ["src/policy/a.ts", 'type X = typeof import("../cri/client.ts");', forbiddenImports],
  ["src/policy/a.ts", 'const x = await import("../cri/client.ts");', forbiddenImports],
  ["src/model/a.ts", "const x = Bun.file(path);", forbiddenImports],
  ["src/cri/a.ts", '// Says a.\nexport * from "./a.ts";', misstyled],
  ["src/cli/gc.ts", "// Says a.\nprocess.exit(1);", misstyled],
])("what is wrong is found in %s: %s", (path, text, check) => {
  expect(check([source(path, text)])).toHaveLength(1);
});
