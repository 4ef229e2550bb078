// docs/policy.md and docs/containers.md name every code of the model, and no code that there is not.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { PROTECTION_ORDER } from "../../src/policy/image/protect.ts";
import { PASS_ENDS } from "../../src/report/pass-words.ts";
import { imageBlock, imageKeep, imageTrigger } from "../../src/report/reasons.ts";

const root = join(import.meta.dir, "../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** The codes of one exported union of a model file. */
function codesOf(path: string, union: string): readonly string[] {
  const text = read(path);
  const start = text.search(new RegExp(`^(?:export )?type ${union} =`, "m"));
  if (start === -1) throw new Error(`${path} has no union ${union}`);
  const end = text.slice(start + 1).search(/\n(?:\/\*\*|export |type )/);
  const body = text.slice(start, end === -1 ? undefined : start + 1 + end);
  const tagged = [...body.matchAll(/readonly kind: "([a-z-]+)"/g)].map((match) => match[1] ?? "");
  const plain = [...body.matchAll(/^ {2}\| "([a-z-]+)"/gm)].map((match) => match[1] ?? "");
  const shared = [...body.matchAll(/(?:^ {2}|[|=] )([A-Z]\w+Reason)\b/gm)].flatMap((match) =>
    codesOf(path, match[1] ?? ""),
  );
  return [...new Set([...tagged, ...plain, ...shared])].filter(
    (code) => !["container", "image-volume", "pod-spec", "sandbox"].includes(code),
  );
}

function section(page: string, title: string): string {
  const start = page.indexOf(`\n## ${title}`);
  if (start === -1) throw new Error(`no section ${title}`);
  const next = page.indexOf("\n## ", start + 1);
  return page.slice(start, next === -1 ? undefined : next);
}

/** The codes in the first column of a section's tables. */
const listed = (text: string): readonly string[] =>
  [...text.matchAll(/^\| `([a-z-]+)` \|/gm)].map((match) => match[1] ?? "");

/** The first two cells of each row that begins with a code. */
const cellsOf = (text: string): readonly (readonly [code: string, second: string])[] =>
  Array.from(text.matchAll(/^\| `([a-z-]+)` \| ([^|]*) \|/gm), ([, code = "", second = ""]) => [
    code,
    second,
  ]);

// Table cells are padded by the formatter.
const unpadded = (path: string): string => read(path).replaceAll(/ +\|/g, " |");
const page = unpadded("docs/policy.md");
const containers = unpadded("docs/containers.md");

describe.each([
  ["1. What stops all image removal", "src/model/reason.ts", "RemovalBlock"],
  ["3. Triggers", "src/model/reason.ts", "ImageTrigger"],
  ["6. When a pass stops", "src/model/pass.ts", "ImageEnd"],
] as const)("docs/policy.md, section %s", (title, path, union) => {
  test(`lists the codes of ${union}, each once, and no other`, () => {
    expect(listed(section(page, title)).toSorted()).toEqual(codesOf(path, union).toSorted());
  });
});

test.each([
  ["1. What stops all image removal", imageBlock.title],
  ["3. Triggers", imageTrigger.title],
  ["4. What keeps an image", imageKeep.title],
] as const)("docs/policy.md, section %s, has the titles that reports show", (title, titleOf) => {
  for (const [code, shown] of cellsOf(section(page, title))) expect(shown).toBe(titleOf(code));
});

test("docs/policy.md has the words with which reports say how a pass ended", () => {
  const ends = new Map(cellsOf(section(page, "6. When a pass stops")));
  for (const [code, { words }] of Object.entries(PASS_ENDS))
    if (code !== "done") expect(ends.get(code)).toContain(words);
});

test("what keeps an image is listed in the order of evaluation", () => {
  expect(listed(section(page, "4. What keeps an image"))).toEqual([...PROTECTION_ORDER]);
});

test("every reason to keep an image is named", () => {
  const text = section(page, "4. What keeps an image");
  for (const code of codesOf("src/model/reason.ts", "ImageKeepReason")) {
    expect(text).toContain(`\`${code}\``);
  }
});

test.each([
  ["Containers", ["ContainerKeepReason", "ContainerRemoveReason"]],
  ["Sandboxes", ["SandboxKeepReason", "SandboxRemoveReason"]],
  ["Logs", ["LogKeepReason", "LogRemoveReason"]],
] as const)(
  "docs/containers.md, section %s, lists the codes of %p, and no other",
  (title, unions) => {
    const named = [...section(containers, title).matchAll(/^\| (`[^|]*`) \|/gm)].flatMap(
      ([, cell = ""]) => cell.replaceAll("`", "").split(", "),
    );
    const codes = unions.flatMap((union) => codesOf("src/model/reason.ts", union));
    expect(named.toSorted()).toEqual([...new Set(codes)].toSorted());
  },
);
