// What the release script does to the folder that it is given, as far as that costs no build.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { put, scratch } from "../support/scratch.ts";

test("a folder that is not a release is not emptied", async () => {
  const precious = put(scratch(), "letters/first.txt", "dear");
  const script = join(import.meta.dir, "../../scripts/release");
  const run = Bun.spawn([script, dirname(precious)], {
    stdout: "ignore",
    stderr: "pipe",
  });
  expect(await new Response(run.stderr).text()).toContain("holds no release");
  expect(await run.exited).toBe(2);
  expect(readFileSync(precious, "utf8")).toBe("dear");
});
