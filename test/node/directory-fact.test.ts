// What is found out about a directory without writing to it.

import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import { directoryFact } from "../../src/node/directories.ts";
import { put, scratch } from "../support/scratch.ts";

const directory = scratch();

test("an existing directory is reported as writable with its free space, and is unchanged", () => {
  const path = join(directory, "state");
  mkdirSync(path);
  const fact = directoryFact(path);
  expect(fact).toMatchObject({ kind: "present", writable: true });
  if (fact.kind === "present") expect(fact.availableBytes).toBeGreaterThan(0n);
  expect(readdirSync(path)).toEqual([]);
});

test("a missing directory can be created if its nearest parent is writable", () => {
  expect(directoryFact(join(directory, "a/b/c"))).toEqual({ kind: "absent", creatable: true });
});

test("a file in place of a directory is reported", () => {
  expect(directoryFact(put(directory, "file"))).toEqual({
    kind: "failed",
    message: "it is not a directory",
  });
  expect(directoryFact(join(directory, "file/inside"))).toMatchObject({ kind: "failed" });
});

test("a circular link is reported", () => {
  symlinkSync("loop", join(directory, "loop"));
  expect(directoryFact(join(directory, "loop"))).toMatchObject({ kind: "failed" });
});

test("a link that leads nowhere is reported, because no directory can be created over it", () => {
  symlinkSync(join(directory, "unmounted"), join(directory, "dangling"));
  expect(directoryFact(join(directory, "dangling"))).toEqual({
    kind: "failed",
    message: "it is a link to a directory that does not exist",
  });
  expect(directoryFact(join(directory, "dangling/state"))).toEqual({
    kind: "absent",
    creatable: false,
  });
});
