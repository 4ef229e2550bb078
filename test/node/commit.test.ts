// A commit runs in a process of its own, so that a disk that hangs costs its time limit and nothing else.
import { expect, test } from "bun:test";

import { commitBy, commitHere } from "../../src/node/disk.ts";

const tookMs = async (work: Promise<void>): Promise<number> => {
  const startMs = performance.now();
  await work;
  return performance.now() - startMs;
};

test("a process that hangs is waited for up to the limit, and not started again for the same path meanwhile", async () => {
  const commit = commitBy(["sh", "-c", 'kill -STOP $$ "$@"'], 100);
  const first = commit("/");
  expect(await tookMs(commit("/"))).toBeLessThan(50);
  expect(await tookMs(first)).toBeGreaterThanOrEqual(90);
});

test("a process that ends at once is waited for no longer", async () => {
  expect(await tookMs(commitBy(["true"], 10_000)("/"))).toBeLessThan(5_000);
});

test("a program that does not exist does not fail the pass", async () => {
  expect(await tookMs(commitBy(["/does/not/exist"])("/"))).toBeLessThan(1_000);
});

test("the process itself commits the filesystem of its path", () => {
  expect(commitHere("/dev/shm")).toBeTrue();
});
