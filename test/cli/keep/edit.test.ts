// keep add and keep remove: one file, which says who added a pattern and when, and is never damaged further.

import { expect, test } from "bun:test";

import { hours, plus } from "../../../src/model/time.ts";
import { parseKeepFile } from "../../../src/policy/keep/keep.ts";
import { NOW } from "../../support/build/values.ts";
import { crigc, keepFileOf } from "../world.ts";

const path = "/etc/crigc/keep.d/crigc.list";

async function keep(words: string, before: string | null = null, now = NOW, user = "anna") {
  const { keepFile, text } = keepFileOf(path, before);
  const ran = await crigc(["keep", ...words.split(" ")], {
    env: { SUDO_USER: user },
    open: { now: () => now, userId: 0, keepFile },
  });
  return { ...ran, text: text() };
}

/** One command an hour after the other; what each says, and what is in the file then. */
async function day(before: string | null, lines: readonly string[]): Promise<string> {
  let text = before;
  const said: string[] = [];
  for (const [hour, line] of lines.entries()) {
    const ran = await keep(line, text, plus(NOW, hours(hour)));
    const isSame = ran.text === text;
    if (ran.text !== null) expect(parseKeepFile(ran.text, path).problems).toEqual([]);
    if (ran.code !== 0 || line.includes("--dry-run")) expect(isSame).toBeTrue();
    text = ran.text;
    said.push(`> ${line} (${ran.code})\n${ran.stdout}${ran.stderr}${isSame ? "the same" : text}`);
  }
  return said.join("\n");
}

test("a pattern is added once, with who added it and when; removing it takes its comment and nothing else", async () => {
  const lines = [
    "add nginx registry.example/**",
    "add nginx nginx",
    "add a/one a/two a/three --until 7d",
    "remove a/two",
    "remove a/one a/gone",
    "add fine sha256:12",
    "add fine --dry-run",
    "remove nginx registry.example/** a/one a/three redis",
  ];
  expect(await day("# ours\nredis # the cache\n", lines)).toMatchSnapshot();
});

test("a lease is renewed by the same words, others are added to it, and a pattern for good replaces it and stays", async () => {
  const lines = [
    "add a/x:1 --until 7d",
    "add a/x:1 --until 7d",
    "add a/x:1 --until 1d",
    "add a/x:1",
    "add a/x:1 --until 1d",
    "add a/y:1 --until-used",
    "add a/z:1 --until-used --until 30d",
    "add a/z:2 --until 1h30m",
  ];
  expect(await day(null, lines)).toMatchSnapshot();
});

test("a file truncated after keep add is detected, and left as it is", async () => {
  const { text } = await keep("add a/one a/two");
  const cut = (text ?? "").slice(0, -8);
  expect(parseKeepFile(cut, path).problems).not.toEqual([]);
  const refused = await keep("add a/three", cut);
  expect(refused).toMatchObject({ code: 2, text: cut });
  expect(refused.stderr).toContain("repair");
});

test("a user name that is unsafe in a comment is replaced by the user's number", async () => {
  const { text } = await keep("add nginx", null, NOW, "x\nr.example/**");
  expect(text).toContain("# added by user 0 at");
  expect(parseKeepFile(text ?? "", path).rules).toHaveLength(1);
});
