// Files that are missing, huge, hostile or broken are refused in bounded time, with their path.

import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { diskReader, loadConfig } from "../../src/config/load.ts";
import type { FlagText } from "../../src/config/settings.ts";
import { ConfigError } from "../../src/model/errors.ts";
import { DROP_INS, faultsOf, FILE, kubelets, load, ours } from "./loading.ts";

const folder = mkdtempSync(join(tmpdir(), "crigc-config-"));
afterAll(() => rmSync(folder, { recursive: true }));

const write = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

/** Messages of loading from the disk with `--config PATH`; empty: accepted. */
function faultsOnDisk(path: string, flag: "config" | "configDir" = "config"): readonly string[] {
  const written = flag === "config" ? "--config" : "--config-dir";
  const flags: readonly FlagText[] = [{ name: flag, written, text: path }];
  const here = { name: "configDir", written: "--config-dir", text: empty } as const;
  try {
    loadConfig({
      flags: flag === "config" ? [...flags, here] : flags,
      env: {},
      reader: diskReader,
    });
    return [];
  } catch (thrown) {
    if (thrown instanceof ConfigError)
      return thrown.issues.map(({ source, message }) => `${source}: ${message}`);
    throw thrown;
  }
}

const empty = join(folder, "empty.d");
mkdirSync(empty);

/** Far more than any of it takes, far less than a bomb would. */
const BOUND_MS = 4000;
function timed<T>(action: () => T): T {
  const start = performance.now();
  const result = action();
  expect(performance.now() - start).toBeLessThan(BOUND_MS);
  return result;
}

describe("files that cannot be read", () => {
  test("a named file or directory that is absent is refused; the default ones may be absent", () => {
    const path = join(folder, "absent");
    expect([...faultsOnDisk(path), ...faultsOnDisk(path, "configDir")]).toEqual([
      `${path}: cannot read the configuration file named by --config: it does not exist`,
      `${path}: cannot read the directory of drop-ins named by --config-dir: it does not exist`,
    ]);
    expect(faultsOf({})).toEqual([]);
  });

  test.each([
    ["a directory", folder],
    ["a device", "/dev/zero"],
  ])("%s is not a regular file", (_, path) => {
    expect(faultsOnDisk(path)).toEqual([
      `${path}: cannot read the configuration file named by --config: it is not a regular file`,
    ]);
  });

  test("a drop-in that cannot be read is refused", () => {
    const directory = join(folder, "dangling.d");
    mkdirSync(directory);
    symlinkSync(join(folder, "nowhere"), join(directory, "10.yaml"));
    expect(faultsOnDisk(directory, "configDir")).toEqual([
      `${directory}/10.yaml: cannot read the configuration file: it does not exist`,
    ]);
  });

  test("a file that is not UTF-8 is refused", () => {
    const path = write("latin1.yaml", Uint8Array.of(0x61, 0x3a, 0x20, 0xe9));
    expect(faultsOnDisk(path)).toEqual([
      `${path}: cannot read the configuration file named by --config: it is not UTF-8 text`,
    ]);
  });
});

describe("hostile files", () => {
  test("50 MB are refused without being read", () => {
    const path = write("large.yaml", Buffer.alloc(50_000_000, "a"));
    expect(timed(() => faultsOnDisk(path))).toEqual([
      `${path}: cannot read the configuration file named by --config: it has 50000000 bytes; the maximum is 1048576`,
    ]);
  });

  test.each([
    ["flow lists", `a: ${"[".repeat(1_000_000)}`],
    ["block lists on one line", "- ".repeat(500_000)],
  ])("%s nested without end are refused", (_, text) => {
    const path = write("deep.yaml", text);
    const faults = timed(() => faultsOnDisk(path));
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/nested too deeply|invalid YAML or JSON/);
  });

  test("of ten thousand unknown fields the first fifty are reported", () => {
    const body = Array.from({ length: 10_000 }, (_, index) => `field${index}: 1`).join("\n");
    expect(timed(() => faultsOf({ files: { [FILE]: ours(body) } }))).toHaveLength(51);
  });
});

describe("invalid files", () => {
  test.each([
    ["", "it is empty"],
    ["# only a comment\n", "it is empty"],
    ["- a\n- b\n", "it is a list"],
    ["hello", 'it is "hello"'],
    ["a: 1\n---\nb: 2\n", "it has several documents (---)"],
    ["a: 1\n---", "it has several documents (---)"],
    ["a: 1\n", "kind is null and apiVersion is null"],
    ["kind: CrigcConfiguration\n", "apiVersion is null"],
    ["kind: CrigcConfiguration\napiVersion: crigc/v2\n", 'apiVersion is "crigc/v2"'],
    ["kind: Pod\napiVersion: v1\n", 'kind is "Pod"'],
    ["kind: KubeletConfiguration\napiVersion: crigc/v1\n", 'kind is "KubeletConfiguration"'],
  ])("%j: %s", (text, message) => {
    const faults = faultsOf({ files: { [FILE]: text } });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(message);
    expect(faults[0]).toContain("expected kind: CrigcConfiguration");
  });

  test("an empty list of keep patterns is accepted", () => {
    expect(load({ files: { [FILE]: ours("keep: []\n") } }).values.keep).toEqual([]);
  });

  test.each([
    ['""', "the value is empty; expected a string or a list of strings, or leave the field out"],
    ["[a, 3]", "item 2: 3 is not a string; put it in quotes"],
    ["[true]", "item 1: true is not a string; put it in quotes"],
    ["[a, [b]]", "item 2: a list is not a string"],
    ["[a, {b: c}]", "item 2: a map is not a string"],
    ['["", b]', "item 1 is empty; expected a string"],
    ["[a, null]", "item 2 is empty; expected a string"],
    ["{a: b}", "a map is not a string or a list of strings"],
    ["3", "3 is not a string or a list of strings"],
  ])("a list of keep patterns %s is refused, and what is wrong in it named", (list, message) => {
    expect(faultsOf({ files: { [FILE]: ours(`keep: ${list}\n`) } })).toEqual([
      `${FILE}:3: keep: ${message} (flag --keep)`,
    ]);
  });

  test("a syntax error is refused with its line", () => {
    expect(
      faultsOf({ files: { [FILE]: ours("maxImages: 1\nkeep: [a, b\nbootGrace: 1m\n") } }),
    ).toEqual([
      `${FILE}:5: invalid YAML or JSON: Flow sequence in block collection must be sufficiently indented and end with a ]`,
    ]);
  });

  const head = { apiVersion: "crigc/v1", kind: "CrigcConfiguration" };
  const json = (fields: string): string => `${JSON.stringify(head).slice(0, -1)},${fields}}`;
  test.each([
    [
      "JSON on one line",
      json('"keep":["a"],"maxImages":2,"keep":[]'),
      "keep is set twice, first on line 1",
    ],
    [
      "JSON within a map",
      json('"evictionHard":{"imagefs.available":"5%","imagefs.available":"50%"}'),
      "evictionHard.imagefs.available is set twice",
    ],
    ["an escaped JSON name", json('"keep":["a"],"k\\u0065ep":[]'), "keep is set twice"],
    ["a YAML key in quotes", ours("keep: [a]\n'keep': []\n"), "keep is set twice, first on line 3"],
    [
      "a group of fields",
      ours("logging: {verbosity: 1}\nlogging: {format: json}\n"),
      "logging is set twice",
    ],
    [
      "a KubeletConfiguration",
      kubelets("imageGCHighThresholdPercent: 90\nimageGCHighThresholdPercent: 80\n"),
      "imageGCHighThresholdPercent is set twice, first on line 3",
    ],
  ])("a value that is written twice is refused in %s", (_, text, message) => {
    for (const path of [FILE, `${DROP_INS}/10-site.yaml`])
      expect(faultsOf({ files: { [path]: text } })[0]).toContain(message);
  });
});

test("the files that were read are listed", () => {
  const path = write("good.yaml", ours("maxImages: 5\n"));
  const flags = [
    { name: "config", written: "--config", text: path },
    { name: "configDir", written: "--config-dir", text: empty },
  ] as const;
  const config = loadConfig({ flags, env: {}, reader: diskReader });
  expect(config.files).toEqual([path]);
});
