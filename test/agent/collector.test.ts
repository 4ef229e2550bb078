import { expect, onTestFinished, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { openersOf } from "../../src/agent/openers.ts";
import type { OpenCollector, Openers } from "../../src/agent/openers.ts";
import { systemdOf } from "../../src/agent/systemd.ts";
import type { Config } from "../../src/config/config.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { FlagText } from "../../src/config/settings.ts";
import type { Kubelet } from "../../src/node/kubelet/settings.ts";
import { plainScreen } from "../report/build.ts";
import { NOW } from "../support/build/values.ts";
import { startFakeRuntime } from "../support/fake-runtime/server.ts";
import { put, scratch } from "../support/scratch.ts";

interface Opening {
  readonly openers: Openers;
  readonly config: Config;
  readonly directory: string;
  readonly stderr: () => string;
}

async function opening(
  flags: readonly FlagText[] = [],
  kubelet: Kubelet | null = null,
): Promise<Opening> {
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
    systemd: systemdOf({}, 1),
    kubelet: { found: () => kubelet, look: () => kubelet },
    logPrefix: () => "",
    stderr: (text) => void (stderr += text),
    errorScreen: plainScreen,
    onHangup: () => () => undefined,
  });
  const config = loadConfig({
    flags: [
      { name: "containerRuntimeEndpoint", written: "-", text: runtime.endpoint },
      { name: "stateDir", written: "-", text: join(directory, "state") },
      { name: "runDir", written: "-", text: join(directory, "run") },
      ...flags,
    ],
    env: {},
    reader: { file: () => null, names: () => null },
  });
  return { openers, config, directory, stderr: () => stderr };
}

async function opened(
  flags: readonly FlagText[] = [],
): Promise<Omit<Opening, "openers" | "config"> & { readonly collector: OpenCollector }> {
  const { openers, config, ...rest } = await opening(flags);
  return { ...rest, collector: await openers.collector(config) };
}

test("a command that looks goes by the kubelet that its configuration has read", async () => {
  const root = scratch();
  put(root, "pods/uid-living/marker");
  const { openers, config } = await opening(
    [{ name: "podSource", written: "-", text: "kubelet-dir" }],
    {
      processes: [],
      isHere: true,
      settings: [],
      rootDirectory: root,
      staticPodPath: null,
      problems: [],
    },
  );
  const node = await openers.node(config);
  expect(await node.engine.observe.host.pods(AbortSignal.timeout(5_000))).toMatchObject({
    pods: [{ uid: "uid-living" }],
  });
  node[Symbol.dispose]();
});

test("events of gc reach the event hook before gc exits", async () => {
  const directory = scratch();
  const seen = join(directory, "seen.json");
  const hook = put(directory, "hook", `#!/bin/sh\nsleep 0.2\ncat >"${seen}"\n`, 0o755);
  const { collector, stderr } = await opened([{ name: "eventHook", written: "-", text: hook }]);
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

test("a state directory that disappears during gc is logged", async () => {
  const { collector, directory, stderr } = await opened();
  rmSync(join(directory, "state"), { recursive: true });
  writeFileSync(join(directory, "state"), "no directory");
  const { memory } = collector.engine;
  memory.replace({ ...memory.current(), keepDirectories: ["/srv/keep"] });
  await collector[Symbol.asyncDispose]();
  expect(stderr()).toContain("unwritten records stay in memory");
});
