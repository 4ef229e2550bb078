/** Implements what commands can open, with the real runtime, machine and state directory. */

import { createReadStream } from "node:fs";
import { realpath } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";

import type {
  KeepFile,
  KubeletFact,
  Machine,
  OpenCollector,
  Openers,
  SocketFact,
} from "../cli/openers.ts";
import type { Config } from "../config/config.ts";
import { parseEndpoint, wellKnownSockets } from "../cri/endpoint.ts";
import { messageOf, RuntimeError, StoreError, usageError } from "../model/errors.ts";
import { readClocks, wallClock } from "../node/clock.ts";
import { directoryFact, filesIn, rootDirectoryId, walkDirectories } from "../node/directories.ts";
import { deviceOf } from "../node/disk.ts";
import { executableFault } from "../node/executable.ts";
import { reasonOf, writeAnswerFile } from "../node/files.ts";
import { readHold, releaseHold, writeHold } from "../node/hold.ts";
import { addressFault } from "../node/http.ts";
import { changeKeepFile, readKeepFile } from "../node/keep-files.ts";
import { kubeletSigns } from "../node/kubelet/pods.ts";
import { readKubelet } from "../node/kubelet/settings.ts";
import { stateFiles } from "../node/state-files.ts";
import { terminalProgress } from "../report/progress.ts";
import { clean } from "../report/terminal.ts";
import { openStoreReader, type StoreReader } from "../store/open.ts";
import {
  readSnapshotText,
  type RecordedNode,
  SNAPSHOT_BYTES_MAX,
  snapshotText,
} from "../store/snapshot-file.ts";
import { StateFile } from "../store/state-file.ts";
import { askAgent, CONTROL_SOCKET } from "./control.ts";
import { eventCaller } from "./events.ts";
import { keepRulesOf } from "./host.ts";
import { logOf } from "./log.ts";
import { connect, openEngine, openNode } from "./node.ts";
import type { World } from "./world.ts";

const ANSWER_MS = 5_000;

export function openersOf(world: World): Openers {
  const { userId } = world.self;
  // A command that opens the state directory repeatedly gets the same warnings.
  const said = new Set<string>();
  const state = ({ values }: Config): StoreReader =>
    openStoreReader({
      directory: values.stateDir,
      files: stateFiles,
      notify: ({ message }) => {
        if (!said.has(message)) world.stderr(`crigc: ${clean(message)}\n`);
        said.add(message);
      },
    });
  return {
    userId,
    node: (config) => openNode(config, world.kubelet),
    collector: (config) => openCollector(config, world),
    agent: async (run) => (await import("./agent.ts")).runAgent(run, world),
    state,
    recorded: recordedNode,
    snapshotText,
    now: wallClock,
    hostName: hostname,
    hold: ({ values }) => ({
      read: () => readHold(values, wallClock()),
      set: (hold) => writeHold(values, { ...hold, by: `crigc hold, user ${userId}` }),
      release: () => releaseHold(values),
    }),
    keepRules: (config) => {
      using store = state(config);
      return keepRulesOf(config, store.ledger().keepDirectories);
    },
    keepFile,
    stamp: (config) => {
      using store = state(config);
      return store.setting(STAMP);
    },
    setStamp,
    archivedImages: async (path) => (await import("../node/archive.ts")).archivedImages(path),
    filesIn,
    writeFile: writeAnswerFile,
    askAgent: ({ values }, path, timeoutMs = ANSWER_MS) =>
      askAgent({
        socketPath: join(values.runDir, CONTROL_SOCKET),
        path,
        timeoutMs,
      }),
    rootDirectoryId,
    machine: machineOf,
    walkDirectories,
  };
}

async function openCollector(config: Config, world: World): Promise<OpenCollector> {
  const progress = terminalProgress(world.errorScreen, world.stderr);
  const log = logOf(config, world, () => progress.clear());
  const hook = eventCaller(
    () => config.values.eventHook,
    (message) => log.warning(message),
  );
  const connected = await connect(config);
  const { engine, recorder } = await openEngine({
    config: () => config,
    connected,
    self: world.self,
    kubelet: world.kubelet,
    log: () => log,
    startedAt: null,
    holder: "crigc gc",
    // Erase progress before the report.
    onPass: () => progress.clear(),
    onEvent: (event) => hook.call(event),
  });
  return {
    engine,
    log,
    starting: (candidate, meter) =>
      progress.starting({
        image: candidate.image,
        gainedBytes: meter.totals().measuredFreedBytes,
        wantedBytes: meter.wantedBytes(),
      }),
    recorded: async (patience) => (await recorder?.settle(patience)) ?? 0,
    [Symbol.asyncDispose]: async () => {
      connected.runtime.close();
      await recorder?.close();
      await hook.close();
      log.flush();
    },
  };
}

const STAMP = "keep-baseline-written-at";

function keepFile({ values }: Config, name: string): KeepFile {
  const path = join(values.keepDir, name);
  return { path, read: () => readKeepFile(path), change: (next) => changeKeepFile(path, next) };
}

function setStamp(config: Config, text: string): void {
  const { stateDir } = config.values;
  using file = new StateFile({ directory: stateDir, files: stateFiles, now: () => wallClock() });
  try {
    file.setSetting(STAMP, text);
  } catch (thrown) {
    throw new StoreError(
      "write",
      `cannot write the stamp of keep baseline --once to ${stateDir}: ${messageOf(thrown)}; baseline.list is written, and will be written again on the next boot`,
    );
  }
}

function machineOf(config: Config): Machine {
  return {
    bootId: () => readClocks().bootId,
    sockets: () => socketFacts(config.values.containerRuntimeEndpoint),
    directory: directoryFact,
    device: (path) => deviceOf(path).catch(() => null),
    executableFault,
    addressFault,
    kubelet: () => kubeletFact(config.values.rootDir),
  };
}

/** `rootDir`: the kubelet's, if configured and not `/`. */
function kubeletFact(rootDir: string | null): KubeletFact {
  const { processes, settings, problems } = readKubelet();
  const signs = kubeletSigns("/", rootDir === null || rootDir === "/" ? undefined : rootDir);
  return {
    signs,
    running: processes.map(({ pid }) => pid),
    settings,
    problems,
  };
}

/** The configured socket and all existing well-known ones, each real one once. */
async function socketFacts(named: string | null): Promise<readonly SocketFact[]> {
  const real = new Map<string, string>();
  for (const path of wellKnownSockets) {
    const target = await realpath(path).catch(() => null);
    if (target !== null && !real.has(target)) real.set(target, path);
  }
  const found = Array.from(real.values(), (path) => `unix://${path}`);
  const endpoints = named === null ? found : new Set([endpointOf(named), ...found]);
  return Promise.all(Array.from(endpoints, socketFact));
}

function endpointOf(text: string): string {
  const parsed = parseEndpoint(text);
  return parsed.kind === "unix" ? parsed.endpoint : text;
}

async function socketFact(endpoint: string): Promise<SocketFact> {
  try {
    const { probeEndpoint } = await import("../cri/discover.ts");
    const { name, version } = await probeEndpoint(endpoint);
    return { endpoint, answer: { kind: "runtime", name, version } };
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError)) throw thrown;
    return { endpoint, answer: { kind: "error", message: thrown.message } };
  }
}

/** The file was named on the command line, so its errors are usage errors. */
async function recordedNode(path: string): Promise<RecordedNode> {
  try {
    return readSnapshotText(await boundedText(path), path);
  } catch (thrown) {
    if (!(thrown instanceof StoreError)) throw thrown;
    throw usageError("--snapshot", path, thrown.message);
  }
}

async function boundedText(path: string): Promise<string> {
  try {
    const chunks: Buffer[] = [];
    let length = 0;
    // Pipes are allowed, but a device or a growing file may have no end.
    for await (const chunk of createReadStream(path)) {
      if (!Buffer.isBuffer(chunk)) continue;
      length += chunk.length;
      if (length > SNAPSHOT_BYTES_MAX)
        throw new Error(`it is larger than ${SNAPSHOT_BYTES_MAX} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  } catch (thrown) {
    throw new StoreError(
      "unreadable",
      `cannot read the snapshot ${path}: ${reasonOf(thrown)}; write one with crigc snapshot`,
      { cause: thrown },
    );
  }
}
