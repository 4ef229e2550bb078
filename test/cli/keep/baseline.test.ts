// The text of a baseline list is one that the reader of keep files takes, and it keeps what it names.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { baselineList } from "../../../src/cli/commands/keep.ts";
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

const written = (images: readonly Image[], before: string | null = null): string =>
  baselineList(images, before, "2026-01-15T12:00:00Z").text;

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

  test("adds to an existing list, whose lines and comments stay, and leaves one that has everything as it is", () => {
    const image = anImage("one", { repoTags: ["registry.example/one:v1"] });
    const before = "# ours\nregistry.example/gone:1 # since May\nregistry.example/one:v1\n";
    const text = written([image], before);
    expect(text).toStartWith(before);
    expect(parseKeepFile(text, "x").rules.map(({ pattern }) => pattern)).toEqual([
      "registry.example/gone:1",
      "registry.example/one:v1",
      image.id,
    ]);
    expect(written([image], text)).toBe(text);
  });

  test("omits names that are not valid patterns, and reports an image that it cannot keep", () => {
    const list = baselineList(
      [
        {
          id: imageId("not-a digest"),
          repoTags: ["<none>:<none>", "line\nbreak:1", "#comment", "**"],
        },
        { id: imageId("not-a digest either"), repoTags: ["registry.example/app:1"] },
      ],
      null,
      "2026-01-15T12:00:00Z",
    );
    expect(list.unnamed.map(({ id }) => id)).toEqual([imageId("not-a digest")]);
    expect(parseKeepFile(list.text, "x").rules.map(({ pattern }) => pattern)).toEqual([
      "registry.example/app:1",
    ]);
  });
});
