// Who reads the answer may leave early or read slowly, and the answer may be large: neither breaks anything.
import { describe, expect, test } from "bun:test";

import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { program } from "../../support/program.ts";
import { startNode, type TestNode } from "./node.ts";

const many = Array.from({ length: 5_000 }, (_, index) => ({
  id: imageIdOf(index),
  repoTags: [`registry.example/team/${index % 97}/application-${index}:v${index}`],
  repoDigests: [
    `registry.example/team/${index % 97}/application-${index}@${imageIdOf(`d${index}`)}`,
  ],
  sizeBytes: 1_000_000 + index,
}));
const flags = ["--minimum-image-ttl-duration=0s", "--space-accounting=reported"];

/** A line of shell in which `crigc` is the executable and "$@" its flags. */
async function shell(node: TestNode, line: string) {
  const startedAt = performance.now();
  const child = Bun.spawn(
    [
      "bash",
      "-o",
      "pipefail",
      "-c",
      `crigc() { ${program} "$@"; }; ${line}`,
      "bash",
      ...node.flags,
    ],
    {
      env: { PATH: "/usr/bin:/bin" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: 30_000,
    },
  );
  const [stdout, stderr, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  return { stdout, stderr, exitCode, tookMs: performance.now() - startedAt };
}

describe("5000 images", () => {
  test.each([
    ["images", 5_000],
    ["images -o json", 5_000],
    ["plan --all-unused", 5_000],
    ["plan --all-unused -o json", 5_000],
    ["snapshot", 5_000],
    ["gc --dry-run --all-unused -o json", 5_000],
  ])("come whole through a pipe (crigc %s)", async (words, count) => {
    await using it = await startNode({ node: { images: many }, flags });
    const { stdout, exitCode } = await shell(it, `crigc ${words} "$@" | cat`);
    expect(exitCode).toBe(0);
    const names = new Set(stdout.match(/application-\d+(?=:v)/g));
    expect(names.size).toBe(count);
    expect(stdout.endsWith("\n")).toBe(true);
    if (stdout.startsWith("{")) expect(JSON.parse(stdout).apiVersion).toBe("crigc/v1");
  });

  test("come whole to a reader that is slow", async () => {
    await using it = await startNode({ node: { images: many }, flags });
    const { stdout, exitCode } = await shell(it, 'crigc images -o json "$@" | { sleep 1; cat; }');
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout).images).toHaveLength(5_000);
  });

  test("are explained whole in a log that goes through a pipe", async () => {
    await using it = await startNode({ node: { images: many }, flags });
    const line = 'crigc gc --dry-run --all-unused -v=5 "$@" 2>&1 >/dev/null | { sleep 1; cat; }';
    const { stdout } = await shell(it, line);
    expect(new Set(stdout.match(/application-\d+(?=:v)/g)).size).toBe(5_000);
  });
});

describe("a reader that leaves early", () => {
  test.each([
    ["images"],
    ["images -o json"],
    ["plan --all-unused"],
    ["snapshot"],
    ["help flags"],
    ["config"],
  ])("ends crigc %s quietly", async (words) => {
    await using it = await startNode({ node: { images: many }, flags });
    const line = `crigc ${words} ${words.startsWith("help") ? "" : '"$@"'}`;
    const { stdout, stderr, tookMs } = await shell(it, `${line} | head -n 1`);
    expect(stdout.trim().split("\n")).toHaveLength(1);
    expect(stderr).toBe("");
    expect(tookMs).toBeLessThan(10_000);
  });

  test("does not stop a collection in its middle", async () => {
    await using it = await startNode({ node: { images: many.slice(0, 20) }, flags });
    const { tookMs } = await shell(it, 'crigc gc --all-unused "$@" 2>&1 | head -n 1');
    expect(it.runtime.node.images).toEqual([]);
    expect(tookMs).toBeLessThan(20_000);
  });

  test("is no matter where nobody reads at all", async () => {
    await using it = await startNode({ node: { images: many.slice(0, 20) }, flags });
    const { exitCode } = await shell(it, 'crigc gc --all-unused "$@" >&- 2>&-');
    expect(it.runtime.node.images).toEqual([]);
    expect(exitCode).toBe(0);
  });

  test("is no matter where the disk of the answer is full", async () => {
    await using it = await startNode({ node: { images: many.slice(0, 20) }, flags });
    await shell(it, 'crigc gc --all-unused "$@" >/dev/full 2>/dev/full');
    expect(it.runtime.node.images).toEqual([]);
  });
});
