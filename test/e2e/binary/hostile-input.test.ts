// Flags and files that are wrong, huge or made to hurt: refused quickly, with the text, what was expected and where it stood.
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { put } from "../../support/scratch.ts";
import { startNode, type TestNode } from "./node.ts";

const head = "apiVersion: crigc/v1\nkind: CrigcConfiguration\n";

async function refused(node: TestNode, ...words: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr, tookMs } = await node.crigc(words[0] ?? "", ...words.slice(1));
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
  expect(tookMs).toBeLessThan(2_000);
  expect(stderr.length).toBeLessThan(4_000);
  expect(node.runtime.calls).toEqual([]);
  return stderr;
}

test("an endless snapshot is refused before it fills the memory", async () => {
  await using it = await startNode();
  expect(await refused(it, "plan", "--snapshot=/dev/zero")).toContain(
    "larger than 134217728 bytes",
  );
  expect(await refused(it, "plan", "--snapshot=/")).toContain("it is a directory");
});

test("an unreadable history is an error, not an empty history", async () => {
  await using it = await startNode();
  put(it.stateDir, "crigc.db", "garbage of more than sixteen bytes");
  for (const words of [[], ["-o", "json"]]) {
    const { exitCode, stdout, stderr } = await it.crigc("history", ...words);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain("crigc.db");
  }
});

describe("a flag", () => {
  test.each([
    ["--image-gc-high-threshold=banana", ['"banana"', "a whole number from 0 to 100"]],
    // What is meant is 20 GiB, and what it says would cost every unused image.
    ["--image-store-budget=20", ['"20"', "a size of 1Mi or more, such as 500Mi"]],
    ["--eviction-soft=imagefs.available<5%", ["grace"]],
    ["--container-runtime-endpoint=tcp://10.0.0.1:1", ["tcp://10.0.0.1:1", "unix"]],
    ["--state-dir=/var/../etc", ['"/var/../etc"', "without .."]],
    ["-v=9", ['"9"', "from 0 to 5"]],
    ["--dry-run=perhaps", ["perhaps", "true or false"]],
  ] as const)("%s is refused with its text and what was expected", async (flag, parts) => {
    await using it = await startNode();
    const story = await refused(it, "plan", flag);
    const [name = ""] = flag.split("=");
    for (const part of [name, ...parts]) expect(story).toContain(part);
  });
});

describe("a configuration file", () => {
  test.each([
    ["a value of the wrong type", `${head}imageGCHighThresholdPercent: lots\n`, [":3", "lots"]],
    [
      "an unknown field",
      `${head}imageGCHighTresholdPercent: 80\n`,
      [":3", "imageGCHighTresholdPercent", "imageGCHighThresholdPercent"],
    ],
    ["no YAML", `${head}keep: [unclosed\n`, ["crigc.yaml"]],
    ["bytes that are no text", `${head}keep: \u0000\u0001\n`, ["crigc.yaml"]],
  ] as const)("with %s is refused with its place", async (_, text, parts) => {
    await using it = await startNode();
    writeFileSync(it.configFile, text);
    const story = await refused(it, "config");
    for (const part of [it.configFile, ...parts]) expect(story).toContain(part);
    expect(await refused(it, "gc")).toContain(it.configFile);
  });
});

test("a keep list of 50 MB is refused or read quickly, and no image is removed", async () => {
  await using it = await startNode({ node: { images: [{ id: "sha256:1", sizeBytes: 1 }] } });
  writeFileSync(join(it.keepDir, "huge.list"), "r.example/a\n".repeat(4_200_000));
  const { exitCode, stdout, tookMs } = await it.crigc(
    "gc",
    "--all-unused",
    "--minimum-image-ttl-duration=0s",
  );
  expect(exitCode).toBe(2);
  expect(stdout).toContain("huge.list");
  expect(tookMs).toBeLessThan(5_000);
  expect(it.removedImages()).toEqual([]);
});
