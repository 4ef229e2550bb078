// Every script that one calls by hand says what it does when asked, before it does anything.
import { expect, test } from "bun:test";
import { join } from "node:path";

const scripts = join(import.meta.dir, "../../scripts");

test.each([["setup"], ["build"], ["demo"], ["test"], ["dev"], ["release"]])(
  "scripts/%s --help prints its usage and does nothing",
  async (name) => {
    const run = Bun.spawn([join(scripts, name), "--help"], { stdout: "pipe", stderr: "pipe" });
    const [out, err] = await Promise.all([
      new Response(run.stdout).text(),
      new Response(run.stderr).text(),
    ]);
    expect([await run.exited, err]).toEqual([0, ""]);
    expect(out.split("\n").length).toBeGreaterThan(2);
    expect(out).not.toContain("pipefail");
  },
);
