import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { HostError } from "../../src/model/errors.ts";
import {
  baselineStamp,
  hadKeepRules,
  type KeepRulesRequest,
  readKeepRules,
  setBaselineStamp,
  setHadKeepRules,
} from "../../src/node/keep-files.ts";
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
    hadRules: () => false,
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
    expect(await rules(directory)).toEqual({ rules: [], problems: [] });
    const file = put(scratch(), "keep.d");
    const unread = () => {
      throw new HostError("read", "the state directory is gone");
    };
    for (const read of [
      rules(directory, { hadRules: () => true }),
      rules(directory, { hadRules: unread }),
      rules(directory, { isNamed: true }),
      rules(file),
    ])
      expect((await read).problems).toHaveLength(1);
  });
});

test("a list that is a link to a file of /proc with a size of 0 and terabytes is a problem, and is not read whole", async () => {
  const directory = scratch();
  symlinkSync("/proc/self/pagemap", join(directory, "endless.list"));
  const before = process.memoryUsage().rss;
  const { problems } = await rules(directory);
  expect(problems.map(({ message }) => message)).toEqual([
    expect.stringContaining("the file cannot be read: "),
  ]);
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
});

test("the stamp of a baseline and the directory that had rules are files of their own", () => {
  const state = join(scratch(), "state");
  expect(baselineStamp(state)).toBeNull();
  expect(hadKeepRules(state, "/k")).toBe(false);
  setBaselineStamp(state, "2026-01-15T12:00:00Z");
  setHadKeepRules(state, "/k");
  expect(baselineStamp(state)).toBe("2026-01-15T12:00:00Z");
  expect(hadKeepRules(state, "/k")).toBe(true);
  expect(hadKeepRules(state, "/other")).toBe(false);
  expect(JSON.parse(readFileSync(join(state, "keep-baseline.json"), "utf8"))).toBe(
    "2026-01-15T12:00:00Z",
  );
});

test.each(["", "{", "{}", "null", "7", '{"directory":"/k"}'])(
  "a damaged file %j of either counts as one that was written",
  (text) => {
    const state = scratch();
    put(state, "keep-baseline.json", text);
    put(state, "keep-directory.json", text);
    expect(baselineStamp(state)).not.toBeNull();
    expect(hadKeepRules(state, "/k")).toBe(true);
  },
);
