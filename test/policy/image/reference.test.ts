import { expect, test } from "bun:test";

import {
  isImportName,
  parseReference,
  repositoryOfImage,
  splitReference,
} from "../../../src/policy/image/reference.ts";
import { anImage } from "../../support/build/values.ts";

const HEX = "a1".repeat(32);

test.each<[string, string, string | null]>([
  ["nginx", "docker.io/library/nginx", null],
  ["nginx:1.27", "docker.io/library/nginx", "1.27"],
  ["grafana/loki:3", "docker.io/grafana/loki", "3"],
  ["docker.io/nginx", "docker.io/library/nginx", null],
  ["index.docker.io/nginx:1", "docker.io/library/nginx", "1"],
  ["host:5000/app", "host:5000/app", null],
  ["host:5000/app:v1", "host:5000/app", "v1"],
  ["host:5000/team/app:v1", "host:5000/team/app", "v1"],
  ["localhost/app", "localhost/app", null],
  ["localhost:5000/app", "localhost:5000/app", null],
  ["Registry/app", "Registry/app", null],
  ["[2001:db8::1]:5000/app:v1", "[2001:db8::1]:5000/app", "v1"],
  ["host:5000", "docker.io/library/host", "5000"],
  ["localhosts", "docker.io/library/localhosts", null],
  [`${HEX}a`, `docker.io/library/${HEX}a`, null],
  [`r.example/${"a".repeat(502)}`, `r.example/${"a".repeat(502)}`, null],
])(
  "the name %s is parsed as %s with the tag %p, without taking a port for one",
  (text, repository, tag) => {
    expect(parseReference(text)).toEqual({ kind: "name", repository, tag, digest: null });
  },
);

test("an ID is a digest, with or without its algorithm and the schemes of old runtimes", () => {
  const digest = { kind: "digest", digest: `sha256:${HEX}` } as const;
  for (const text of [HEX, `sha256:${HEX}`, `docker://sha256:${HEX}`])
    expect(parseReference(text)).toEqual(digest);
  expect(parseReference(`docker-pullable://nginx@sha256:${HEX}`)).toMatchObject({
    digest: `sha256:${HEX}`,
  });
});

test.each([384, 512])("only a whole digest of SHA-%d counts", (bits) => {
  const digest = `sha${bits}:${"a1".repeat(bits / 8)}`;
  expect(parseReference(digest)).toEqual({ kind: "digest", digest });
  for (const text of [`${digest}a`, digest.slice(0, -1)])
    expect(parseReference(`app@${text}`)).toBeNull();
});

test("a text is split at its first @ and at its last colon, unless that is part of an address", () => {
  expect(splitReference("@a")).toEqual({ name: "", tag: null, digest: "a" });
  expect(splitReference("[fd00::1]")).toEqual({ name: "[fd00::1]", tag: null, digest: null });
});

test("the repository of several names is that of the first tag, or of the first digest where there is none", () => {
  const digests = [`b.example/d@sha256:${HEX}`, `a.example/d@sha256:${HEX}`];
  const of = (repoDigests: readonly string[], ...repoTags: readonly string[]) =>
    repositoryOfImage(anImage("a", { repoTags, repoDigests }));
  expect(of(digests, "d.example/t:v1", "c.example/t:v1")).toBe("c.example/t");
  expect(of(digests, "<none>:<none>")).toBe("a.example/d");
  expect(of([], "<none>:<none>")).toBeNull();
});

test("an invalid reference is rejected", () => {
  for (const text of [
    "",
    "<none>:<none>",
    "a b",
    "a//b",
    "/a",
    "a/",
    "app:",
    "app@sha256:12",
    "app@",
    "ä",
    "a:b:c",
    "a\u0000",
    "xdocker://a",
    `app:${"v".repeat(129)}`,
    `r.example/${"a".repeat(503)}`,
  ]) {
    expect(parseReference(text)).toBeNull();
  }
});

test("only names made up by an import count as made up", () => {
  expect(isImportName("docker.io/library/import-2026-01-31")).toBeTrue();
  expect(isImportName("import-2026-01-31")).toBeTrue();
  expect(isImportName("docker.io/library/import-2026-1-31")).toBeFalse();
  expect(isImportName("docker.io/library/reimport-2026-01-31")).toBeFalse();
  expect(isImportName("docker.io/import-2026-01-31/app")).toBeFalse();
});
