import { expect, onTestFinished, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { openersOf } from "../../src/compose/openers.ts";
import { systemdOf } from "../../src/compose/systemd.ts";
import { loadConfig } from "../../src/config/load.ts";
import { plainScreen } from "../../src/report/terminal.ts";
import { NOW } from "../support/build/values.ts";
import { startFakeRuntime } from "../support/fake-runtime/server.ts";
import { put, scratch } from "../support/scratch.ts";

test("events of gc reach the event hook too, and gc does not end before they are given", async () => {
  const directory = scratch();
  const seen = join(directory, "seen.json");
  const hook = put(directory, "hook", `#!/bin/sh\nsleep 0.2\ncat >"${seen}"\n`, 0o755);
  const runtime = await startFakeRuntime();
  onTestFinished(() => runtime.stop());
  const stderr: string[] = [];
  const openers = openersOf({
    build: { version: "1.2.3", commit: "" },
    self: { pid: 1, userId: 0 },
    systemd: systemdOf({}, 1),
    stderr: (text) => void stderr.push(text),
    errorScreen: plainScreen,
    onHangup: () => () => undefined,
  });
  const config = loadConfig({
    flags: [
      { name: "containerRuntimeEndpoint", written: "-", text: runtime.endpoint },
      { name: "stateDir", written: "-", text: join(directory, "state") },
      { name: "runDir", written: "-", text: join(directory, "run") },
      { name: "eventHook", written: "-", text: hook },
    ],
    env: {},
    reader: { file: () => null, names: () => null },
  });

  const collector = await openers.collector(config, new AbortController().signal);
  collector.engine.journal.event({
    reason: "GhostImage",
    message: "an image is still listed",
    at: NOW,
    passId: null,
  });
  await collector.close();

  expect(JSON.parse(readFileSync(seen, "utf8"))).toMatchObject({ reason: "GhostImage" });
  expect(stderr.join("")).toContain('event="GhostImage"');
});
