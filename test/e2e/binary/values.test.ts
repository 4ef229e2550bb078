// What is written on a command line and in files, at the executable: durations in days and weeks, quantities with units, and the log of a service.

import { describe, expect, test } from "bun:test";

import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { startNode } from "./node.ts";

const node = {
  images: [{ id: imageIdOf("one"), repoTags: ["r.example/one:1"], sizeBytes: 1_000 }],
};

describe("durations", () => {
  test("accept days and weeks in flags and files, and are printed with them", async () => {
    await using it = await startNode({ node });
    it.configure({ imageMaximumGCAge: "2w" });
    const file = await it.json(["config"]);
    expect(file.values.imageMaximumGCAge).toMatchObject({ source: "file" });
    expect((await it.crigc("config")).stdout).toMatch(/imageMaximumGCAge +14d /);
    const flag = await it.crigc("config", "--image-maximum-gc-age=30d");
    expect(flag.stdout).toMatch(/imageMaximumGCAge +30d /);
  });

  test("accept days in --since and in a hold", async () => {
    await using it = await startNode({ node });
    expect(await it.crigc("history", "--since", "30d")).toMatchObject({ exitCode: 0, stderr: "" });
    const hold = await it.crigc("hold", "2w");
    expect(hold.stdout).toContain("on hold for 14d, until");
  });

  test("of an unknown unit are refused with examples", async () => {
    await using it = await startNode({ node });
    const { exitCode, stderr } = await it.crigc("plan", "--image-maximum-gc-age=5 fortnights");
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/--image-maximum-gc-age: .*5 fortnights.*7d/);
  });
});

test("a threshold in bytes without a unit is refused in flags and files, with both possible meanings", async () => {
  await using it = await startNode({ node });
  const flag = await it.crigc("plan", "--eviction-hard=imagefs.available<15");
  expect(flag.exitCode).toBe(2);
  expect(flag.stderr).toContain("15% or 15Gi?");
  it.configure({ evictionHard: { "imagefs.available": "15" } });
  const file = await it.crigc("plan");
  expect(file.exitCode).toBe(2);
  expect(file.stderr).toContain("15% or 15Gi?");
});

test("log lines begin with their priority if and only if the journal reads them", async () => {
  await using it = await startNode({ node });
  const journal = 'JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec "$0" "$@"';
  const read = await it.within({ within: ["sh", "-c", journal] }, "gc", "-v", "2");
  expect(read.stderr).toMatch(/^<6>I\d{4} /m);
  const env = { JOURNAL_STREAM: "1:2" };
  const redirected = await it.within({ env }, "gc", "-v", "2");
  expect(redirected.stderr).toMatch(/^I\d{4} /m);
  expect(redirected.stderr).not.toContain("<6>");
});
