// keep add and keep remove: one file, which says who added a pattern and when, and is never damaged further.

import { expect, test } from "bun:test";

import { parseKeepFile } from "../../../src/policy/keep/keep.ts";
import { NOW } from "../../support/build/values.ts";
import { crigc, keepFileOf } from "../world.ts";

const path = "/etc/crigc/keep.d/crigc.list";

async function keep(words: readonly string[], before: string | null = null, env = {}) {
  const { keepFile, text: now } = keepFileOf(path, before);
  const open = { now: () => NOW, userId: 0, keepFile };
  const ran = await crigc(["keep", ...words], { env, open });
  const text = now();
  const patterns = parseKeepFile(text ?? "#", path).rules.map(({ pattern }) => pattern);
  return { ...ran, text, patterns };
}

test("an added pattern is in the file with who added it and when", async () => {
  const added = await keep(["add", "nginx", "registry.example/**"], null, { SUDO_USER: "anna" });
  expect(added).toMatchObject({ code: 0, patterns: ["nginx", "registry.example/**"] });
  expect(added.text).toMatch(/# added by anna at 20\d\d-\d\d-\d\dT[\d:.]+Z\nnginx\n/);
});

test("a pattern is added once, and existing patterns and comments are kept", async () => {
  const first = await keep(["add", "nginx"], "# ours\nredis # the cache\n");
  expect(first.patterns).toEqual(["redis", "nginx"]);
  const second = await keep(["add", "nginx", "nginx"], first.text);
  expect(second.text).toBe(first.text);
  expect(second.text).toContain("# ours\nredis # the cache\n");
});

test.each([[[]], [["--until", "7d"]]])(
  "removing a pattern, with a lease as %j, removes its comment and nothing else",
  async (lease) => {
    const three = await keep(["add", "a/one", "a/two", "a/three", ...lease]);
    const two = await keep(["remove", "a/two"], three.text);
    expect(two).toMatchObject({ code: 0, patterns: ["a/one", "a/three"] });
    expect(two.text?.match(/# added by/g)).toHaveLength(2);
    const none = await keep(["remove", "a/one", "a/three"], two.text);
    expect(none).toMatchObject({ code: 0, patterns: [] });
    expect(none.text).not.toBe("");
    expect(parseKeepFile(none.text ?? "", path).problems).toEqual([]);
  },
);

test("a file truncated after keep add is detected", async () => {
  const { text } = await keep(["add", "a/one", "a/two"]);
  const cut = (text ?? "").slice(0, -8);
  expect(parseKeepFile(cut, path).problems).not.toEqual([]);
  const refused = await keep(["add", "a/three"], cut);
  expect(refused).toMatchObject({ code: 2, text: cut });
  expect(refused.stderr).toContain("repair");
});

test.each([
  [["add", "nginx", "not valid"], null, 2, "invalid pattern"],
  [["remove", "a/one", "a/two"], "a/one\n", 8, "pattern a/two not found"],
  [["add", "nginx", "--dry-run"], null, 0, "1 pattern would be added"],
  [["add", "a/x:1", "--until", "1h30m"], null, 2, "1h30m"],
])("keep %j changes nothing", async (words, before, code, said) => {
  const { stdout, stderr, ...ran } = await keep(words, before);
  expect(ran).toMatchObject({ code, text: before });
  expect(stdout + stderr).toContain(said);
});

test("a user name that is unsafe in a comment is replaced by the user's number", async () => {
  const { text } = await keep(["add", "nginx"], null, { SUDO_USER: "x\nr.example/**" });
  expect(text).toContain("# added by user 0 at");
  expect(parseKeepFile(text ?? "", path).rules).toHaveLength(1);
});

test.each([
  [["--until", "7d"], "until 7d"],
  [["--until-used"], "until used"],
  [["--until-used", "--until", "30d"], "until used or 30d"],
])("keep add %j writes a lease behind the pattern", async (words, lease) => {
  const { code, text } = await keep(["add", "a/x:1", ...words]);
  expect(code).toBe(0);
  expect(text).toEndWith(`\na/x:1 # crigc: ${lease}, added 2026-01-01T00:00:00Z\n`);
  expect(parseKeepFile(text ?? "", path)).toMatchObject({ rules: [{ lease: {} }], problems: [] });
});

test("a lease is renewed by the same words, and another one is added to it", async () => {
  const first = await keep(["add", "a/x:1", "--until", "7d"]);
  const old = (first.text ?? "").replace("added 2026-01-01", "added 2025-12-01");
  const renewed = await keep(["add", "a/x:1", "--until", "7d"], old);
  expect(renewed.text).toBe(first.text);
  const other = await keep(["add", "a/x:1", "--until", "1d"], renewed.text);
  expect(other.patterns).toEqual(["a/x:1", "a/x:1"]);
  expect(other.stdout).toContain("1 pattern added, 1 in total");
});

test("adding a pattern for good replaces its leases, and a lease never replaces a rule", async () => {
  const leased = await keep(["add", "a/x:1", "--until", "7d"]);
  const forGood = await keep(["add", "a/x:1"], leased.text);
  expect(forGood.text).not.toContain("until");
  expect(forGood.patterns).toEqual(["a/x:1"]);
  const again = await keep(["add", "a/x:1", "--until", "1d"], forGood.text);
  expect(again).toMatchObject({ text: forGood.text });
  expect(again.stdout).toContain("0 patterns added");
});
