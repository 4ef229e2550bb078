// From the command line to the exit code.

import { describe, expect, test } from "bun:test";

import { exit, exitOf, exitTable } from "../../src/cli/exit.ts";
import { homepage } from "../../src/install/deploy.ts";
import { ConfigError, HostError, RuntimeError } from "../../src/model/errors.ts";
import { ours } from "../config/loading.ts";
import { scratch } from "../support/scratch.ts";
import { crigc } from "./world.ts";

const FILE = "/etc/crigc/crigc.yaml";
const broken = { [FILE]: "keepPerRepository: [" };

test("help goes to stdout; without a command it goes to stderr and the exit code is 2", async () => {
  const help = expect.stringMatching(/^Usage: crigc COMMAND/);
  expect(await crigc(["--help"])).toEqual({ code: 0, stdout: help, stderr: "" });
  expect(await crigc([])).toEqual({ code: 2, stdout: "", stderr: help });
});

test.each(["config --max-image 5 --keep", "config", "version", "--version", "completion bash"])(
  "with an invalid configuration crigc %s exits 2 if it needs one, and says each error on a line",
  async (line) => {
    const { stdout, ...ran } = await crigc(line.split(" "), { files: broken });
    expect([ran, stdout.split("\n", 2).join("\n").replace(homepage, "HOME")]).toMatchSnapshot();
  },
);

test("install names the flags whose settings it does not write", async () => {
  const words = ["install", `--root=${scratch()}`, "--dry-run"];
  expect(await crigc(words)).toMatchObject({ code: 0, stderr: "" });
  expect(await crigc([...words, "--keep-per-repository=5", "--keep=a"])).toMatchObject({
    code: 0,
    stderr:
      "crigc: install writes no settings: add --keep-per-repository, --keep to /etc/crigc/crigc.yaml\n",
  });
});

test("control characters in foreign text never reach the terminal", async () => {
  const { stderr } = await crigc([
    "config",
    "--keep-per-repository=\u001b[31m5\u0007",
    "--st\u001bate",
  ]);
  expect(stderr).not.toContain("\u001b");
  expect(stderr).not.toContain("\u0007");
  const file = await crigc(["config"], { files: { [FILE]: ours('"a\\e[31mb": 1') } });
  expect(file.stderr).not.toContain("\u001b");
  const bug = await crigc(["status"], {
    open: {
      askAgent: async () => {
        throw new TypeError("an image called \u001b[2Jx");
      },
    },
  });
  expect(bug).toMatchObject({ code: 1, stdout: "" });
  expect(bug.stderr).toContain("dispatch.test.ts");
  expect(bug.stderr).not.toContain("\u001b");
});

describe("exit codes", () => {
  test.each([
    ["an invalid configuration", new ConfigError([]), exit.usage],
    ["a missing runtime", new RuntimeError("absent", "x"), exit.runtime],
    ["a failed list", new RuntimeError("failed", "x"), exit.runtime],
    ["several runtimes that answer", new RuntimeError("ambiguous", "x"), exit.usage],
    ["a failed stat", new HostError("stat", "x"), exit.runtime],
    ["a lock that is held", new HostError("lock", "x"), exit.busy],
    ["a lock that cannot be opened", new HostError("refused", "x"), exit.internal],
    ["an unreadable directory", new HostError("read", "x"), exit.runtime],
    ["a file that cannot be written", new HostError("write", "x"), exit.internal],
    ["a bug", new TypeError("x"), null],
  ])("%s has its own exit code", (_, thrown, code) => {
    expect(exitOf(thrown)).toBe(code);
  });

  test("are those of the contract, each with a description", () => {
    const codes = [0, 1, 2, 3, 4, 5, 6, 7, 8];
    expect([Object.keys(exitTable).map(Number), Object.values(exit)]).toEqual([codes, codes]);
  });
});
