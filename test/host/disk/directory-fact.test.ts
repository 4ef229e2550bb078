// What is found out about a directory without writing to it.

import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import { directoryFact } from "../../../src/host/disk/directory-fact.ts";
import { put, scratch } from "../../support/scratch.ts";

const directory = scratch();

test("one that is there can be written, has its room, and is left as it was", () => {
  const path = join(directory, "state");
  mkdirSync(path);
  const fact = directoryFact(path);
  expect(fact).toMatchObject({ kind: "present", writable: true });
  if (fact.kind === "present") expect(fact.availableBytes).toBeGreaterThan(0n);
  expect(readdirSync(path)).toEqual([]);
});

test("one that is not there can be made if the nearest one above can be written", () => {
  expect(directoryFact(join(directory, "a/b/c"))).toEqual({ kind: "absent", creatable: true });
});

test("a file in its place is no directory", () => {
  expect(directoryFact(put(directory, "file"))).toEqual({
    kind: "failed",
    message: "it is not a directory",
  });
  expect(directoryFact(join(directory, "file/inside"))).toMatchObject({ kind: "failed" });
});

test("a link that leads around in circles is reported", () => {
  symlinkSync("loop", join(directory, "loop"));
  expect(directoryFact(join(directory, "loop"))).toMatchObject({ kind: "failed" });
});
