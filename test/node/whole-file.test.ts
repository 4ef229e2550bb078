// A file that is written whole or not at all.

import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

import { HostError } from "../../src/model/errors.ts";
import { writeWholeFile } from "../../src/node/files.ts";
import { put, scratch } from "../support/scratch.ts";

const directory = scratch();

test("a new file is created with its parent directories, and nothing else is left", () => {
  const path = join(directory, "etc/crigc/keep.d/baseline.list");
  writeWholeFile(path, "nginx\n");
  expect(readFileSync(path, "utf8")).toBe("nginx\n");
  expect(statSync(path).mode & 0o777).toBe(0o644);
  expect(readdirSync(join(path, ".."))).toEqual(["baseline.list"]);
});

test("an existing file is replaced and keeps its mode", () => {
  const path = put(directory, "kept/a.list", "old and longer\n", 0o600);
  writeWholeFile(path, "new\n");
  expect(readFileSync(path, "utf8")).toBe("new\n");
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("a failed write leaves no temporary file and reports the reason", () => {
  mkdirSync(join(directory, "taken/a.list/inside"), { recursive: true });
  const write = (): void => writeWholeFile(join(directory, "taken/a.list"), "x\n");
  expect(write).toThrow(HostError);
  expect(write).toThrow(`cannot write ${join(directory, "taken/a.list")}: `);
  expect(readdirSync(join(directory, "taken"))).toEqual(["a.list"]);
});
