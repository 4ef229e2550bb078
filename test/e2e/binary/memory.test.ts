// What the executable remembers over calls, and what it does where that is broken.
import { expect, test } from "bun:test";
import { readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";

import { minutes } from "../../../src/model/time.ts";
import { observedFor } from "../../support/ledger.ts";
import { numberedImages, startNode } from "./node.ts";

const node = { images: numberedImages(3) };

test("images may go once they were seen for the minimum age, and a ledger that was cut off is moved aside, after which every image is new", async () => {
  await using it = await startNode({ node, flags: ["--space-accounting=reported"] });
  const first = await it.json(["gc", "--all-unused"], 4);
  const codes = first.plan.images.kept.map(
    ({ reason }: { reason: { code: string } }) => reason.code,
  );
  expect(codes).toEqual(["too-young", "too-young", "too-young"]);
  await observedFor(it.stateDir, minutes(3));

  const path = join(it.stateDir, "crigc.db");
  for (const suffix of ["-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
  truncateSync(path, 1_000);
  const isMoved = () => readdirSync(it.stateDir).some((name) => name.includes(".broken-"));
  for (const words of [["plan", "--all-unused"], ["doctor"]]) {
    const { stdout, stderr } = await it.crigc(...words);
    expect(stderr).toContain(path);
    // Neither of them changes anything, so neither may say that the file was moved.
    expect(`${stdout}${stderr}`).toContain("crigc run moves the file aside");
    expect(`${stdout}${stderr}`).not.toContain("is put aside");
  }
  expect(isMoved()).toBe(false);
  expect((await it.crigc("gc", "--all-unused")).stderr).toContain(".broken-");
  expect(it.removedImages()).toEqual([]);
  expect(isMoved()).toBe(true);
  await observedFor(it.stateDir, minutes(3));
  await it.crigc("gc", "--all-unused");
  expect(it.removedImages()).toHaveLength(3);
});
