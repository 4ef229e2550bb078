// The layout, the import table and the style of the project, executed; each check is shown to be able to fail.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import {
  forbiddenGlobals,
  forbiddenImports,
  importCycles,
  leftoverMarkers,
  missingOpenings,
  reExports,
  unusedFiles,
  unusedGrants,
} from "./tidy/checks.ts";
import { blank, type Source, source } from "./tidy/source.ts";
import { folderRules } from "./tidy/table.ts";

const top = join(import.meta.dir, "..");
const read = (pattern: string): readonly Source[] =>
  [...new Bun.Glob(pattern).scanSync(top)]
    .toSorted()
    .map((path) => source(path, readFileSync(join(top, path), "utf8")));

const src = read("src/**/*.ts");
const everything = [
  ...src,
  ...read("{test,scripts}/**/*.ts"),
  ...read("{docs,proto}/**/*.{md,proto}"),
  ...read("*.md"),
];

const files = (texts: Readonly<Record<string, string>>): readonly Source[] =>
  Object.entries(texts).map(([path, text]) => source(path, text));

describe("imports", () => {
  test("sources import only what the table allows", () => {
    expect(forbiddenImports(src)).toEqual([]);
  });

  test.each([
    [
      "a folder that the table does not name",
      "src/policy/a.ts",
      'import { x } from "../cri/client.ts";',
    ],
    ["a type-only import", "src/policy/a.ts", 'import type { X } from "../cri/client.ts";'],
    ["an import in a type", "src/policy/a.ts", 'type X = typeof import("../cri/client.ts");'],
    ["a dynamic import", "src/policy/a.ts", 'const x = await import("../cri/client.ts");'],
    [
      "an import over several lines",
      "src/model/a.ts",
      'import {\n  a,\n  b,\n} from "../policy/b.ts";',
    ],
    ["an import for its effect", "src/model/a.ts", 'import "../policy/b.ts";'],
    ["a package", "src/observe/a.ts", 'import { readFile } from "node:fs/promises";'],
    ["a package that is granted elsewhere", "src/store/a.ts", 'import grpc from "@grpc/grpc-js";'],
    ["the global Bun", "src/loop/a.ts", "const x = Bun.file(path);"],
    ["a missing extension", "src/model/a.ts", 'import { b } from "./b";'],
    ["a file outside src", "src/model/a.ts", 'import { b } from "../../test/support/b.ts";'],
    ["a folder that is not in the layout", "src/utils/a.ts", ""],
  ])("%s is refused", (_, path, text) => {
    expect(forbiddenImports(files({ [path]: text }))).toHaveLength(1);
  });

  test("an import granted to one file is refused in another", () => {
    const text = 'import { readFileSync } from "node:fs";';
    expect(forbiddenImports(files({ "src/config/load.ts": text }))).toEqual([]);
    expect(
      forbiddenImports(files({ "src/config/load.ts": text, "src/config/settings.ts": text })),
    ).toEqual([
      'src/config/settings.ts:1 imports "node:fs": only one file of config may, and that is src/config/load.ts',
    ]);
  });

  test("the table allows nothing that no source uses", () => {
    expect(unusedGrants(src)).toEqual([]);
  });

  test("an allowed but unused import is found: of a folder, a package or a single file", () => {
    const unused = unusedGrants(src.filter(({ path }) => !path.startsWith("src/config/")));
    expect(unused).toEqual([
      "no file of config uses model: take it out of the table",
      "no file of config uses valibot: take it out of the table",
      "no file of config uses yaml: take it out of the table",
      "no file of config uses Bun: take it out of the table",
      "no file of config uses node:fs: take it out of the table",
    ]);
  });

  test("every folder of the table's right side is in the table", () => {
    const named = Object.values(folderRules).flatMap((rule) => rule.folders);
    expect(
      named.filter(
        (name) => !["*", "proto", "package.json"].includes(name) && folderRules[name] === undefined,
      ),
    ).toEqual([]);
  });

  test("no sources import each other in a circle", () => {
    expect(importCycles(src)).toEqual([]);
  });

  test("a circle is found, by type-only imports too", () => {
    const circle = files({
      "src/model/a.ts": 'import { b } from "./b.ts";',
      "src/model/b.ts": 'import type { C } from "./c.ts";',
      "src/model/c.ts": 'import { b } from "./b.ts";',
    });
    expect(importCycles(circle)).toEqual([
      "src/model/b.ts imports src/model/c.ts imports src/model/b.ts",
    ]);
  });

  test("every source is imported by another one", () => {
    expect(unusedFiles(src)).toEqual([]);
  });

  test("a source that nothing imports is found, main.ts aside", () => {
    const lonely = files({
      "src/main.ts": 'import "./cli/a.ts";',
      "src/cli/a.ts": "",
      "src/cli/b.ts": "",
    });
    expect(unusedFiles(lonely)).toEqual(["src/cli/b.ts is imported by no file of src"]);
  });
});

describe("style", () => {
  test("no source or document is marked as unfinished", () => {
    expect(leftoverMarkers(everything)).toEqual([]);
  });

  test("a mark of unfinished work is found in a comment and in a document", () => {
    const mark = ["TO", "DO"].join("");
    expect(
      leftoverMarkers(files({ "src/a.ts": `// ${mark}: later`, "docs/a.md": `# A\n\n${mark}` })),
    ).toEqual([
      `src/a.ts:1 says ${mark}: do it, or write it down as an issue`,
      `docs/a.md:3 says ${mark}: do it, or write it down as an issue`,
    ]);
  });

  test("no source re-exports", () => {
    expect(reExports(src)).toEqual([]);
  });

  test.each([['export * from "./a.ts";'], ['export type { A } from "./a.ts";']])(
    "%s is refused",
    (text) => {
      expect(reExports(files({ "src/model/a.ts": text }))).toHaveLength(1);
    },
  );

  test("no source but main.ts reaches for the process or the environment", () => {
    expect(forbiddenGlobals(src)).toEqual([]);
  });

  test.each([
    ["src/cli/gc.ts", "process.exit(1);"],
    ["src/cli/gc.ts", 'const x = process["env"];'],
    ["src/node/event-hook.ts", "Bun.env;"],
    ["src/config/settings.ts", "import.meta.env;"],
  ])("in %s, %s is refused", (path, text) => {
    expect(forbiddenGlobals(files({ [path]: text }))).toHaveLength(1);
  });

  test.each([
    ["src/main.ts", "process.exit(1);"],
    ["src/cli/gc.ts", 'const text = "process.exit"; // console.log'],
    ["src/cli/gc.ts", "child.process.id;"],
  ])("in %s, %s is allowed", (path, text) => {
    expect(forbiddenGlobals(files({ [path]: text }))).toEqual([]);
  });

  test("every source starts with a sentence about its purpose", () => {
    expect(missingOpenings(src)).toEqual([]);
  });

  test("a source that starts with code is found", () => {
    expect(missingOpenings(files({ "src/model/a.ts": "export const a = 1;" }))).toHaveLength(1);
    expect(missingOpenings(files({ "src/model/a.ts": "// Says a.\nexport const a = 1;" }))).toEqual(
      [],
    );
  });
});

describe("reading sources", () => {
  test.each([
    ['a("b // c"); d', 'a("      "); d'],
    ["a; // it's b", "a;          "],
    ["/* a\nb */c", "    \n    c"],
    ["`a${b + `c${{ d: 1 }}`}e`", "` ${b + ` ${{ d: 1 }}`} `"],
    ['a / b; x = /["/]/.test("c")', 'a / b; x = /    /.test(" ")'],
    ["'\\'' + a", "'  ' + a"],
    ["/* never closed", "               "],
  ])("%j is read as %j", (text, code) => {
    expect(blank(text)).toBe(code);
  });

  test("words in comments and strings do not count as imports", () => {
    const text = '// import "a"\nconst b = \'import "c"\';\nimport d from "e"; // from "f"';
    expect(source("src/model/a.ts", text).imports).toEqual([{ specifier: "e", line: 3 }]);
  });
});
