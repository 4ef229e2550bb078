// Which listed images a reference means, however either of them is spelled.
import { describe, expect, test } from "bun:test";

import { distinctImages, indexImages, listedImages } from "../../../src/policy/image/reference.ts";
import { anImage, idOf } from "../../support/build/values.ts";

const DIGEST = `sha256:${"d1".repeat(32)}`;
const app = (...repoTags: readonly string[]) => anImage("app", { repoTags });
const APP = "registry.example/app";

describe("a reference finds the image", () => {
  const rows: readonly [string, ReturnType<typeof app>, string][] = [
    ["listed by its short name", app("nginx:1"), "docker.io/library/nginx:1"],
    ["listed without a tag, which means latest", app("nginx"), "nginx:latest"],
    ["listed by its whole name without a tag", app(APP), `${APP}:latest`],
    ["listed with tag and digest, by the tag", app(`${APP}:v1@${DIGEST}`), `${APP}:v1`],
    ["whose digest is listed as a tag", app(DIGEST), `${APP}@${DIGEST}`],
    [
      "whose tag is listed as a digest",
      anImage("app", { repoTags: [], repoDigests: ["nginx:1"] }),
      "docker.io/library/nginx:1",
    ],
  ];
  test.each(rows)("%s", (_, image, reference) => {
    expect(listedImages(indexImages([image, anImage("other")]), reference)).toEqual([image.id]);
  });

  test("by its digest, but not by a tag that it does not have", () => {
    const index = indexImages([
      anImage("app", { repoTags: [], repoDigests: [`${APP}@${DIGEST}`] }),
    ]);
    expect(listedImages(index, DIGEST)).toEqual([idOf("app")]);
    expect(listedImages(index, `${APP}:latest`)).toEqual([]);
  });

  test("of exactly that name, where another one has the same digest", () => {
    const names = ["a", "b"].map((name) =>
      anImage(name, { repoDigests: [`registry.example/${name}@${DIGEST}`] }),
    );
    const index = indexImages(names);
    expect(listedImages(index, `registry.example/b@${DIGEST}`)).toEqual([idOf("b")]);
    expect(listedImages(index, `registry.example/c@${DIGEST}`)).toEqual([idOf("a"), idOf("b")]);
  });
});

test("an image that is listed twice has the names of both entries, and a list without such is the same one", () => {
  const entries = [1, 2].map((at) =>
    anImage("app", { repoTags: [`${APP}:v${at}`], repoDigests: [`r${at}.example/app@${DIGEST}`] }),
  );
  expect(distinctImages(entries, "any")).toMatchObject([
    {
      repoTags: [`${APP}:v1`, `${APP}:v2`],
      repoDigests: [`r1.example/app@${DIGEST}`, `r2.example/app@${DIGEST}`],
    },
  ]);
  const single = [anImage("a"), anImage("b")];
  expect(distinctImages(single, "any")).toBe(single);
});
