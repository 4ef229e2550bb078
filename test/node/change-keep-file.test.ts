// A keep file is changed by one process at a time, and a lock that is never dropped does not hang the next one.

import { expect, test } from "bun:test";
import { closeSync, lstatSync, openSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import { HostError } from "../../src/model/errors.ts";
import { changeKeepFile } from "../../src/node/keep-files.ts";
import { tryFlock } from "../../src/node/libc.ts";
import { put, scratch } from "../support/scratch.ts";

test("a change gets the current text, and null leaves the file unchanged", () => {
  const path = join(scratch(), "keep.d/crigc.list");
  expect(changeKeepFile(path, (before) => ({ text: "nginx\n", answer: before }))).toBeNull();
  expect(changeKeepFile(path, (before) => ({ text: null, answer: before }))).toBe("nginx\n");
  expect(readFileSync(path, "utf8")).toBe("nginx\n");
});

test("a change of a linked list changes the target, and the link stays", () => {
  const top = scratch();
  const target = put(top, "site/nodes.list", "nginx\n");
  const path = join(scratch(), "site.list");
  symlinkSync(target, path);
  changeKeepFile(path, (before) => ({ text: `${before}redis\n`, answer: 0 }));
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  expect(readFileSync(target, "utf8")).toBe("nginx\nredis\n");
});

test("a list whose link leads nowhere is not replaced", () => {
  const path = join(scratch(), "site.list");
  symlinkSync("/does/not/exist.list", path);
  const change = () => changeKeepFile(path, () => ({ text: "redis\n", answer: 0 }));
  expect(change).toThrow(`cannot write ${path}: the target of the link`);
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
});

test("a file that another process is changing is waited for, then refused and left unchanged", () => {
  const top = scratch();
  const path = put(top, "crigc.list", "nginx\n");
  const held = openSync(put(top, ".crigc.list.lock"), "r+");
  expect(tryFlock(held)).toEqual({ kind: "locked" });
  const change = () => changeKeepFile(path, () => ({ text: "redis\n", answer: 0 }), 40);
  expect(change).toThrow(HostError);
  expect(change).toThrow("another crigc is changing it");
  expect(readFileSync(path, "utf8")).toBe("nginx\n");
  closeSync(held);
  expect(change()).toBe(0);
  expect(readFileSync(path, "utf8")).toBe("redis\n");
});

test("a change that fails drops the lock", () => {
  const path = put(scratch(), "crigc.list", "nginx\n");
  const failing = () =>
    changeKeepFile(path, () => {
      throw new Error("the list is damaged");
    });
  expect(failing).toThrow("the list is damaged");
  expect(changeKeepFile(path, () => ({ text: null, answer: "free" }), 0)).toBe("free");
});
