// What only looks changes nothing: no call that removes, no file of the state directory, no lock; and says what gc then does.
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { commands } from "../../../src/cli/commands.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { runProgram } from "../../support/program.ts";
import { put } from "../../support/scratch.ts";
import { TRACE } from "../../support/trace.ts";
import { type Json, removable, startNode, type TestNode, usedAndUnused } from "./node.ts";

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
  ["keep", "check"],
  ["config"],
  ["audit"],
  ["doctor"],
];
const nameOf = (words: readonly string[]): string => words.join(" ");

/** Names, contents and times to the nanosecond of everything in a directory. */
function stateOf(directory: string): Json {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((name) => {
      const path = join(directory, name);
      const { mtimeNs, ctimeNs, size, ino, mode } = statSync(path, { bigint: true });
      const content = statSync(path).isFile() ? Bun.hash(readFileSync(path)) : "";
      return { name, mtimeNs, ctimeNs, size, ino, mode, content };
    });
}

describe("on a node that was collected before", () => {
  const collected = async (): Promise<TestNode> => {
    const it = await startNode({ node, flags });
    await it.crigc("gc", "--images");
    for (const file of it.lockFiles()) rmSync(file);
    rmSync(it.runDir, { recursive: true, force: true });
    return it;
  };

  test.each(looks.map((words) => [nameOf(words), words] as const))(
    "%s leaves the runtime, the state directory and the lock alone",
    async (_, words) => {
      await using it = await collected();
      const [command = "", ...rest] = words;
      const before = stateOf(it.stateDir);
      const locks = it.lockFiles();
      const { stdout } = await it.crigc(command, ...rest);
      expect(stdout).not.toBe("");
      expect(stateOf(it.stateDir)).toEqual(before);
      expect(before.length).toBeGreaterThan(0);
      expect(it.changes()).toEqual([]);
      expect(it.lockFiles()).toEqual(locks);
      expect(existsSync(it.runDir)).toBe(false);
    },
  );
});

describe("with --dry-run", () => {
  /** A file tree to install into: with the loaders that an executable may need. */
  function treeIn({ home }: TestNode): void {
    for (const loader of ["lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"])
      put(home, `tree/${loader}`, "");
  }

  /** What a command needs beside its name; the agent is watched by tests of its own. */
  const operands = (home: string): Readonly<Record<string, readonly string[]>> => ({
    explain: [imageIdOf("used")],
    hold: ["90m"],
    report: ["--html", join(home, "report.html")],
    install: ["--root", join(home, "tree"), "--init=systemd", "--baseline"],
    uninstall: ["--root", join(home, "tree"), "--purge"],
    "keep baseline": ["--once", "--replace"],
    "keep add": ["r.example/used"],
    "keep remove": ["r.example/listed"],
    "keep test": ["r.example/used"],
    rm: [imageIdOf("unused")],
    "print daemonset": [`--image=r.example/crigc@${imageIdOf("crigc")}`, "--image-store=/images"],
    completion: ["bash"],
    fleet: [join(home, "node.json")],
    simulate: ["--trace", join(home, "node.trace"), "--html", join(home, "simulation.html")],
  });

  test("no command changes anything, and each accepts the flag", async () => {
    await using it = await startNode({ node, flags });
    treeIn(it);
    await it.crigc("install", "--root", join(it.home, "tree"), "--init=none");
    await it.crigc("gc", "--images");
    await it.crigc("hold", "2h");
    await it.within({}, "keep", "add", "r.example/listed");
    put(it.home, "node.json", (await it.crigc("snapshot")).stdout);
    put(it.home, "node.trace", TRACE);
    const before = stateOf(it.home);
    const wrong: Record<string, string> = {};
    for (const { name } of commands.filter((command) => command.name !== "run")) {
      const words = [...name.split(" "), ...(operands(it.home)[name] ?? [])];
      const { exitCode, stderr } = await it.within({}, ...words, "--dry-run");
      const isChanged = !Bun.deepEquals(stateOf(it.home), before);
      if (isChanged || exitCode === 1 || exitCode === 2)
        wrong[name] = `exit ${exitCode}, ${isChanged ? "changed" : "unchanged"}: ${stderr}`;
    }
    expect(wrong).toEqual({});
    expect(it.changes()).toEqual([]);
  }, 20_000);
});

test("without a state directory no read-only command creates one", async () => {
  await using it = await startNode({ node, flags });
  for (const [command = "", ...rest] of looks) await it.crigc(command, ...rest);
  expect(existsSync(it.stateDir)).toBe(false);
  expect(existsSync(it.runDir)).toBe(false);
  expect(it.lockFiles()).toEqual([]);
  expect(it.changes()).toEqual([]);
});

test("read-only commands do not wait for a pass that holds the lock", async () => {
  await using it = await startNode({ node, flags });
  it.runtime.fail("RemoveImage", { kind: "hang" });
  await using first = it.start("gc", "--all-unused", "--images", "--runtime-request-timeout=30s");
  while (it.removedImages().length === 0) await Bun.sleep(5);
  for (const words of [["plan"], ["images"], ["gc", "--dry-run"]]) {
    const [command = "", ...rest] = words;
    const { exitCode, tookMs } = await it.crigc(command, ...rest);
    expect(exitCode).toBe(0);
    expect(tookMs).toBeLessThan(3_000);
  }
  first.signal("SIGKILL");
});

describe("a snapshot", () => {
  /** Without what differs from one look to the next: when it was made. */
  function timeless(document: Json): Json {
    const { observedAt: _, images, containers, ...rest } = document;
    const kept = (images.kept as Json[]).map(({ firstSeenAt: _1, lastUsedAt: _2, ...it }) => it);
    const candidates = (images.candidates as Json[]).map(
      ({ firstSeenAt: _1, lastUsedAt: _2, unusedForMs: _3, ...it }) => it,
    );
    const usage = (images.usage as Json[]).map(
      ({ availableBytes: _1, inodesFree: _2, ...it }) => it,
    );
    return {
      ...rest,
      images: { ...images, now: null, kept, candidates, usage },
      containers: { ...containers, now: null },
    };
  }

  test("plans as the node does, offline and as a user without any right", async () => {
    await using it = await startNode({ node, flags });
    const words = ["--all-unused"];
    const planned = await it.json(["plan", ...words]);
    const { stdout, exitCode } = await it.crigc("snapshot");
    expect(exitCode).toBe(0);
    await it.runtime.crash();
    const file = join(it.home, "node.json");
    writeFileSync(file, stdout);
    chmodSync(it.home, 0o755);
    const nobody =
      process.getuid?.() === 0
        ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        : [];
    const offline = await runProgram(
      ["plan", `--snapshot=${file}`, ...words, ...flags, "-o", "json"],
      { within: nobody },
    );
    expect(offline).toMatchObject({ exitCode: 0, stderr: "" });
    expect(timeless(JSON.parse(offline.stdout))).toEqual(timeless(planned));
    expect(planned.images.candidates).toHaveLength(1);
  });
});
