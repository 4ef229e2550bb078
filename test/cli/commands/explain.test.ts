// What explain finds: every name under which a table shows something.

import { expect, test } from "bun:test";

import { imageNamed } from "../../../src/cli/selection.ts";
import { aContainer, anImage, aSandbox } from "../../support/build/values.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { openNodeOf } from "../open-node.ts";
import { crigc } from "../world.ts";

const digest = imageIdOf("content");
const untagged = anImage("untagged", {
  repoTags: [],
  repoDigests: [`registry.example/untagged@${digest}`],
});
const tagged = anImage("tagged");
const node = openNodeOf({
  snapshot: {
    images: [untagged, tagged],
    sandboxes: [aSandbox("a")],
    containers: [aContainer("web")],
  },
}).node;

const run = (...words: readonly string[]) => crigc(words, { open: { node } });
const shown = `registry.example/untagged@${digest.slice(0, "sha256:".length + 12)}`;

test.each([
  ["a container as plan shows it", "default/pod-a/web", "Container default/pod-a/web"],
  ["a container as images shows it", "pod-a/web", "Container default/pod-a/web"],
  ["a sandbox as plan shows it", "default/pod-a", "Sandbox default/pod-a"],
  ["an image without a tag as tables show it", shown, `Image ${shown}`],
])("explain finds %s", async (_, reference, title) => {
  const { code, stdout } = await run("explain", reference);
  expect(code).toBe(0);
  expect(stdout.split("\n")).toContain(title);
});

test("explain finds an image by the end of its name, and rejects an end of two names", async () => {
  const names = (name: string, at: string) => anImage(name, { repoTags: [`${at}/team/api:1.2`] });
  const two = openNodeOf({
    snapshot: { images: [names("one", "a.example"), names("two", "b.example"), tagged] },
  }).node;
  const ending = (reference: string) => crigc(["explain", reference], { open: { node: two } });
  expect((await ending("agged:v1")).code).not.toBe(0);
  expect((await ending("tagged:v1")).stdout).toContain("Image registry.example/tagged:v1\n");
  const ambiguous = await ending("api:1.2");
  expect(ambiguous.code).toBe(2);
  expect(ambiguous.stderr).toContain(
    '"api:1.2" fits 2 names: a.example/team/api:1.2, b.example/team/api:1.2; use one of them',
  );
  expect((await ending("b.example/team/api")).code).toBe(0);
});

test("explain shows every image of the only repository that ends so, whatever else they are called", async () => {
  const repoTags = [["r.example/team/web:1"], ["r.example/other:2", "r.example/team/web:2"], []];
  const repoDigests = [`r.example/team/web@${digest}`];
  const images = repoTags.map((tags, at) => anImage(`${at}`, { repoTags: tags, repoDigests }));
  const { node: open } = openNodeOf({ snapshot: { images } });
  for (const reference of ["web", "r.example/team/web"]) {
    const { code, stdout } = await crigc(["explain", reference], { open: { node: open } });
    expect(code).toBe(0);
    expect(stdout.match(/^Image r.example/gm)).toHaveLength(3);
  }
});

test("rm finds an image without a tag as tables show it, and not by another digest", () => {
  const images = [untagged, tagged];
  expect(imageNamed(images, shown)).toBe(untagged.id);
  expect(imageNamed(images, `registry.example/tagged@${digest.slice(0, 19)}`)).toBeNull();
  expect(imageNamed(images, shown.slice(0, -1))).toBeNull();
});

test("rm refuses a short digest that two images have", () => {
  const other = `${digest.slice(0, 19)}${imageIdOf("else").slice(19)}`;
  const names = { repoTags: [], repoDigests: [`registry.example/untagged@${other}`] };
  expect(() => imageNamed([untagged, anImage("twin", names)], shown)).toThrow("names 2 images");
});

test("-o name has the whole digest, for other programs", async () => {
  const { stdout } = await run("images", "-o", "name", "--sort", "name");
  expect(stdout).toBe(`registry.example/tagged:v1\nregistry.example/untagged@${digest}\n`);
});
