import { expect, onTestFinished, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { loadConfig } from "../../src/config/load.ts";
import type { FlagText } from "../../src/config/settings.ts";
import { openersOf } from "../../src/engine/openers.ts";
import { NOW } from "../support/build/values.ts";
import { startFakeRuntime } from "../support/fake-runtime/server.ts";
import { put, scratch } from "../support/scratch.ts";

async function opening(name: FlagText["name"], text: string) {
  const directory = scratch();
  const runtime = await startFakeRuntime();
  onTestFinished(() => runtime.stop());
  let stderr = "";
  const openers = openersOf({
    build: { version: "1.2.3", commit: "" },
    self: {
      pid: 1,
      userId: 0,
      program: [process.execPath, join(import.meta.dir, "../../src/main.ts")],
    },
    logPrefix: () => "",
    stderr: (line) => void (stderr += line),
  });
  const flags = [
    { name: "containerRuntimeEndpoint", text: runtime.endpoint },
    { name: "stateDir", text: join(directory, "state") },
    { name: "runDir", text: join(directory, "run") },
    { name, text },
  ] as const;
  const config = loadConfig({
    flags: flags.map((flag) => ({ ...flag, written: "-" })),
    env: {},
    reader: { file: () => null, names: () => null },
  });
  return { openers, config, stderr: () => stderr };
}

test("events of gc reach the event hook before gc exits", async () => {
  const directory = scratch();
  const seen = join(directory, "seen.json");
  const hook = put(directory, "hook", `#!/bin/sh\nsleep 0.2\ncat >"${seen}"\n`, 0o755);
  const { openers, config, stderr } = await opening("eventHook", hook);
  const collector = await openers.collector(config, new AbortController().signal);
  collector.engine.journal.event({
    reason: "GhostImage",
    message: "an image is still listed",
    at: NOW,
    passId: null,
  });
  await collector[Symbol.asyncDispose]();
  expect(JSON.parse(readFileSync(seen, "utf8"))).toMatchObject({
    apiVersion: "crigc/v1",
    kind: "Event",
    reason: "GhostImage",
  });
  expect(stderr()).toContain('event="GhostImage"');
});
