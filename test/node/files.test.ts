// Files that are written whole or not at all, and the file that a command line names for an answer.

import { expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";

import { HostError } from "../../src/model/errors.ts";
import { writeAnswerFile, writeWholeFile } from "../../src/node/files.ts";
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

test("a link is kept, and its target is written", () => {
  const target = put(directory, "target.html", "old");
  const link = join(directory, "link.html");
  symlinkSync(target, link);
  writeAnswerFile(link, "new");
  expect(lstatSync(link).isSymbolicLink()).toBeTrue();
  expect(readFileSync(target, "utf8")).toBe("new");
});

test("a device is written into and not replaced", () => {
  // A link to it: a mistake would replace the link, and not the tester's device.
  const link = join(directory, "null");
  symlinkSync("/dev/null", link);
  writeAnswerFile(link, "page");
  expect(lstatSync(link).isSymbolicLink()).toBeTrue();
});

test("a missing directory is not created, and a directory is not overwritten", () => {
  const path = join(directory, "absent/report.html");
  expect(() => writeAnswerFile(path, "page")).toThrow(HostError);
  expect(() => writeAnswerFile(path, "page")).toThrow(
    `directory ${join(directory, "absent")} does not exist`,
  );
  expect(existsSync(join(directory, "absent"))).toBeFalse();
  expect(() => writeAnswerFile(directory, "page")).toThrow("it is a directory");
});
