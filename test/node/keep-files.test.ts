import { describe, expect, test } from "bun:test";
import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { HostError } from "../../src/model/errors.ts";
import type { KeepRule } from "../../src/model/snapshot.ts";
import {
  changeKeepFile,
  type KeepRulesRequest,
  readKeepRules,
  steadyKeepRules,
} from "../../src/node/keep-files.ts";
import { tryFlock } from "../../src/node/libc.ts";
import { put, scratch } from "../support/scratch.ts";

/** A parser that shows what it was given: one rule for the text, or a problem for "wrong". */
const parseFile: KeepRulesRequest["parseFile"] = (text, source) =>
  text.includes("wrong")
    ? { rules: [], problems: [{ source: `${source}:1`, message: "it is wrong" }] }
    : { rules: [{ pattern: text, source: `${source}:1` }], problems: [] };
const parsePattern: KeepRulesRequest["parsePattern"] = (text) =>
  text === "wrong" ? { kind: "invalid", message: "it is wrong" } : { kind: "valid" };

const rules = (directory: string, change: Partial<KeepRulesRequest> = {}) =>
  readKeepRules({
    directory,
    isNamed: false,
    patterns: [],
    infraImages: [],
    known: [],
    parseFile,
    parsePattern,
    ...change,
  });

describe("readKeepRules", () => {
  test("gives flags and files, each with its place, in the order of names", async () => {
    const directory = scratch();
    put(directory, "b.list", "from b");
    put(directory, "a.list", "from a");
    const read = await rules(directory, { patterns: ["x", "y"] });
    expect(JSON.stringify(read, null, 1).replaceAll(directory, "DIR")).toMatchSnapshot();
  });

  test("an invalid pattern of a flag or file is a problem with its place, next to valid ones", async () => {
    const directory = scratch();
    put(directory, "a.list", "wrong");
    put(directory, "b.list", "right");
    const infraImages = ["right", "wrong"];
    const read = await rules(directory, { patterns: ["wrong"], infraImages });
    expect(JSON.stringify(read, null, 1).replaceAll(directory, "DIR")).toMatchSnapshot();
  });

  test("leftovers of editors and packages are ignored; what may be meant as a list is a problem", async () => {
    const directory = scratch();
    const leftovers = "a.list~ .a.list.swp .hidden #a.list# a.list.bak a.list.orig a.list.swp";
    const packages = "a.list.dpkg-old a.list.dpkg-dist a.list.rpmnew a.list.rpmsave";
    const meant = ["README", "a.LIST", "a.list.old", "images.txt"];
    for (const name of [...leftovers.split(" "), ...packages.split(" "), ...meant])
      put(directory, name, "right");
    const { problems, rules: found } = await rules(directory);
    expect(problems.map(({ source }) => source)).toEqual(meant.map((it) => join(directory, it)));
    expect(found).toEqual([]);
  });

  test("a file that is not text, or whose name is not, is a problem", async () => {
    const directory = scratch();
    mkdirSync(join(directory, "directory.list"));
    symlinkSync("/nowhere", join(directory, "dangling.list"));
    symlinkSync("/dev/null", join(directory, "device.list"));
    put(directory, "large.list", "x".repeat(4 * 1024 * 1024 + 1));
    await Bun.write(join(directory, "binary.list"), new Uint8Array([0x61, 0xff, 0x0a]));
    writeFileSync(Buffer.from(`${directory}/a\u00ff.list`, "latin1"), "nginx");
    expect(Bun.spawnSync(["mkfifo", join(directory, "pipe.list")]).exitCode).toBe(0);
    const { problems, rules: found } = await rules(directory);
    const said = problems.map(({ source, message }) => `${source}: ${message}`).join("\n");
    expect(said.replaceAll(directory, "")).toMatchSnapshot();
    expect(found).toEqual([]);
  });

  test("a link to a list, and a link to the directory, are followed", async () => {
    const directory = scratch();
    const elsewhere = put(scratch(), "x", "right");
    symlinkSync(elsewhere, join(directory, "a.list"));
    const link = join(scratch(), "link");
    symlinkSync(directory, link);
    expect(await rules(link)).toMatchObject({ rules: [{ pattern: "right" }], problems: [] });
  });

  test("the default directory may be absent until rules were read there; a configured one may not, nor a file in its place", async () => {
    const directory = join(scratch(), "absent");
    const nothing = { rules: [], problems: [], directoriesRead: [] };
    expect(await rules(directory)).toEqual(nothing);
    expect(await rules(directory, { known: ["/elsewhere"] })).toEqual(nothing);
    const file = put(scratch(), "keep.d");
    for (const read of [
      rules(directory, { known: [directory] }),
      rules(directory, { isNamed: true }),
      rules(file),
    ])
      expect((await read).problems).toHaveLength(1);
  });
});

/** Readings as `SECOND PATTERN…`, of what the source holds then; the patterns in force after each. */
async function inForce(source: string, readings: readonly string[]): Promise<readonly string[]> {
  let now = 0n;
  let current: readonly KeepRule[] = [];
  const read = steadyKeepRules(
    async () => ({ rules: current, problems: [], directoriesRead: [] }),
    () => now,
  );
  const found: string[] = [];
  for (const reading of readings) {
    const [second = "", ...patterns] = reading.split(" ");
    now = BigInt(second) * 1_000_000_000n;
    // The line of a rule may move.
    current = patterns.map((pattern, line) => ({ pattern, source: `${source}:${line}` }));
    found.push((await read([])).rules.map(({ pattern }) => pattern).join(" "));
  }
  return found;
}

const list = "/etc/crigc/keep.d/site.list";
test.each([
  [
    "that a keep file loses while it is rewritten stays in force",
    list,
    ["0 app db", "60 db", "64 app db", "124"],
    ["app db", "db app", "app db", "app db"],
  ],
  [
    "that is deleted ends with the first reading ten seconds after it was missed",
    list,
    ["0 app db", "60 app", "69 app", "70 app"],
    ["app db", "app db", "app db", "app"],
  ],
  [
    "of a flag ends at once, because flags are never half-written",
    "--keep",
    ["0 app", "1"],
    ["app", ""],
  ],
])("a rule %s", async (_, source, readings, patterns) => {
  expect(await inForce(source, readings)).toEqual(patterns);
});

test("a change gets the current text, and null leaves the file unchanged", () => {
  const path = join(scratch(), "keep.d/crigc.list");
  expect(changeKeepFile(path, (before) => ({ text: "nginx\n", answer: before }))).toBeNull();
  expect(changeKeepFile(path, (before) => ({ text: null, answer: before }))).toBe("nginx\n");
  expect(readFileSync(path, "utf8")).toBe("nginx\n");
});

test("a change of a linked list changes the target, and the link stays", () => {
  const top = scratch();
  const target = put(top, "site/nodes.list", "nginx\n");
  const path = join(scratch(), "site.list");
  symlinkSync(target, path);
  changeKeepFile(path, (before) => ({ text: `${before}redis\n`, answer: 0 }));
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  expect(readFileSync(target, "utf8")).toBe("nginx\nredis\n");
});

test("a list whose link leads nowhere is not replaced", () => {
  const path = join(scratch(), "site.list");
  symlinkSync("/does/not/exist.list", path);
  const change = () => changeKeepFile(path, () => ({ text: "redis\n", answer: 0 }));
  expect(change).toThrow(`cannot write ${path}: the target of the link`);
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
});

test("a file that another process is changing is waited for, then refused and left unchanged", () => {
  const top = scratch();
  const path = put(top, "crigc.list", "nginx\n");
  const held = openSync(put(top, ".crigc.list.lock"), "r+");
  expect(tryFlock(held)).toEqual({ kind: "locked" });
  const change = () => changeKeepFile(path, () => ({ text: "redis\n", answer: 0 }), 40);
  expect(change).toThrow(HostError);
  expect(change).toThrow("another crigc is changing it");
  expect(readFileSync(path, "utf8")).toBe("nginx\n");
  closeSync(held);
  expect(change()).toBe(0);
  expect(readFileSync(path, "utf8")).toBe("redis\n");
});

test("a change that fails drops the lock", () => {
  const path = put(scratch(), "crigc.list", "nginx\n");
  const failing = () =>
    changeKeepFile(path, () => {
      throw new Error("the list is damaged");
    });
  expect(failing).toThrow("the list is damaged");
  expect(changeKeepFile(path, () => ({ text: null, answer: "free" }), 0)).toBe("free");
});
