// Facts about a directory, found without writing to it; and the walk that explains a full disk.

import { expect, test } from "bun:test";
import { linkSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import { directoryFact, walkDirectories } from "../../src/node/directories.ts";
import { put, scratch } from "../support/scratch.ts";

const KIB = 1024;
const signal = new AbortController().signal;
const options = { withinMs: 5000, apart: [], most: 10 };

const write = (root: string, path: string, kib: number): string =>
  put(root, path, "x".repeat(kib * KIB));

test("the largest directories come first, and a directory explained by its subdirectories is replaced by them", async () => {
  const root = scratch();
  write(root, "var/lib/models/big", 2000);
  write(root, "var/lib/models/more", 1000);
  write(root, "home/file", 500);
  write(root, "home/user/small", 8);
  const walk = await walkDirectories(root, options, signal);
  expect(walk.complete).toBe(true);
  expect(walk.directories.map(({ path }) => path.slice(root.length))).toEqual([
    "/var/lib/models",
    "/home",
  ]);
  const [first] = walk.directories;
  expect(first?.bytes).toBeGreaterThanOrEqual(3000n * 1024n);
  expect(walk.bytes).toBeGreaterThanOrEqual(3508n * 1024n);
});

test("files directly in the searched directory count as its own", async () => {
  const root = scratch();
  write(root, "fill", 3000);
  write(root, "home/file", 500);
  const walk = await walkDirectories(root, options, signal);
  expect(walk.directories.map(({ path }) => path)).toEqual([root, join(root, "home")]);
  expect(walk.directories[0]?.bytes).toBeGreaterThanOrEqual(3000n * 1024n);
  expect(walk.directories[0]?.bytes).toBeLessThan(3500n * 1024n);
});

test("links count nothing, a file with two names counts once, and directories counted elsewhere are excluded", async () => {
  const root = scratch();
  write(root, "data/file", 1000);
  write(root, "images/layer", 4000);
  linkSync(join(root, "data/file"), join(root, "data/again"));
  symlinkSync("/usr", join(root, "data/usr"));
  const apart = [join(root, "images")];
  const walk = await walkDirectories(root, { ...options, apart }, signal);
  expect(walk.bytes).toBeGreaterThanOrEqual(1000n * 1024n);
  expect(walk.bytes).toBeLessThan(1100n * 1024n);
});

test.each([
  ["without time", 0, "data"],
  ["of a missing directory", 5000, "gone"],
])("the search %s ends at once and is reported as incomplete", async (_, withinMs, name) => {
  const root = scratch();
  write(root, "data/file", 1);
  const walk = await walkDirectories(join(root, name), { ...options, withinMs }, signal);
  expect(walk).toEqual({ complete: false, directories: [], bytes: 0n });
});

test("a directory is described without being changed: there, creatable, a file, or a link to nothing", () => {
  const directory = scratch();
  const state = join(directory, "state");
  mkdirSync(state);
  put(directory, "file");
  symlinkSync(join(directory, "unmounted"), join(directory, "dangling"));
  const fact = directoryFact(state);
  expect(fact).toMatchObject({ kind: "present", writable: true });
  if (fact.kind === "present") expect(fact.availableBytes).toBeGreaterThan(0n);
  expect(readdirSync(state)).toEqual([]);
  const others = ["a/b/c", "file", "file/inside", "dangling", "dangling/state"];
  const found = others.map((path) => [path, directoryFact(join(directory, path))]);
  expect(Object.fromEntries(found)).toMatchSnapshot();
});

test("a large file is reported by its name, and its directory by the rest", async () => {
  const root = scratch();
  const dump = write(root, "backup/dump", 65 * KIB);
  const image = write(root, "fill", 65 * KIB);
  write(root, "backup/notes", 8);
  const walk = await walkDirectories(root, options, signal);
  expect(walk.directories.map(({ path }) => path).toSorted()).toEqual([dump, image]);
  expect(walk.bytes).toBeGreaterThanOrEqual(130n * 1024n * 1024n);
});
