/** Fills what commands need of the machine: holds, keep files, archives, the agent's socket, what doctor looks at. */

import { realpath } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";

import type { KeepFile, KubeletFact, Machine, Openers, SocketFact, Tools } from "../cli/openers.ts";
import type { Config } from "../config/config.ts";
import { probeEndpoint } from "../cri/discover.ts";
import { parseEndpoint, wellKnownSockets } from "../cri/endpoint.ts";
import { archivedImages } from "../host/archive/archived-images.ts";
import { directoryFact } from "../host/disk/directory-fact.ts";
import { deviceOf } from "../host/disk/disk.ts";
import { walkDirectories } from "../host/disk/largest-directories.ts";
import { writeAnswerFile } from "../host/files/answer-file.ts";
import { changeKeepFile, readKeepFile } from "../host/keep/change-keep-file.ts";
import { readKubelet } from "../host/kubelet/settings.ts";
import { kubeletSigns } from "../host/kubelet/sign.ts";
import { addressFault, executableFault } from "../host/process/reachable.ts";
import { readHold, releaseHold, writeHold } from "../host/state/hold.ts";
import { stateFiles } from "../host/state/state-files.ts";
import { readClocks, wallClock } from "../host/time/clock.ts";
import { RuntimeError, StoreError } from "../model/errors.ts";
import { askAgent } from "../report/http/client.ts";
import { StateFile } from "../store/file/state-file.ts";
import type { StoreReader } from "../store/open.ts";
import { keepRulesOf } from "./host.ts";
import { CONTROL_SOCKET } from "./status-server.ts";
import type { World } from "./world.ts";

const ANSWER_MS = 5_000;

/** `state` opens the state directory to read. */
export function toolsOf({ self: { userId } }: World, state: Openers["state"]): Tools {
  return {
    now: () => wallClock(),
    hostName: hostname,
    hold: ({ paths }) => ({
      read: () => readHold(paths, wallClock()),
      set: (hold) => writeHold(paths, { ...hold, by: `crigc hold, user ${userId}` }),
      release: () => releaseHold(paths),
    }),
    keepRules: (config) => {
      const store = state(config);
      const { keepDirectories } = store.ledger();
      store.close();
      return keepRulesOf(config, keepDirectories);
    },
    userId,
    keepFile,
    stamp: (config) => stampOf(state(config)),
    setStamp,
    archivedImages,
    writeFile: writeAnswerFile,
    askAgent: ({ paths }, path, timeoutMs = ANSWER_MS) =>
      askAgent({ socketPath: join(paths.runDir, CONTROL_SOCKET), path, timeoutMs }),
    machine: machineOf,
    walkDirectories,
  };
}

const STAMP = "keep-baseline-written-at";

function keepFile({ paths }: Config, name: string): KeepFile {
  const path = join(paths.keepDir, name);
  return { path, read: () => readKeepFile(path), change: (next) => changeKeepFile(path, next) };
}

function stampOf(store: StoreReader): string | null {
  const stamp = store.setting(STAMP);
  store.close();
  return stamp;
}

function setStamp(config: Config, text: string): void {
  const { stateDir } = config.paths;
  const file = new StateFile({
    directory: stateDir,
    files: stateFiles,
    now: () => wallClock(),
  });
  const failure = file.setSetting(STAMP, text);
  file.close();
  if (failure !== null)
    throw new StoreError(
      "write",
      `cannot write the stamp of keep baseline --once to ${stateDir}: ${failure}; baseline.list is written, and will be written again on the next boot`,
    );
}

function machineOf(config: Config): Machine {
  return {
    bootId: () => readClocks().bootId,
    sockets: () => socketFacts(config.endpoints.runtime),
    directory: directoryFact,
    device: (path) => deviceOf(path).catch(() => null),
    executableFault,
    addressFault,
    kubelet: () => kubeletFact(config.paths.rootDir),
  };
}

/** `rootDir`: where the configuration names one that is not the root itself, the kubelet's. */
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

/** What is configured, and where nothing is: all that is there by name, each socket once. */
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
    const { name, version } = await probeEndpoint(endpoint);
    return { endpoint, answer: { kind: "runtime", name, version } };
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError)) throw thrown;
    return { endpoint, answer: { kind: "error", error: thrown.kind, message: thrown.message } };
  }
}
