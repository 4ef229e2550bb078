import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { imageId } from "../../../src/model/ids.ts";
import type { Image } from "../../../src/model/snapshot.ts";
import { imageNames } from "../../../src/policy/image/reference.ts";
import {
  compileGlob,
  globMatches,
  matchPattern,
  parseKeepPattern,
} from "../../../src/policy/keep/keep.ts";
import { anImage } from "../../support/build/values.ts";

const ID = `sha256:${"0123456789abcdef".repeat(4)}`;
const DIGEST = `sha256:${"fedcba9876543210".repeat(4)}`;

function matched(pattern: string, image: Partial<Image>): string | null {
  const parsed = parseKeepPattern(pattern);
  if (parsed.kind === "invalid") throw new Error(parsed.message);
  const whole = anImage("x", { id: imageId(ID), repoTags: [], ...image });
  return matchPattern(parsed.pattern, imageNames(whole));
}

const tagged = (...repoTags: readonly string[]): Partial<Image> => ({ repoTags });

test.each<[string, string, boolean]>([
  ["nginx", "docker.io/library/nginx:1.27", true],
  ["nginx:1.27", "docker.io/library/nginx:1.27", true],
  ["nginx:1.2", "docker.io/library/nginx:1.27", false],
  ["nginx:1.*", "docker.io/library/nginx:1.27", true],
  ["nginx", "quay.io/library/nginx:1.27", false],
  ["docker.io/nginx", "docker.io/library/nginx:1", true],
  ["docker.io/*", "docker.io/library/nginx:1", true],
  ["docker.io/*", "docker.io/grafana/loki:1", false],
  ["docker.io/**", "docker.io/grafana/loki:1", true],
  ["rancher/*", "docker.io/rancher/k3s:v1", true],
  ["rancher/*", "docker.io/rancher/mirrored/x:v1", false],
  ["nginx*", "docker.io/library/nginx:1", false],
  ["nginx*", "nginx:1", true],
  ["**/nginx*", "docker.io/library/nginx-unprivileged:1", true],
  ["*/pause:*", "registry.k8s.io/pause:3.10", true],
  ["registry.k8s.io/*", "registry.k8s.io/coredns/coredns:v1", false],
  ["registry.k8s.io/**", "registry.k8s.io/coredns/coredns:v1", true],
  ["host:5000/app", "host:5000/app:v1", true],
  ["host:5000/team/app", "host:5000/team/app:v1", true],
  ["[fd00::1]:5000/app", "[fd00::1]:5000/app:v1", true],
  ["a".repeat(65), `docker.io/library/${"a".repeat(65)}:v1`, true],
  ["host:5000/app:*", "host:5000/app:v1", true],
  ["host:5000/app:*", "host:5000/other:v1", false],
  ["host:5000/app:*", "host:6000/app:v1", false],
  ["host:5000/app:*", "host/app:v1", false],
  ["host:5000/app:*", "docker.io/library/host:5000", false],
  ["host:*/app", "host:5000/app:v1", true],
  ["host:*/app", "host:5000/other:v1", false],
  ["**:latest", "quay.io/a/b:latest", true],
  ["**:latest", "quay.io/a/b:v1", false],
])("the pattern %s keeps %s: %p", (pattern, name, expected) => {
  expect(matched(pattern, tagged(name))).toBe(expected ? name : null);
});

test("a name without a tag means every digest too, one with a tag does not", () => {
  const image = { repoDigests: [`registry.example/app@${DIGEST}`] };
  expect(matched("registry.example/app", image)).toBe(`registry.example/app@${DIGEST}`);
  expect(matched("registry.example/app:*", image)).toBeNull();
});

test("sha256 matches an ID or a digest by a prefix of 12 hex digits", () => {
  expect(matched(ID.slice(0, 7 + 12), {})).toBe(ID);
  expect(matched(ID.slice("sha256:".length), {})).toBe(ID);
  expect(matched(DIGEST.slice("sha256:".length), {})).toBeNull();
  expect(matched(DIGEST.slice(0, 7 + 12), { repoDigests: [`a/b@${DIGEST}`] })).toBe(
    `a/b@${DIGEST}`,
  );
  expect(matched(DIGEST.slice(0, 7 + 12), {})).toBeNull();
  const bareId = { id: imageId(ID.slice("sha256:".length)) };
  expect(matched(ID, bareId)).toBe(bareId.id);
});

test("a digest after a name must belong to that name", () => {
  const image = { repoDigests: [`registry.example/app@${DIGEST}`] };
  expect(matched(`registry.example/app@${DIGEST}`, image)).not.toBeNull();
  expect(matched(`registry.example/app@${DIGEST.slice(0, 20)}`, image)).not.toBeNull();
  expect(matched(`registry.example/app@*`, image)).not.toBeNull();
  expect(matched(`registry.example/app@${DIGEST.slice(0, 9)}*`, image)).not.toBeNull();
  expect(matched(`registry.example/other@${DIGEST}`, image)).toBeNull();
  expect(matched(`registry.example/app@${ID}`, image)).toBeNull();
  expect(matched(`registry.example/app@${DIGEST}`, tagged("registry.example/app:v1"))).toBeNull();
});

test("with a tag and a digest the digest decides, or the tag if an image from an archive has no digest", () => {
  const pattern = `registry.example/app:v1@${DIGEST}`;
  expect(matched(pattern, { repoDigests: [`registry.example/app@${DIGEST}`] })).not.toBeNull();
  expect(matched(pattern, tagged("registry.example/app:v1"))).toBe("registry.example/app:v1");
  expect(matched(pattern, tagged("registry.example/app:v2"))).toBeNull();
  const moved = {
    repoTags: ["registry.example/app:v1"],
    repoDigests: [`registry.example/app@${ID}`],
  };
  expect(matched(pattern, moved)).toBeNull();
});

test.each([384, 512])(
  "a digest of SHA-%d names an image by 12 hex digits, up to all of them",
  (bits) => {
    const digest = `sha${bits}:${"0123456789abcdef".repeat(bits / 64)}`;
    for (const length of [12, bits / 4]) {
      const pattern = digest.slice(0, "sha512:".length + length);
      expect(matched(pattern, { repoDigests: [`a/b@${digest}`] })).toBe(`a/b@${digest}`);
    }
    expect(parseKeepPattern(`${digest}0`).kind).toBe("invalid");
    expect(parseKeepPattern(digest.slice(0, "sha512:".length + 11)).kind).toBe("invalid");
  },
);

test.each<[string, RegExp]>([
  ["", /empty/],
  ["a b", /space/],
  ["a\tb", /U\+0009/],
  ["app\u001b[31m", /U\+001B/],
  ["app\u007f", /U\+007F/],
  ["app\u009f", /U\+009F/],
  ["app?", /"\?"/],
  ["app\u{FFFD}", /invalid in image names/],
  ["app[0-9]", /invalid image name/],
  ["sha256:0123456789a", /12 hex digits/],
  ["sha256:", /12 hex digits/],
  ["app@", /12 hex digits/],
  ["app@SHA*", /12 hex digits/],
  ["app@*]", /12 hex digits/],
  ["app@asha256:0123456789ab", /12 hex digits/],
  [`${ID}0`, /12 hex digits/],
  ["app:", /tag/],
  [`app:${"v".repeat(129)}`, /tag/],
  ["registry.example//app", /invalid image name/],
  ["/app", /invalid image name/],
  ["a:b:c", /invalid image name/],
])("the invalid pattern %j is refused", (text, message) => {
  expect(parseKeepPattern(text)).toEqual({
    kind: "invalid",
    message: expect.stringMatching(message),
  });
});

test("an ID that is not a digest matches no digest pattern", () => {
  const pattern = parseKeepPattern("sha256:aaaaaaaaaaaa");
  const image = anImage("a", { id: imageId("sha256:short") });
  if (pattern.kind === "invalid") throw new Error(pattern.message);
  expect(matchPattern(pattern.pattern, imageNames(image))).toBeNull();
  expect(imageNames(image).digests).toEqual([]);
});

describe("globs", () => {
  const matches = (pattern: string, text: string): boolean =>
    globMatches(compileGlob(pattern), text);

  test("the matcher agrees with a regular expression on every short text", () => {
    const pattern = fc.stringMatching(/^[ab/*]{0,8}$/);
    const text = fc.stringMatching(/^[ab/]{0,10}$/);
    fc.assert(
      fc.property(pattern, text, (source, subject) => {
        const expected = source.replaceAll(/\*+/g, (stars) =>
          stars.length > 1 ? "[^]*" : "[^/]*",
        );
        expect(matches(source, subject)).toBe(new RegExp(`^${expected}$`).test(subject));
      }),
      { numRuns: 2_000 },
    );
  });

  test("a pattern that a backtracking matcher would never be done with is matched", () => {
    const evil = compileGlob(`${"*a".repeat(60)}**${"*a".repeat(60)}b*`);
    // It has all that the pattern asks for in its order, but for the component.
    const text = `${"a".repeat(500)}b/`;
    expect(globMatches(evil, text)).toBeFalse();
  });
});
