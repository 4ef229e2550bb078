/** What commands can open: a node to read or to collect on, the state directory, the machine. */

import { createReadStream } from "node:fs";
import { realpath } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";

import type { Config } from "../config/config.ts";
import { parseEndpoint, wellKnownSockets } from "../cri/endpoint.ts";
import type { Meter } from "../gc/meter.ts";
import { messageOf, RuntimeError, StoreError, usageError } from "../model/errors.ts";
import type { ImageCandidate } from "../model/plan.ts";
import { readClocks, wallClock } from "../node/clock.ts";
import { directoryFact, filesIn, rootDirectoryId, walkDirectories } from "../node/directories.ts";
import { deviceOf } from "../node/disk.ts";
import { executableFault } from "../node/executable.ts";
import { reasonOf, writeAnswerFile } from "../node/files.ts";
import { type HoldRequest, readHold, releaseHold, writeHold } from "../node/hold.ts";
import { addressFault } from "../node/http.ts";
import { changeKeepFile, readKeepFile, type TextChange } from "../node/keep-files.ts";
import { kubeletSigns } from "../node/kubelet/pods.ts";
import { type Kubelet, readKubelet } from "../node/kubelet/settings.ts";
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
import type { AgentRun } from "./agent.ts";
import { askAgent, CONTROL_SOCKET } from "./control.ts";
import { eventCaller } from "./events.ts";
import { keepRulesOf } from "./host.ts";
import { logOf } from "./log.ts";
import { connect, openEngine, openNode } from "./node.ts";
import type { World } from "./world.ts";

const ANSWER_MS = 5_000;

export type Openers = ReturnType<typeof openersOf>;
export type OpenCollector = Awaited<ReturnType<typeof openCollector>>;

export function openersOf(world: World) {
  const { userId } = world.self;
  // A command that opens the state directory repeatedly gets the same warnings.
  const said = new Set<string>();
  const state = ({ values }: Config): StoreReader =>
    openStoreReader({
      directory: values.stateDir,
      notify: ({ message }) => {
        if (!said.has(message)) world.stderr(`crigc: ${clean(message)}\n`);
        said.add(message);
      },
    });
  return {
    userId,
    /** Rejects with `RuntimeError` if no runtime answers, or several do and none is configured. */
    node: (config: Config) => openNode(config, world.kubelet),
    collector: (config: Config) => openCollector(config, world),
    /** Runs the agent; resolves with the exit code. */
    agent: async (run: AgentRun) => (await import("./agent.ts")).runAgent(run, world),
    state,
    recorded: recordedNode,
    /** What `recorded` reads. */
    snapshotText,
    now: wallClock,
    hostName: hostname,
    /** The hold in the state directory or the run directory; either is in force. */
    hold: ({ values }: Config) => ({
      read: () => readHold(values, wallClock()),
      /** Replaces any hold; returns its file and its end. Throws `HostError` `write`. */
      set: (hold: Omit<HoldRequest, "by">) =>
        writeHold(values, { ...hold, by: `crigc hold, user ${userId}` }),
      /** `false`: there was none. Throws `HostError` `write` if one cannot be removed. */
      release: () => releaseHold(values),
    }),
    /** The keep rules as a pass would read them now, without a runtime. Does not reject for invalid rules. */
    keepRules: (config: Config) => {
      using store = state(config);
      return keepRulesOf(config, store.ledger().keepDirectories);
    },
    keepFile,
    /** The stamp of `keep baseline --once`; `null`: none yet. */
    stamp: (config: Config) => {
      using store = state(config);
      return store.setting(STAMP);
    },
    setStamp,
    /** Throws `HostError` if the file is not an image archive. */
    archivedImages: async (path: string) =>
      (await import("../node/archive.ts")).archivedImages(path),
    filesIn,
    /** Atomic. Throws `HostError` `write`. */
    writeFile: writeAnswerFile,
    /** The body of the agent's response. Throws `HostError` `http` if no agent answers. */
    askAgent: ({ values }: Config, path: string, timeoutMs = ANSWER_MS) =>
      askAgent({
        socketPath: join(values.runDir, CONTROL_SOCKET),
        path,
        timeoutMs,
      }),
    /** Tells whether another process has the same root directory. */
    rootDirectoryId,
    machine: machineOf,
    walkDirectories,
  };
}

/** A node for collection; disposing of it writes what is still to be written, for a bounded time. */
async function openCollector(config: Config, world: World) {
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
    /** Shows the progress of a pass on a terminal. */
    starting: (candidate: ImageCandidate, meter: Meter) =>
      progress.starting({
        image: candidate.image,
        gainedBytes: meter.totals().measuredFreedBytes,
        wantedBytes: meter.wantedBytes(),
      }),
    /** Waits until the pass is recorded, or `patience` aborts; returns the number of removals that are not. */
    recorded: async (patience: AbortSignal) => (await recorder?.settle(patience)) ?? 0,
    [Symbol.asyncDispose]: async () => {
      connected.runtime.close();
      await recorder?.close();
      await hook.close();
      log.flush();
    },
  };
}

const STAMP = "keep-baseline-written-at";

function keepFile({ values }: Config, name: string) {
  const path = join(values.keepDir, name);
  return {
    path,
    /** `null`: does not exist. Throws `HostError` if it cannot be read. */
    read: () => readKeepFile(path),
    /** Atomic, under a lock against other crigc commands. Throws `HostError`, and what `next` throws. */
    change: <T>(next: (before: string | null) => TextChange<T>): T => changeKeepFile(path, next),
  };
}

/** Throws `StoreError` if the state directory cannot be written. */
function setStamp(config: Config, text: string): void {
  const { stateDir } = config.values;
  using file = new StateFile({ directory: stateDir, now: () => wallClock() });
  try {
    file.setSetting(STAMP, text);
  } catch (thrown) {
    throw new StoreError(
      "write",
      `cannot write the stamp of keep baseline --once to ${stateDir}: ${messageOf(thrown)}; baseline.list is written, and will be written again on the next boot`,
    );
  }
}

/** The facts for `doctor`, read without changing anything. */
function machineOf(config: Config) {
  return {
    /** "" if unreadable. */
    bootId: () => readClocks().bootId,
    sockets: () => socketFacts(config.values.containerRuntimeEndpoint),
    directory: directoryFact,
    /** The device of the filesystem that a path is or would be on, as in `Filesystem`; `null`: unknown. */
    device: (path: string) => deviceOf(path).catch(() => null),
    executableFault,
    addressFault,
    kubelet: () => kubeletFact(config.values.rootDir),
  };
}

export interface KubeletFact extends Pick<Kubelet, "settings" | "problems"> {
  /** Paths that suggest a kubelet on this node. */
  readonly signs: readonly string[];
  readonly running: readonly number[];
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

export interface SocketFact {
  readonly endpoint: string;
  readonly answer:
    | { readonly kind: "runtime"; readonly name: string; readonly version: string }
    | { readonly kind: "error"; readonly message: string };
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

/** Reads a file that `crigc snapshot` wrote. It was named on the command line, so its errors are usage errors. */
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
