// From the command line to the exit code.

import { describe, expect, test } from "bun:test";

import { exit, exitOf, exitTable } from "../../src/cli/exit.ts";
import { homepage } from "../../src/install/layout.ts";
import { ConfigError, HostError, RuntimeError, StoreError } from "../../src/model/errors.ts";
import { ours } from "../config/loading.ts";
import { crigc } from "./world.ts";

const FILE = "/etc/crigc/crigc.yaml";
const broken = { [FILE]: "maxImages: [" };

describe("output", () => {
  test("help goes to stdout and succeeds", async () => {
    const { code, stdout, stderr } = await crigc(["--help"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toStartWith("Usage: crigc COMMAND");
  });

  test("without a command, help goes to stderr and the exit code is 2", async () => {
    const { code, stdout, stderr } = await crigc([]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toStartWith("Usage: crigc COMMAND");
  });

  test("invalid usage is reported with one line per error, and nothing on stdout", async () => {
    expect(await crigc(["config", "--max-image", "5", "--keep"])).toEqual({
      code: 2,
      stdout: "",
      stderr:
        "crigc: unknown flag --max-image; did you mean --max-images?\n" +
        "crigc: --keep: missing value; expected GLOB\n",
    });
  });

  test("an invalid configuration exits 2, except for commands that need none", async () => {
    expect((await crigc(["config"], { files: broken })).code).toBe(2);
    expect((await crigc(["version"], { files: broken })).code).toBe(0);
    expect((await crigc(["completion", "bash"], { files: broken })).code).toBe(0);
  });

  test("control characters in foreign text never reach the terminal", async () => {
    const { stderr } = await crigc(["config", "--max-images=\u001b[31m5\u0007", "--st\u001bate"]);
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
});

describe("version", () => {
  test("is printed as text", async () => {
    for (const argv of [["version"], ["--version"]])
      expect(await crigc(argv)).toEqual({
        code: 0,
        stdout: `crigc 1.2.3 (abcdef0)\n${homepage}\n`,
        stderr: "",
      });
  });
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
    ["a ledger that cannot be written", new StoreError("full", "x"), exit.internal],
    ["a bug", new TypeError("x"), null],
  ])("%s has its own exit code", (_, thrown, code) => {
    expect(exitOf(thrown)).toBe(code);
  });

  test("are those of the contract, each with a description", () => {
    expect(Object.keys(exitTable).map(Number)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(Object.values(exit)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });
});
