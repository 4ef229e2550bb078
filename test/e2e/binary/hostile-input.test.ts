// Flags and files that are wrong, huge or made to hurt: refused quickly, with the text, what was expected and where it stood.
import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
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
    ["--image-gc-high-threshold=85%", ['"85%"', "a whole number from 0 to 100"]],
    ["--image-gc-high-threshold=", ["--image-gc-high-threshold"]],
    ["--image-gc-high-threshold=1e1", ['"1e1"']],
    ["--minimum-image-ttl-duration=5", ['"5"', "a duration"]],
    ["--minimum-image-ttl-duration=-5s", ['"-5s"', "a duration of 0s or more"]],
    ["--minimum-container-ttl-duration=-1s", ['"-1s"', "a duration of 0s or more"]],
    ["--image-store-budget=-1", ['"-1"', "a size of 1Mi or more"]],
    // What is meant is 20 GiB, and what it says would cost every unused image.
    ["--image-store-budget=20", ['"20"', "a size of 1Mi or more, such as 500Mi"]],
    ["--image-store-budget=500m", ['"500m"', "a size of 1Mi or more, such as 500Mi"]],
    ["--image-gc-inode-high-threshold=0", ['"0"', "a whole number from 1 to 100, or off"]],
    ["--image-store-budget=lots", ['"lots"', "500Mi"]],
    ["--eviction-hard=imagefs.available<", ["imagefs.available"]],
    ["--eviction-hard=imagefs.available<150%", ["150%"]],
    ["--eviction-hard=nosuchfs.available<5%", ["nosuchfs.available"]],
    ["--eviction-soft=imagefs.available<5%", ["grace"]],
    ["--compat=docker", ['"docker"', "one of none, kubelet"]],
    ["--pod-source=maybe", ['"maybe"', "kubelet-dir"]],
    ["--container-runtime-endpoint=tcp://10.0.0.1:1", ["tcp://10.0.0.1:1", "unix"]],
    ["--container-runtime-endpoint=relative.sock", ["relative.sock", "absolute"]],
    [`--container-runtime-endpoint=/${"x".repeat(150)}`, ["at most 107 bytes"]],
    ["--metrics-bind-address=everywhere", ['"everywhere"', "127.0.0.1:9419"]],
    ["--state-dir=relative", ['"relative"', "an absolute path"]],
    ["--state-dir=/var/../etc", ['"/var/../etc"', "without .."]],
    ["--logging-format=xml", ['"xml"', "one of text, json"]],
    ["-v=9", ['"9"', "from 0 to 5"]],
    ["--dry-run=perhaps", ["perhaps", "true or false"]],
  ] as const)("%s is refused with its text and what was expected", async (flag, parts) => {
    await using it = await startNode();
    const story = await refused(it, "plan", flag);
    const [name = ""] = flag.split("=");
    for (const part of [name, ...parts]) expect(story).toContain(part);
  });

  test.each([
    ["--image-gc-hi-threshold=80", "--image-gc-high-threshold"],
    ["--all-unsued", "--all-unused"],
    ["--dryrun", "--dry-run"],
    ["--endpoint=/x", "--"],
  ])("that is unknown (%s) is refused with a suggestion", async (flag, suggestion) => {
    await using it = await startNode();
    const story = await refused(it, "gc", flag);
    expect(story).toContain(flag.split("=")[0] ?? "");
    expect(story).toContain(suggestion);
  });

  test("from the environment is refused with the name of the variable", async () => {
    await using it = await startNode();
    const env = { CRIGC_IMAGE_GC_HIGH_THRESHOLD: "half" };
    const { exitCode, stderr } = await it.within({ env }, "plan");
    expect(exitCode).toBe(2);
    expect(stderr).toContain("CRIGC_IMAGE_GC_HIGH_THRESHOLD");
    expect(stderr).toContain('"half"');
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
    ["a field that stands twice", `${head}maxImages: 3\nmaxImages: 4\n`, [":4", "maxImages"]],
    ["another kind", "apiVersion: v1\nkind: Pod\n", ["Pod", "CrigcConfiguration"]],
    ["no kind", "maxImages: 3\n", ["kind"]],
    ["nothing in it", "", ["crigc.yaml"]],
    ["no YAML", `${head}keep: [unclosed\n`, ["crigc.yaml"]],
    ["a list at the top", "- a\n- b\n", ["crigc.yaml"]],
    ["bytes that are no text", `${head}keep: \u0000\u0001\n`, ["crigc.yaml"]],
    ["a tab where there must be none", `${head}keep:\n\t- a\n`, ["crigc.yaml"]],
    ["two documents", `${head}---\n${head}`, ["crigc.yaml"]],
    ["a path out of the tree", `${head}stateDir: /var/lib/../../etc\n`, [":3", "without .."]],
    ["nothing where a value belongs", `${head}evictionHard: [1, 2]\n`, [":3", "evictionHard"]],
  ] as const)("with %s is refused with its place", async (_, text, parts) => {
    await using it = await startNode();
    writeFileSync(it.configFile, text);
    const story = await refused(it, "config");
    for (const part of [it.configFile, ...parts]) expect(story).toContain(part);
    expect(await refused(it, "gc")).toContain(it.configFile);
  });

  test("of 50 MB is refused without being read", async () => {
    await using it = await startNode();
    writeFileSync(it.configFile, head);
    truncateSync(it.configFile, 50_000_000);
    expect(await refused(it, "plan")).toContain("the maximum is 1048576");
    writeFileSync(it.configFile, `${head}keep:\n${"- r.example/a\n".repeat(3_600_000)}`);
    expect(await refused(it, "plan")).toContain(it.configFile);
  });

  test("that nests without end is refused", async () => {
    await using it = await startNode();
    for (const text of [
      `${head}keep: ${"[".repeat(100_000)}\n`,
      `${head}keep: ${"[".repeat(100_000)}${"]".repeat(100_000)}\n`,
      `${head}evictionHard: ${"{a: ".repeat(50_000)}1${"}".repeat(50_000)}\n`,
      `${head}keep:\n${Array.from({ length: 1_000 }, (_, depth) => `${" ".repeat(depth)}- `).join("\n")}\n`,
    ]) {
      writeFileSync(it.configFile, text);
      expect(await refused(it, "plan")).toContain(it.configFile);
    }
  });

  test("whose aliases expand without end is refused", async () => {
    await using it = await startNode();
    const levels = Array.from({ length: 24 }, (_, level) => {
      const below = level === 0 ? '"x"' : `*a${level - 1}`;
      return `  - &a${level} [${Array.from({ length: 10 }, () => below).join(", ")}]`;
    });
    writeFileSync(it.configFile, `${head}keep:\n${levels.join("\n")}\n`);
    expect(await refused(it, "plan")).toContain(it.configFile);
    writeFileSync(it.configFile, `${head}evictionHard: &a {nodefs.available: *a}\n`);
    expect(await refused(it, "plan")).toContain(it.configFile);
  });

  test("that is not a regular file is refused: a directory, a device, a pipe, a circular link", async () => {
    await using it = await startNode();
    const directory = join(it.home, "directory.yaml");
    mkdirSync(directory);
    const circle = join(it.home, "circle.yaml");
    symlinkSync(circle, circle);
    const pipe = join(it.home, "pipe.yaml");
    Bun.spawnSync(["mkfifo", pipe]);
    for (const path of [directory, circle, pipe, "/dev/zero", "/dev/null"])
      expect(await refused(it, "plan", `--config=${path}`)).toContain(path);
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
