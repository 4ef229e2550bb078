import { afterEach, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { type LiveConfig, liveConfig } from "../../src/compose/reload.ts";
import type { Config } from "../../src/config/config.ts";
import { diskReader } from "../../src/config/load.ts";
import { looking } from "../../src/config/source/look.ts";
import { scratch } from "../support/scratch.ts";

const OURS = "apiVersion: crigc/v1\nkind: CrigcConfiguration\n";
const MAIN = "imageGCHighThresholdPercent: 90\nkeep: [registry.example/app, registry.example/db]\n";

let live: LiveConfig | null = null;
afterEach(() => live?.stop());

interface Watched {
  readonly path: (name: string) => string;
  readonly current: () => Config;
  readonly refused: () => string | null;
  readonly reload: () => void;
  readonly refusals: string[];
  readonly write: (name: string, body: string) => void;
  /** Waits until the files were looked at three times more. */
  readonly looks: () => Promise<void>;
}

/** A configuration of one file and one drop-in, looked at every 5 ms. */
function watched(
  prepare: (directory: string) => void = () => undefined,
  beforeLook: () => void = () => undefined,
  settleMs = 5,
): Watched {
  const directory = scratch();
  mkdirSync(join(directory, "conf.d"));
  const path = (name: string): string => join(directory, name);
  const write = (name: string, body: string): void => writeFileSync(path(name), `${OURS}${body}`);
  write("crigc.yaml", MAIN);
  write("conf.d/10-site.yaml", "imageGCLowThresholdPercent: 70\n");
  prepare(directory);
  const flags = [
    { name: "config", written: "--config", text: path("crigc.yaml") },
    { name: "configDir", written: "--config-dir", text: path("conf.d") },
  ] as const;
  const seen = { looks: 0 };
  const look = () => {
    if (seen.looks > 0) beforeLook();
    seen.looks += 1;
    return looking({ flags, env: {}, reader: diskReader })();
  };
  const first = look();
  const refusals: string[] = [];
  live = liveConfig({
    first: { config: first.load(), look: first },
    look,
    connected: () => true,
    reloaded: () => undefined,
    rejected: (message) => void refusals.push(message),
    lookMs: 5,
    settleMs,
  });
  const looks = async (): Promise<void> => {
    const wanted = seen.looks + 3;
    while (seen.looks < wanted) await Bun.sleep(1);
  };
  return { path, write, looks, refusals, ...live };
}

const high = ({ current }: Watched): number => current().limits.images.highPercent;

test("a drop-in written in place is detected although its directory does not change", async () => {
  const node = watched();
  node.write("conf.d/10-site.yaml", "imageGCLowThresholdPercent: 60\n");
  await node.looks();
  expect(node.current().limits.images.lowPercent).toBe(60);
});

test("a rejected drop-in is read again once it is fixed in place", async () => {
  const node = watched();
  node.write("conf.d/20-new.yaml", "imageGCHighThresholdPercent: lots\n");
  await node.looks();
  expect(node.refusals).toHaveLength(1);
  expect(high(node)).toBe(90);
  node.write("conf.d/20-new.yaml", "imageGCHighThresholdPercent: 95\n");
  await node.looks();
  expect(high(node)).toBe(95);
  expect(node.refused()).toBeNull();
});

test("a configuration written between the first reading and the first check is detected", async () => {
  const node = watched();
  node.write("crigc.yaml", MAIN.replace("90", "91"));
  await node.looks();
  expect(high(node)).toBe(91);
});

test("a file that keeps changing is loaded only after two checks agree", async () => {
  let percent = 90;
  const node = watched(undefined, () => {
    if (percent < 96) percent += 1;
    node?.write("crigc.yaml", MAIN.replace("90", String(percent)));
  });
  const seen = new Set<number>();
  while (high(node) !== 96) {
    seen.add(high(node));
    await Bun.sleep(1);
  }
  expect([...seen]).toEqual([90]);
});

test("a change is checked again after a pause of its own", async () => {
  const looks: number[] = [];
  const node = watched(undefined, () => void looks.push(performance.now()), 100);
  node.write("crigc.yaml", MAIN.replace("90", "95"));
  while (high(node) !== 95) await Bun.sleep(1);
  const [before = 0, last = 0] = looks.slice(-2);
  expect(last - before).toBeGreaterThan(90);
});

test.each([
  ["is removed", (path: string) => rmSync(path)],
  ["is renamed", (path: string) => renameSync(path, `${path}.old`)],
])("settings stay in force when their file %s, until SIGHUP", async (_, vanish) => {
  const node = watched();
  const before = node.current();
  // The drop-in, because a file that --config names has to exist.
  node.write("conf.d/10-site.yaml", "maxImages: null\nimageMinimumGCAge: 24h\n");
  await node.looks();
  expect(node.current()).not.toBe(before);
  vanish(node.path("conf.d/10-site.yaml"));
  await node.looks();
  await node.looks();
  expect(node.current().values.imageMinimumGCAge.source).toBe("drop-in");
  expect(node.refusals).toEqual([expect.stringContaining("10-site.yaml no longer exists")]);
  expect(node.refusals[0]).toContain("SIGHUP");
  expect(node.refused()).toBe(node.refusals[0] ?? "");
  node.reload();
  expect(node.current().values.imageMinimumGCAge.source).toBe("default");
  expect(node.refused()).toBeNull();
});

test("a file that vanished and came back unchanged leaves nothing to report", async () => {
  const node = watched();
  const path = node.path("conf.d/10-site.yaml");
  renameSync(path, `${path}.old`);
  await node.looks();
  expect(node.refused()).not.toBeNull();
  renameSync(`${path}.old`, path);
  await node.looks();
  expect(node.refused()).toBeNull();
  expect(node.refusals).toHaveLength(1);
});

test.each([
  ["an earlier line", "imageGCHighThresholdPercent: 90\n"],
  ["the middle of a list", "imageGCHighThresholdPercent: 90\nkeep:\n- registry.example/app\n"],
  ["the middle of a line", "imageGCHighThresholdPercent: 9"],
  ["nothing but its head", ""],
])("a file that was truncated to %s keeps what it kept", async (_, body) => {
  const node = watched();
  node.write(
    "crigc.yaml",
    "imageGCHighThresholdPercent: 90\nkeep:\n- registry.example/app\n- registry.example/db\n",
  );
  await node.looks();
  node.write("crigc.yaml", body);
  await node.looks();
  expect(high(node)).toBe(90);
  expect(node.current().keepPatterns).toEqual(["registry.example/app", "registry.example/db"]);
  expect(node.refusals).toHaveLength(1);
});

test.each([
  [
    "a keep rule fewer",
    "keep: [registry.example/app]\n",
    "keep (--keep) loses registry.example/db",
  ],
  ["another keep directory", "keepDir: /srv/keep\n", "keepDir (--keep-dir) changes from"],
  [
    "loaded images no longer kept",
    "keepLoaded: false\n",
    "keepLoaded (--keep-loaded) changes from true",
  ],
  [
    "fewer tags kept",
    "keepPerRepository: 1\n",
    "keepPerRepository (--keep-per-repository) changes from 3",
  ],
  ["an infra image fewer", "podInfraContainerImage: []\n", "loses pause:1"],
])("%s waits for SIGHUP", async (_, body, message) => {
  const rest = "keepLoaded: true\nkeepPerRepository: 3\npodInfraContainerImage: [pause:1]\n";
  const node = watched((directory) =>
    writeFileSync(join(directory, "crigc.yaml"), `${OURS}${MAIN}${rest}`),
  );
  const name = body.split(":")[0] ?? "";
  const others = `${MAIN}${rest}`.split("\n").filter((line) => !line.startsWith(`${name}:`));
  node.write("crigc.yaml", `${others.join("\n")}${body}`);
  await node.looks();
  expect(node.refusals).toEqual([expect.stringContaining(message)]);
  expect(node.current().keepPatterns).toHaveLength(2);
});

test.each([
  ["a lower threshold in so many words", MAIN.replace("90", "75"), 75],
  [
    "one that is written in another file",
    MAIN.replace(/.*Percent.*\n/, "imageMaximumGCAge: 0s\n"),
    88,
  ],
])("%s is loaded without SIGHUP", async (_, body, percent) => {
  const node = watched();
  if (percent === 88) node.write("conf.d/20-high.yaml", "imageGCHighThresholdPercent: 88\n");
  node.write("crigc.yaml", body);
  await node.looks();
  expect(node.refusals).toEqual([]);
  expect(high(node)).toBe(percent);
});

test("an age that no file sets any more is dropped at once if less is removed without it", async () => {
  const node = watched();
  node.write("conf.d/20-age.yaml", "imageMaximumGCAge: 720h\nmaxImages: 10\n");
  await node.looks();
  node.write("conf.d/20-age.yaml", "logging: {verbosity: 3}\n");
  await node.looks();
  expect(node.refusals).toEqual([]);
  expect(node.current().limits.images.maximumImages).toBeNull();
});

test("a mounted ConfigMap replaced by its link is loaded", async () => {
  const node = watched((directory) => {
    const file = join(directory, "crigc.yaml");
    for (const [name, percent] of [
      ["..one", "90"],
      ["..two", "93"],
    ] as const) {
      mkdirSync(join(directory, name));
      writeFileSync(join(directory, name, "crigc.yaml"), `${OURS}${MAIN.replace("90", percent)}`);
    }
    rmSync(file);
    symlinkSync("..one", join(directory, "..data"));
    symlinkSync("..data/crigc.yaml", file);
  });
  symlinkSync("..two", node.path("..data_tmp"));
  renameSync(node.path("..data_tmp"), node.path("..data"));
  await node.looks();
  expect(high(node)).toBe(93);
});
