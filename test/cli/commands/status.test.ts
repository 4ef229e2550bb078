// status on the command line: what is asked of the agent, and what is made of its answer.

import { describe, expect, test } from "bun:test";

import type { Openers } from "../../../src/engine/openers.ts";
import { ours } from "../../config/loading.ts";
import { plainScreen } from "../../report/build.ts";
import { crigc } from "../world.ts";

describe("status", () => {
  const asking = (answer: (path: string) => string) => {
    const paths: string[] = [];
    const askAgent: Openers["askAgent"] = async (_config, path) => {
      paths.push(path);
      return answer(path);
    };
    const run = (...words: readonly string[]) =>
      crigc(["status", ...words], { open: { askAgent }, screen: { ...plainScreen, width: 72 } });
    return { run, paths };
  };

  test("prints the agent's table for this terminal, and its document unchanged", async () => {
    const { run, paths } = asking((path) => `${path} {"sizeBytes": 9223372036854775807}\n`);
    expect(await run()).toMatchObject({ code: 0, stderr: "" });
    const { stdout } = await run("-o", "json");
    expect(stdout).toBe('/status {"sizeBytes": 9223372036854775807}\n');
    expect(paths).toEqual(["/status.txt?width=72&colour=0", "/status"]);
  });

  test("queries the agent in the run directory of the environment even if file and environment are invalid", async () => {
    const askAgent: Openers["askAgent"] = async ({ values }) => `${values.runDir}\n`;
    const ran = await crigc(["status", "--config", "/broken.yaml"], {
      files: { "/broken.yaml": ours("keepPerRepository: few\n") },
      env: { CRIGC_RUN_DIR: "/run/other", CRIGC_KEEP_PER_REPOSITORY: "few" },
      open: { askAgent },
    });
    expect(ran).toMatchObject({ code: 0, stdout: "/run/other\n" });
  });

  test("with an invalid flag says only that", async () => {
    const { code, stderr } = await asking(() => "well\n").run("--keep-per-repository=few");
    expect(code).toBe(2);
    expect(stderr).toStartWith("crigc: --keep-per-repository:");
  });
});
