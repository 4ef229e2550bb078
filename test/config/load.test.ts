// Files that are missing, huge, hostile or broken are refused in bounded time, with their path.

import { expect, test } from "bun:test";
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { diskReader, loadConfig } from "../../src/config/load.ts";
import type { FlagText } from "../../src/config/settings.ts";
import { ConfigError } from "../../src/model/errors.ts";
import { scratch } from "../support/scratch.ts";
import { ours } from "./loading.ts";

const folder = scratch();
const empty = join(folder, "empty.d");
const dangling = join(folder, "dangling.d");
for (const directory of [empty, dangling]) mkdirSync(directory);
symlinkSync(join(folder, "nowhere"), join(dangling, "10.yaml"));

/** With the default directory of drop-ins replaced by one of the test. */
function loadFrom(config: string | null, configDir: string): readonly string[] {
  const named: readonly FlagText[] =
    config === null ? [] : [{ name: "config", written: "--config", text: config }];
  const drops: FlagText = { name: "configDir", written: "--config-dir", text: configDir };
  return loadConfig({ flags: [...named, drops], env: {}, reader: diskReader }).files;
}

/** Messages of loading from the disk; empty: accepted. */
function faultsOf(action: () => unknown): readonly string[] {
  try {
    action();
    return [];
  } catch (thrown) {
    if (thrown instanceof ConfigError)
      return thrown.issues.map(({ source, message }) => `${source}: ${message}`);
    throw thrown;
  }
}

/** Of processor time: far more than any of it takes, far less than a bomb would. */
const BOUND_US = 4_000_000;

test.each<[string, () => string | Uint8Array | null, string?]>([
  ["a named file is absent", () => null],
  ["a named directory is absent", () => null, join(folder, "absent.d")],
  ["a drop-in leads nowhere", () => null, dangling],
  ["a file is not UTF-8", () => Uint8Array.of(0x61, 0x3a, 0x20, 0xe9)],
  ["flow lists are nested without end", () => `a: ${"[".repeat(1_000_000)}`],
  ["block lists on one line are nested without end", () => "- ".repeat(500_000)],
  [
    "there are ten thousand unknown fields",
    () => ours(Array.from({ length: 10_000 }, (_, index) => `field${index}: 1`).join("\n")),
  ],
])("if %s, that is refused in bounded time", (what, content, configDir = empty) => {
  const path = join(folder, `${what.replaceAll(" ", "-")}.yaml`);
  const text = content();
  if (text !== null) writeFileSync(path, text);
  const before = process.cpuUsage();
  const faults = faultsOf(() => loadFrom(configDir === empty ? path : null, configDir));
  expect(process.cpuUsage(before).user).toBeLessThan(BOUND_US);
  const said = [...faults.slice(0, 2), ...faults.slice(2).slice(-1), `${faults.length} in all`];
  expect(said.join("\n").replaceAll(folder, "")).toMatchSnapshot();
});

test("a file that is not a regular one, or has 50 MB, is refused without being read", () => {
  const large = join(folder, "large.yaml");
  writeFileSync(large, "");
  truncateSync(large, 50_000_000);
  const said = [folder, "/dev/zero", large].flatMap((path) =>
    faultsOf(() => loadFrom(path, empty)),
  );
  expect(said.join("\n").replaceAll(folder, "")).toMatchSnapshot();
});

test("the files that were read are listed", () => {
  const path = join(folder, "good.yaml");
  writeFileSync(path, ours("keepPerRepository: 5\n"));
  expect(loadFrom(path, empty)).toEqual([path]);
});
