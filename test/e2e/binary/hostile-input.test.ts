// Flags and files that are wrong, huge or made to hurt: refused quickly, with the text, what was expected and where it stood.
import { expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";

import { put } from "../../support/scratch.ts";
import { startNode } from "./node.ts";

const head = "apiVersion: crigc/v1\nkind: CrigcConfiguration\n";

test("a wrong flag, file or snapshot is refused before the runtime is called", async () => {
  await using it = await startNode();
  const refused = async (parts: readonly string[], ...words: readonly string[]) => {
    const { exitCode, stdout, stderr } = await it.crigc(...words);
    expect({ words, exitCode, stdout }).toEqual({ words, exitCode: 2, stdout: "" });
    for (const part of parts) expect(stderr).toContain(part);
    expect(stderr.length).toBeLessThan(4_000);
  };
  // What is meant is 20 GiB, and what it says would cost every unused image.
  const sizes = ["--image-store-budget", '"20"', "a size of 1Mi or more, such as 500Mi"];
  await refused(sizes, "plan", "--image-store-budget=20");
  await refused(["--dry-run", "perhaps", "true or false"], "gc", "--dry-run=perhaps");
  // It would fill the memory.
  await refused(["larger than 134217728 bytes"], "plan", "--snapshot=/dev/zero");
  writeFileSync(it.configFile, `${head}imageGCHighTresholdPercent: 80\n`);
  const place = [`${it.configFile}:3`, "imageGCHighThresholdPercent"];
  for (const command of ["config", "gc"]) await refused(place, command);
  expect(it.runtime.calls).toEqual([]);
});

test("an unreadable state file is an error of history, which plan and doctor leave alone and gc moves aside", async () => {
  await using it = await startNode();
  put(it.stateDir, "crigc.db", "garbage of more than sixteen bytes");
  for (const words of [["plan", "--all-unused"], ["doctor"]]) {
    const { stdout, stderr } = await it.crigc(...words);
    expect(stdout + stderr).toContain("crigc run moves the file aside");
    expect(readdirSync(it.stateDir)).toEqual(["crigc.db"]);
  }
  for (const words of [[], ["-o", "json"]]) {
    const { exitCode, stdout, stderr } = await it.crigc("history", ...words);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain("crigc.db");
  }
  expect((await it.crigc("gc")).stderr).toContain(".broken-");
});
