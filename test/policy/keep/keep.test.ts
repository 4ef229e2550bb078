import { describe, expect, test } from "bun:test";

import {
  compileKeepRules,
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

describe("a keep file", () => {
  const PATH = "/etc/crigc/keep.d/base.list";
  const patterns = (text: string): readonly string[] =>
    parseKeepFile(text, PATH).rules.map(({ pattern }) => pattern);

  test("a byte order mark, CRLF and comments after patterns are accepted", () => {
    expect(
      patterns("\u{FEFF}nginx\r\nredis:7 # the cache\r\n\r\n\t# nothing\r\nbusybox\n"),
    ).toEqual(["nginx", "redis:7", "busybox"]);
  });

  test.each(["# images\rnginx\rredis\n", "nginx # the server\rredis\n", "redis\rnginx\n"])(
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
    ["a last line without a newline", "nginx\nregistry.k8s.io/pause:3.10", [""]],
    ["two names on one line", "nginx redis\n", [":1"]],
    ["text that is not a list", "<html>\n<body>502</body>\n", [":1", ":2"]],
  ])("of %s is invalid, and each problem names its place", (_, text, places) => {
    const { problems } = parseKeepFile(text, PATH);
    expect(problems.map(({ source }) => source)).toEqual(places.map((place) => `${PATH}${place}`));
    expect(problems.some(({ message }) => message.includes("is empty"))).toBe(text === "");
  });

  test("that is cut anywhere but after a whole line is invalid and has no rules", () => {
    const text = "# site\nregistry.k8s.io/pause:3.10 # sandbox\r\n\nsha256:0123456789ab\nnginx\n";
    const whole = new Set<number>();
    for (let at = 0; at < text.length; at += 1) {
      const { rules, problems } = parseKeepFile(text.slice(0, at), PATH);
      if (problems.length === 0) whole.add(at);
      else expect(rules).toEqual([]);
    }
    const ends = Array.from(text.matchAll(/\n/g), ({ index }) => index + 1);
    expect([...whole]).toEqual(ends.slice(0, -1));
  });
});
