import { expect, test } from "bun:test";
import { join } from "node:path";

import { openState } from "../../src/compose/node.ts";
import type { Config } from "../../src/config/config.ts";
import { loadConfig } from "../../src/config/load.ts";
import { stateFiles } from "../../src/host/state/state-files.ts";
import { emptyLedger } from "../../src/model/ledger.ts";
import { openStoreReader } from "../../src/store/open.ts";
import { aLedger, anImage, aRecord, NOW } from "../support/build/values.ts";
import { scratch } from "../support/scratch.ts";

const KEEP = "/etc/crigc/keep.d";

function configOf(stateDir: string, ...flags: readonly ("--compat" | "--dry-run")[]): Config {
  const texts = [
    { name: "stateDir", written: "--state-dir", text: stateDir },
    ...(flags.includes("--compat")
      ? [{ name: "compat", written: "--compat", text: "kubelet" } as const]
      : []),
    ...(flags.includes("--dry-run")
      ? [{ name: "dryRun", written: "--dry-run", text: "true" } as const]
      : []),
  ] as const;
  return loadConfig({ flags: texts, env: {}, reader: { file: () => null, names: () => null } });
}

const open = (config: Config) =>
  openState(
    config,
    { program: [process.execPath, join(import.meta.dir, "../../src/main.ts")] },
    () => undefined,
  );

function onDisk(directory: string) {
  const reader = openStoreReader({ directory, files: stateFiles, notify: () => undefined });
  const ledger = reader.ledger();
  reader.close();
  return ledger;
}

/** A state directory in which our own agent has left its memory. */
async function remembered(): Promise<string> {
  const directory = scratch();
  const { memory, recorder } = await open(configOf(directory));
  const images = new Map([[anImage("a").id, aRecord()]]);
  memory.replace(aLedger({ images, keepDirectories: [KEEP] }));
  await recorder?.close();
  return directory;
}

for (const flags of [["--compat"], ["--compat", "--dry-run"]] as const)
  test(`with ${flags.join(" and ")} nothing is remembered except the directories of keep rules`, async () => {
    const { memory, recorder } = await open(configOf(await remembered(), ...flags));
    expect(memory.current()).toEqual({ ...emptyLedger, keepDirectories: [KEEP] });
    await recorder?.close();
  });

test("with compat kubelet only the directories of keep rules are written to disk, and earlier records are kept", async () => {
  const directory = await remembered();
  const before = onDisk(directory);
  const { memory, recorder } = await open(configOf(directory, "--compat"));
  const images = new Map([
    [anImage("a").id, aRecord({ firstSeenAt: NOW })],
    [anImage("new").id, aRecord()],
  ]);
  memory.replace(aLedger({ images, keepDirectories: [KEEP, "/srv/keep"] }));
  expect(memory.current().keepDirectories).toEqual([KEEP, "/srv/keep"]);
  await recorder?.close();
  expect(onDisk(directory)).toEqual({ ...before, keepDirectories: [KEEP, "/srv/keep"] });
});

test.each([
  ["is gone", new Map()],
  ["has other names", new Map([[anImage("a").id, aRecord({ names: "another" })]])],
])("with compat kubelet an image that %s is dropped from the disk, too", async (_, images) => {
  const directory = await remembered();
  const { memory, recorder } = await open(configOf(directory, "--compat"));
  memory.replace(aLedger({ images }));
  await recorder?.close();
  expect(onDisk(directory).images.size).toBe(0);
});
