// Who reads the answer may leave early or read slowly, and the answer may be large: neither breaks anything.
import { describe, expect, test } from "bun:test";
import { statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { commands } from "../../../src/cli/dispatch.ts";
import { tryCommand } from "../../support/containerd/command.ts";
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { program } from "../../support/program.ts";
import { diskObstacle, MiB, smallDisk } from "./disk.ts";
import { removable, startNode, type TestNode } from "./node.ts";

const many = Array.from({ length: 5_000 }, (_, index) => ({
  id: imageIdOf(index),
  repoTags: [`registry.example/team/${index % 97}/application-${index}:v${index}`],
  repoDigests: [
    `registry.example/team/${index % 97}/application-${index}@${imageIdOf(`d${index}`)}`,
  ],
  sizeBytes: 1_000_000 + index,
}));
const flags = removable;

/** A line of shell in which `crigc` is the executable and "$@" its flags. */
async function shell(node: TestNode, line: string) {
  const startedAt = performance.now();
  const script = `set -o pipefail; crigc() { ${program} "$@"; }; ${line}`;
  const env = { PATH: "/usr/bin:/bin" };
  const words = ["bash", "-c", script, "bash", ...node.flags];
  const result = await tryCommand(words, { env, timeout: 30_000 });
  return { ...result, tookMs: performance.now() - startedAt };
}

test("5000 images are printed completely through a pipe", async () => {
  await using it = await startNode({ node: { images: many }, flags });
  for (const words of ["plan --all-unused -o json", "snapshot"]) {
    const { stdout, exitCode } = await shell(it, `crigc ${words} "$@" | cat`);
    expect(exitCode).toBe(0);
    expect(new Set(stdout.match(/application-\d+(?=:v)/g)).size).toBe(5_000);
    expect(JSON.parse(stdout).apiVersion).toBe("crigc/v1");
  }
});

test("a result that a closed standard output cannot take is exit 1", async () => {
  await using it = await startNode();
  for (const words of ["version", 'images "$@"'])
    expect(await shell(it, `crigc ${words} >&-`)).toMatchObject({
      exitCode: 1,
      stderr: "crigc: cannot write to standard output: it is closed\n",
    });
  expect((await shell(it, "crigc version >/dev/null")).exitCode).toBe(0);
});

describe("a reader that leaves early", () => {
  test("ends a command silently", async () => {
    await using it = await startNode({ node: { images: many }, flags });
    for (const words of ['images "$@"', 'snapshot "$@"', "help flags"]) {
      const { stdout, stderr, tookMs } = await shell(it, `crigc ${words} | head -n 1`);
      expect(stdout.trim().split("\n")).toHaveLength(1);
      expect(stderr).toBe("");
      expect(tookMs).toBeLessThan(10_000);
    }
  });

  test.each(["2>&1 | head -n 1", ">/dev/full 2>/dev/full"])(
    "does not stop a running collection: %s",
    async (output) => {
      await using it = await startNode({ node: { images: many.slice(0, 20) }, flags });
      const { tookMs } = await shell(it, `crigc gc --all-unused "$@" ${output}`);
      expect(it.runtime.node.images).toEqual([]);
      expect(tookMs).toBeLessThan(20_000);
    },
  );
});

/** What each command needs beside its name to write something; `null`: it writes nothing to standard output. */
const OPERANDS: Readonly<Record<string, string | null>> = {
  run: null,
  gc: "--dry-run",
  rm: `--dry-run ${imageIdOf(0)}`,
  "keep test": "registry.example/team/**",
  explain: imageIdOf(0),
  status: null,
  report: "--html -",
  hold: "1m",
  install: "--dry-run --root /",
  uninstall: "--dry-run --root /",
  print: "daemonset",
  completion: "bash",
};
const WRITING = commands
  .map(({ name }) => ({ name, operands: name in OPERANDS ? OPERANDS[name] : "" }))
  .filter(({ operands }) => operands !== null)
  .map(({ name, operands }) => `${name} ${operands}`.trim());

describe("a result that cannot be written", () => {
  test("is an error of every command, with its reason, within a second", async () => {
    await using it = await startNode({ node: { images: many.slice(0, 20) }, flags });
    const ends: Record<string, string> = {};
    for (const words of [...WRITING, "--help", "--version", "plan -o json", "help flags"]) {
      const { stderr, exitCode, tookMs } = await shell(it, `crigc ${words} "$@" >/dev/full`);
      const said = stderr.includes("cannot write to standard output: the filesystem is full");
      if (!said || exitCode !== 1 || tookMs > 5_000)
        ends[words] = `exit ${exitCode} after ${Math.round(tookMs)} ms: ${stderr}`;
    }
    expect(ends).toEqual({});
  }, 60_000);

  test.skipIf(diskObstacle !== null)("is an error if the disk takes only part of it", async () => {
    await using disk = await smallDisk(MiB);
    await using it = await startNode({ node: { images: many }, flags });
    const { bavail, bsize } = statfsSync(disk.directory);
    writeFileSync(join(disk.directory, "full"), Buffer.alloc((bavail - 16) * bsize));
    const { stderr, exitCode } = await shell(it, `crigc snapshot "$@" >${disk.directory}/answer`);
    expect(stderr).toContain("the filesystem is full");
    expect(exitCode).toBe(1);
  });
});

test("a pipe that does not block gets everything, however slowly it is read", async () => {
  await using it = await startNode({ node: { images: many }, flags });
  const unblocked =
    "import os, sys; os.set_blocking(1, False); os.execv(sys.argv[1], sys.argv[1:])";
  const line = `python3 -c '${unblocked}' ${program} images -o json "$@" | { sleep 1; cat; }`;
  const { stdout, exitCode } = await shell(it, line);
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout).images).toHaveLength(5_000);
});
