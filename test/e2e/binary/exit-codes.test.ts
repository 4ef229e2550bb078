// Every exit code of the executable, each by its cause; 3 is in fail-closed, 7 in operator.
import { describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { imageIdOf, type NodeDescription } from "../../support/fake-runtime/describe.ts";
import { put } from "../../support/scratch.ts";
import { removable, startNode, usedAndUnused } from "./node.ts";

const flags = removable;
const node: NodeDescription = { ...usedAndUnused, containers: [usedAndUnused.containers[0]] };

test("exit code 1 is the exit code when a hold cannot be written, or the history cannot be read", async () => {
  await using it = await startNode({ node });
  const words = ["hold", "1h", "--state-dir=/proc/no", "--run-dir=/proc/no"];
  const held = await it.crigc(...words);
  expect(held).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("/proc/no") });
  put(it.stateDir, "ledger.json", "garbage of more than sixteen bytes");
  const history = await it.crigc("history", "-o", "json");
  expect(history).toMatchObject({ exitCode: 1, stdout: "" });
  expect(history.stderr).toContain("crigc run move it aside");
});

describe("exit code 2", () => {
  test("is the exit code if keep rules are invalid, or their directory is missing", async () => {
    await using it = await startNode({ node, flags });
    expect(await it.crigc("gc", "--keep=r.example/a:b c")).toMatchObject({ exitCode: 2 });
    writeFileSync(join(it.keepDir, "site.list"), "r.example/fine\nr.example/not fine\n");
    for (const words of [["gc"], ["plan"], ["keep", "list"]]) {
      const { exitCode, stdout, stderr } = await it.crigc(...words);
      expect(exitCode).toBe(2);
      expect(stdout + stderr).toContain("site.list:2");
    }
    rmSync(it.keepDir, { recursive: true });
    const { exitCode, stdout } = await it.crigc("gc", "--all-unused");
    expect(exitCode).toBe(2);
    expect(stdout.replaceAll(/\s+/g, " ")).toContain("that --keep-dir names does not exist");
    expect(it.changes()).toEqual([]);
  });

  test("is the exit code of an invalid command line, before the runtime is called", async () => {
    await using it = await startNode({ node });
    for (const words of [
      ["gc", "--image-gc-high-threshold=101"],
      ["config", "--image-gc-high-threshold=101"],
      ["version", "--image-gc-high-threshold=101"],
      ["install", "--root=/nowhere", "--image-gc-high-threshold=101"],
      ["gc", "--no-such-flag"],
      ["frobnicate", "--dry-run"],
    ])
      expect(await it.crigc(...words)).toMatchObject({ exitCode: 2, stdout: "" });
    expect(it.runtime.calls).toEqual([]);
  });
});

describe("in the grace period after a boot", () => {
  const [, dead] = usedAndUnused.containers;
  const newer = { ...dead, id: "new", attempt: 1, createdAt: "2026-01-01T00:00:00Z" } as const;
  const withDead: NodeDescription = {
    ...usedAndUnused,
    containers: [...usedAndUnused.containers, newer],
  };
  /** A new ledger on a machine that booted within the grace. */
  const grace = "--boot-grace=87600h";

  test.each([
    ["gc", withDead, 4],
    ["gc", node, 0],
    ["gc --all-unused", node, 4],
    ["rm r.example/unused:1 r.example/used:1", node, 5],
  ])(
    "crigc %s removes nothing, says why and exits by what was asked for",
    async (line, on, code) => {
      await using it = await startNode({ node: on, flags });
      const { exitCode, stdout } = await it.crigc(...line.split(" "), grace);
      expect({ exitCode, changes: it.changes() }).toEqual({ exitCode: code, changes: [] });
      expect(stdout).toContain("grace period (--boot-grace) for another");
    },
  );
});

test("exit code 5 is the exit code when a removal failed and the rest was done", async () => {
  const images = ["a", "b", "c"].map((name) => ({ id: imageIdOf(name), sizeBytes: 1_000 }));
  await using it = await startNode({ node: { images }, flags });
  const [, second] = (await it.json(["plan", "--all-unused"])).images.candidates;
  it.runtime.fail(
    "RemoveImage",
    { kind: "error", code: "UNKNOWN", message: "layer is locked" },
    { when: (request) => JSON.stringify(request).includes(second.id) },
  );
  const { exitCode, stdout } = await it.crigc("gc", "--all-unused");
  expect(exitCode).toBe(5);
  expect(stdout).toContain("layer is locked");
  expect(it.runtime.node.images.map(({ id }) => id)).toEqual([second.id]);
});

test("exit code 6 is the exit code of gc that waited for another gc longer than --runtime-request-timeout", async () => {
  await using it = await startNode({ node, flags });
  it.runtime.fail("RemoveImage", { kind: "hang" });
  await using first = it.start("gc", "--all-unused", "--runtime-request-timeout=20s");
  while (it.removedImages().length === 0) await Bun.sleep(5);
  const own = "--runtime-request-timeout=1s";
  const { exitCode, stdout, stderr, tookMs } = await it.crigc("gc", own);
  expect(exitCode).toBe(6);
  // Not for as long as the other pass takes.
  expect(tookMs).toBeWithin(900, 15_000);
  expect(stdout + stderr).toMatch(/crigc gc, process \d+, holds the node/);
  expect(it.removedImages()).toHaveLength(1);
  first.signal("SIGKILL");
});

test.each([
  ["for an unknown REF", ["explain", "r.example/no-such-thing"], "r.example/no-such-thing"],
  ["if no agent answers", ["status"], "run"],
])("exit code 8 is the exit code %s", async (_, words, said) => {
  await using it = await startNode({ node });
  const { exitCode, stdout, stderr } = await it.crigc(...words);
  expect({ exitCode, stdout }).toEqual({ exitCode: 8, stdout: "" });
  expect(stderr).toContain(said);
});
