// The text of a baseline list is one that the reader of keep files takes, and it keeps what it names.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { baselineList } from "../../../src/cli/commands/keep-baseline.ts";
import { imageId } from "../../../src/model/ids.ts";
import type { Image } from "../../../src/model/snapshot.ts";
import { compileKeepRules, matchKeepRules, parseKeepFile } from "../../../src/policy/keep/keep.ts";
import { anImage } from "../../support/build/values.ts";

const hex = fc.stringMatching(/^[0-9a-f]{64}$/);
const anId = fc.oneof(
  hex.map((digits) => `sha256:${digits}`),
  hex,
);
const aTag = fc
  .tuple(
    fc.stringMatching(/^[a-z][a-z0-9-]{0,8}(\.example)?(:5000)?\/[a-z][a-z0-9._-]{0,10}[a-z0-9]$/),
    fc.stringMatching(/^[A-Za-z0-9][\w.-]{0,10}$/),
  )
  .map(([name, tag]) => `${name}:${tag}`);
const someImages = fc.uniqueArray(
  fc
    .record({ id: anId, repoTags: fc.array(aTag, { maxLength: 3 }) })
    .map(({ id, repoTags }): Image => anImage("x", { id: imageId(id), repoTags })),
  { selector: ({ id }) => id, maxLength: 8 },
);

const written = (images: readonly Image[], before: readonly string[] = []): string =>
  baselineList(
    images.map(({ id, repoTags }) => ({ id, names: repoTags })),
    before.map((pattern) => ({ pattern, source: "" })),
    "2026-01-15T12:00:00Z",
  ).text;

describe("a baseline list", () => {
  test("is valid and keeps every image that it was made from", () => {
    fc.assert(
      fc.property(someImages, (images) => {
        const { rules, problems } = parseKeepFile(written(images), "baseline.list");
        expect(problems).toEqual([]);
        const compiled = compileKeepRules(rules);
        for (const image of images) expect(matchKeepRules(compiled, image)).not.toBeNull();
      }),
    );
  });

  test("keeps an image that lost its tag, and the image that got the tag", () => {
    const old = anImage("old", { repoTags: ["registry.example/app:1"] });
    const { rules } = parseKeepFile(written([old]), "baseline.list");
    const compiled = compileKeepRules(rules);
    expect(matchKeepRules(compiled, { ...old, repoTags: [] })?.name).toBe(old.id);
    expect(matchKeepRules(compiled, anImage("new", { repoTags: old.repoTags }))).not.toBeNull();
    expect(matchKeepRules(compiled, anImage("other"))).toBeNull();
  });

  test("written again keeps what earlier lines note: pins, leases and platforms", () => {
    const image = anImage("one", { repoTags: ["registry.example/one:v1"] });
    const { pinned: _, ...unpinned } = { ...image, names: image.repoTags };
    const text = [
      `${image.id} # crigc: pinned`,
      `sha256:${"ab".repeat(32)} # crigc: another platform of ${image.id}`,
      "registry.example/later:1 # crigc: until used or 30d, added 2026-01-01T00:00:00Z",
    ];
    const { rules, problems } = parseKeepFile(text.join("\n"), "baseline.list");
    expect(problems).toEqual([]);
    const again = baselineList([unpinned], rules, "2026-01-15T12:00:00Z").text.split("\n");
    for (const line of text) expect(again).toContain(line);
  });

  test("omits names that are not valid patterns, and reports an image that it cannot keep", () => {
    const list = baselineList(
      [
        { id: "not-a digest", names: ["<none>:<none>", "line\nbreak:1", "#comment", "**"] },
        { id: "not-a digest either", names: ["registry.example/app:1"] },
      ],
      [],
      "2026-01-15T12:00:00Z",
    );
    expect(list.unnamed.map(({ id }) => id)).toEqual(["not-a digest"]);
    expect(parseKeepFile(list.text, "x").rules.map(({ pattern }) => pattern)).toEqual([
      "registry.example/app:1",
    ]);
  });
});
