// Files that are missing, huge, hostile or broken are refused in bounded time, with their path.

import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { diskReader, loadConfig } from "../../src/config/load.ts";
import type { FlagText } from "../../src/config/settings.ts";
import { ConfigError } from "../../src/model/errors.ts";
import { faultsOf, FILE, ours } from "./loading.ts";

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

test("the files that were read are listed", () => {
  const path = write("good.yaml", ours("maxImages: 5\n"));
  const flags = [
    { name: "config", written: "--config", text: path },
    { name: "configDir", written: "--config-dir", text: empty },
  ] as const;
  const config = loadConfig({ flags, env: {}, reader: diskReader });
  expect(config.files).toEqual([path]);
});
