import { describe, expect, test } from "bun:test";

import {
  compileKeepRules,
  keepFileHeader,
  keepRuleMatches,
  matchKeepRules,
  parseKeepFile,
  unmatchedKeepRules,
} from "../../../src/policy/keep/keep.ts";
import { anImage } from "../../support/build/values.ts";

const rule = (pattern: string) => ({ pattern, source: "--keep" });

test("the first rule that matches is named with the name that it matched", () => {
  const rules = ["redis", "**/app", "registry.example/app", "**"].map((it) => rule(it));
  expect(matchKeepRules(compileKeepRules(rules), anImage("app"))).toEqual({
    rule: rule("**/app"),
    name: "registry.example/app:v1",
  });
});

test("digest rules of any length find their image, and no other whose digest begins alike", () => {
  const digest = `sha256:${"0123456789ab".padEnd(64, "c")}`;
  const [alike, sha512] = [`sha256:${"0123456789ab".padEnd(64, "d")}`, `sha512:${"e".repeat(128)}`];
  const repoDigests = [`registry.example/app@${digest}`, `registry.example/app@${sha512}`];
  const found = (pattern: string) =>
    matchKeepRules(compileKeepRules([rule(pattern)]), anImage("app", { repoDigests }))?.name;
  expect(
    [digest.slice(0, 19), digest.slice(0, 20), digest, sha512.slice(0, 19)].map(found),
  ).toEqual([repoDigests[0], repoDigests[0], repoDigests[0], repoDigests[1]]);
  expect([alike, alike.slice(0, 20), `sha512:${digest.slice(7, 19)}`].map(found)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test("rules that match nothing are distinguished from those that match", () => {
  const rules = [rule("registry.example/app"), rule("registry.example/ap"), rule("**")];
  const images = [anImage("app"), anImage("web")];
  const compiled = compileKeepRules(rules);
  expect([...keepRuleMatches(compiled, images).values()].map((kept) => kept.length)).toEqual([
    1, 0, 2,
  ]);
  expect(unmatchedKeepRules(compiled, images).map(({ pattern }) => pattern)).toEqual([
    "registry.example/ap",
  ]);
});

test("a rule matches an image by an earlier name, but not by a tag that another image has now", () => {
  const [app, web] = [anImage("app"), anImage("web")];
  const compiled = compileKeepRules([
    rule("registry.example/old"),
    rule("registry.example/web:v1"),
  ]);
  const earlierNames = ["registry.example/old:v1", "registry.example/web:v1"];
  const matches = keepRuleMatches(compiled, [app, web], new Map([[app.id, { earlierNames }]]));
  expect([...matches.values()]).toEqual([[app], [web]]);
});

describe("a keep file", () => {
  const PATH = "/etc/crigc/keep.d/base.list";
  const patterns = (text: string): readonly string[] =>
    parseKeepFile(text, PATH).rules.map(({ pattern }) => pattern);

  test("a byte order mark, CRLF, a missing last newline and comments after patterns are accepted", () => {
    expect(patterns("\u{FEFF}nginx\r\nredis:7 # the cache\r\n\r\n\t# nothing\r\nbusybox")).toEqual([
      "nginx",
      "redis:7",
      "busybox",
    ]);
  });

  test.each(["# images\rnginx\rredis\r", "nginx # the server\rredis\n", "redis\rnginx\n"])(
    "a carriage return alone, as in %j, never hides a pattern in a comment",
    (text) => {
      const { rules, problems } = parseKeepFile(`busybox\n${text}`, PATH);
      expect(rules.map(({ pattern }) => pattern)).toEqual(["busybox"]);
      expect(problems).toMatchObject([{ source: `${PATH}:2` }]);
      expect(problems[0]?.message).toContain("carriage return");
    },
  );

  test.each([
    ["0 bytes", "", [""]],
    ["a byte order mark alone", "\u{FEFF}", [""]],
    ["a last line that ends in the middle of a name", "nginx\nregistry.k8s.io/", [":2"]],
    ["a last line that ends in the middle of a digest", "nginx\napp@sha256:0123", [":2"]],
    ["two names on one line", "nginx redis\n", [":1"]],
    ["text that is not a list", "<html>\n<body>502</body>\n", [":1", ":2"]],
  ])("of %s is damaged, and each problem names its place", (_, text, places) => {
    const { problems } = parseKeepFile(text, PATH);
    expect(problems.map(({ source }) => source)).toEqual(places.map((place) => `${PATH}${place}`));
    if (places[0] === "") expect(problems[0]?.message).toContain("0 bytes");
  });

  test("a promise is a whole line with the number of patterns", () => {
    const none = ["a/x # crigc: 9 patterns or more", "# crigc: 9 patterns or more or less"];
    expect(parseKeepFile(none.join("\n"), PATH).problems).toEqual([]);
    expect(parseKeepFile(`${keepFileHeader(12)}\na/x\n`, PATH).problems).toHaveLength(1);
  });
});
