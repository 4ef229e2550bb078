// What only looks changes nothing: no call that removes, no file of the state directory, no lock; and says what gc then does.
import { expect, test } from "bun:test";
import { existsSync, lstatSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { commands } from "../../../src/cli/dispatch.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { put } from "../../support/scratch.ts";
import { type Json, removable, startNode, usedAndUnused } from "./node.ts";

const node = usedAndUnused;
const flags = [...removable, "--maximum-dead-containers-per-container=0"];
const looks: readonly (readonly string[])[] = [
  ["plan"],
  ["plan", "--all-unused", "-o", "json"],
  ["snapshot"],
  ["images"],
  ["explain", "r.example/unused:1"],
  ["gc", "--dry-run"],
  ["gc", "--dry-run", "--all-unused"],
  ["history"],
  ["keep", "list"],
  ["config"],
  ["doctor"],
];

/** Names, contents and times to the nanosecond of everything in a directory. */
function stateOf(directory: string): Json {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((name) => {
      const path = join(directory, name);
      const { mtimeNs, ctimeNs, size, ino, mode } = lstatSync(path, { bigint: true });
      const content = lstatSync(path).isFile() ? Bun.hash(readFileSync(path)) : "";
      return { name, mtimeNs, ctimeNs, size, ino, mode, content };
    });
}

test("read-only commands change neither runtime nor state directory, and create no directory", async () => {
  await using it = await startNode({ node, flags });
  const look = async () => {
    for (const words of looks) expect((await it.crigc(...words)).stdout).not.toBe("");
    expect(existsSync(it.runDir)).toBe(false);
  };
  await look();
  expect(existsSync(it.stateDir)).toBe(false);
  expect(it.changes()).toEqual([]);
  await it.crigc("gc", "--images");
  rmSync(it.runDir, { recursive: true, force: true });
  const before = stateOf(it.stateDir);
  expect(before.length).toBeGreaterThan(0);
  await look();
  expect(stateOf(it.stateDir)).toEqual(before);
  expect(it.changes()).toEqual([]);
});

/** What a command needs beside its name; other tests watch the agent. */
const operands = (home: string): Readonly<Record<string, readonly string[]>> => ({
  explain: [imageIdOf("used")],
  hold: ["90m"],
  report: ["--html", join(home, "report.html")],
  install: ["--root", join(home, "tree")],
  uninstall: ["--root", join(home, "tree"), "--purge"],
  "keep baseline": ["--once", "--replace"],
  "keep test": ["r.example/used"],
  rm: [imageIdOf("unused")],
  print: ["daemonset"],
  completion: ["bash"],
});

test("no command changes anything with --dry-run, and each accepts the flag", async () => {
  await using it = await startNode({ node, flags });
  put(it.home, "tree/etc/os-release");
  await it.crigc("install", "--root", join(it.home, "tree"));
  await it.crigc("gc", "--images");
  await it.crigc("hold", "2h");
  const before = stateOf(it.home);
  const wrong: Record<string, string> = {};
  for (const { name } of commands.filter((command) => command.name !== "run")) {
    const words = [...name.split(" "), ...(operands(it.home)[name] ?? [])];
    const { exitCode, stderr } = await it.crigc(...words, "--dry-run");
    const isChanged = !Bun.deepEquals(stateOf(it.home), before);
    if (isChanged || exitCode === 1 || exitCode === 2)
      wrong[name] = `exit ${exitCode}, ${isChanged ? "changed" : "unchanged"}: ${stderr}`;
  }
  expect(wrong).toEqual({});
  expect(it.changes()).toEqual([]);
});
