// What a reference could mean that neither the list nor the runtime resolves.

import { expect, test } from "bun:test";

import { possibleImages } from "../../../src/policy/image/image-index.ts";
import { anImage, idOf } from "../../support/build/values.ts";

const ABSENT = { failed: false, mayBeId: false };
const DIGEST = `sha256:${"d1".repeat(32)}`;

test.each([
  ["tool", "quay.io/team/tool:latest"],
  ["team/tool:v1", "r.example:5000/team/tool:v1"],
  ["tool:v1", "index.docker.io/tool:v1"],
  ["tool:v1", "docker-pullable://quay.io/tool:v1"],
  ["tool:v1", "[2001:db8::1]:5000/tool:v1"],
  ["localhost/tool:v1", "localhost/tool:v1"],
])("%p could mean %p", (asked, listed) => {
  const images = [anImage("it", { repoTags: [listed] }), anImage("other")];
  expect([...possibleImages(images, asked, ABSENT)]).toEqual([idOf("it")]);
});

test("where the runtime could not say, a name with a digest could mean each image of its repository", () => {
  const images = [
    anImage("tag", { repoTags: ["r.example/tool:v1"] }),
    anImage("digest", { repoTags: [], repoDigests: [`r.example/tool@${DIGEST}`] }),
    anImage("elsewhere", { repoTags: ["q.example/tool:v1"] }),
  ];
  const asked = `r.example/tool:v2@sha256:${"d2".repeat(32)}`;
  const found = possibleImages(images, asked, { failed: true, mayBeId: false });
  expect([...found]).toEqual([idOf("tag"), idOf("digest")]);
});
