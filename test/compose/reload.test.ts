import { afterEach, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { type LiveConfig, liveConfig } from "../../src/compose/reload.ts";
import type { Config } from "../../src/config/config.ts";
import { diskReader, loadConfig } from "../../src/config/load.ts";
import { scratch } from "../support/scratch.ts";

const OURS = "apiVersion: crigc/v1\nkind: CrigcConfiguration\n";

let live: LiveConfig | null = null;
afterEach(() => live?.stop());

interface Watched {
  readonly directory: string;
  readonly current: () => Config;
  readonly refusals: string[];
  readonly write: (name: string, body: string) => void;
}

/** A configuration of one file and one drop-in, looked at every 10 ms. */
function watched(): Watched {
  const directory = scratch();
  const dropIns = join(directory, "conf.d");
  mkdirSync(dropIns);
  const write = (name: string, body: string): void =>
    writeFileSync(join(directory, name), `${OURS}${body}`);
  write("crigc.yaml", "imageGCHighThresholdPercent: 90\n");
  write("conf.d/10-site.yaml", "imageGCLowThresholdPercent: 70\n");
  const flags = [
    { name: "config", written: "--config", text: join(directory, "crigc.yaml") },
    { name: "configDir", written: "--config-dir", text: dropIns },
  ] as const;
  const read = (): Config => loadConfig({ flags, env: {}, reader: diskReader });
  const refusals: string[] = [];
  const started = liveConfig({
    first: read(),
    read,
    reloaded: () => undefined,
    rejected: (message) => void refusals.push(message),
    lookMs: 10,
  });
  live = started;
  return { directory, current: started.current, refusals, write };
}

async function until(holds: () => boolean): Promise<void> {
  for (let waitedMs = 0; !holds() && waitedMs < 5_000; waitedMs += 10) await Bun.sleep(10);
  expect(holds()).toBe(true);
}

test("a drop-in that is written in place is noticed, although its directory does not change", async () => {
  const { current, write } = watched();
  write("conf.d/10-site.yaml", "imageGCLowThresholdPercent: 60\n");
  await until(() => current().limits.images.lowPercent === 60);
});

test("a drop-in that was refused is read again once it is mended in place", async () => {
  const { current, refusals, write } = watched();
  write("conf.d/20-new.yaml", "imageGCHighThresholdPercent: lots\n");
  await until(() => refusals.length === 1);
  expect(current().limits.images.highPercent).toBe(90);
  write("conf.d/20-new.yaml", "imageGCHighThresholdPercent: 95\n");
  await until(() => current().limits.images.highPercent === 95);
});
