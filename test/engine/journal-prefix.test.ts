import { expect, test } from "bun:test";
import { closeSync, fstatSync, openSync } from "node:fs";
import { join } from "node:path";

import { journalPrefix } from "../../src/engine/log.ts";
import { scratch } from "../support/scratch.ts";

test("log lines carry their priority if the journal reads them, and nothing elsewhere", () => {
  const file = openSync(join(scratch(), "stream"), "w");
  try {
    const { dev, ino } = fstatSync(file, { bigint: true });
    const read = journalPrefix({ JOURNAL_STREAM: `${dev}:${ino}` }, file);
    expect([read("error"), read("warning"), read("info")]).toEqual(["<3>", "<4>", "<6>"]);
    // The variable is inherited by a shell that sends the output to a file.
    const redirected = journalPrefix({ JOURNAL_STREAM: `${dev}:${ino + 1n}` }, file);
    expect(redirected("error")).toBe("");
    expect(journalPrefix({}, file)("error")).toBe("");
  } finally {
    closeSync(file);
  }
});
