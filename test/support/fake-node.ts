/** A node in memory that records every call that changes it: what the executor's ports are in tests. */

import { Backoff } from "../../src/gc/calls.ts";
import { LogUsers } from "../../src/gc/log-users.ts";
import { type ListedRuntime, PodLists } from "../../src/gc/pod-lists.ts";
import type { ContainerExecution } from "../../src/gc/remove-container.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { ContainerId, SandboxId } from "../../src/model/ids.ts";
import type {
  ContainerDetail,
  HookRequest,
  LogRemover,
  RemovedFiles,
} from "../../src/model/ports.ts";
import type { Container, Sandbox } from "../../src/model/snapshot.ts";
import { duration, seconds } from "../../src/model/time.ts";
import type { ContainerInput } from "../../src/policy/container/container-rules.ts";
import { decideContainers, decideContainersAgain } from "../../src/policy/container/containers.ts";
import { inputOf } from "./build/pods.ts";

export type NodeCall =
  | { readonly kind: "stop-container"; readonly id: string; readonly graceSeconds: number }
  | {
      readonly kind: "exec";
      readonly id: string;
      readonly command: readonly string[];
      readonly timeoutSeconds: number;
    }
  | { readonly kind: "remove-container" | "stop-sandbox" | "remove-sandbox"; readonly id: string }
  | { readonly kind: "get"; readonly request: HookRequest }
  | {
      readonly kind: "remove-logs";
      readonly path: string;
      readonly uid: string;
      readonly kept: readonly string[];
    }
  | { readonly kind: "remove-link" | "remove-pod-logs"; readonly entry: string };

export interface FakeNodeState {
  readonly containers: readonly Container[];
  readonly sandboxes: readonly Sandbox[];
  /** Changes of what a container's status says, beside the list. */
  readonly details?: ReadonlyMap<string, Partial<ContainerDetail>>;
  /** Calls that fail, as `KIND ID`; `list` fails both lists, `status ID` a status. */
  readonly fails?: ReadonlySet<string>;
  /** Calls, in the same form, that are not answered in time. */
  readonly silent?: ReadonlySet<string>;
  readonly address?: string;
  /** Log directories that sandboxes' own status names. */
  readonly logDirectories?: ReadonlyMap<string, string>;
  /** What every command that is run in a container ends with; 0. */
  readonly exitCode?: number;
  /** Where the fake clock begins; 0. */
  readonly startNs?: bigint;
  /** Nanoseconds that each call takes on it. */
  readonly callNs?: bigint;
}

export interface ExecutionChange extends Partial<Omit<ContainerExecution, "runtime" | "lists">> {
  readonly runtime?: ListedRuntime;
}

/** Nothing was planned. */
const noInput: ContainerInput = inputOf({ containers: [], sandboxes: [] });

export class FakeNode {
  readonly calls: NodeCall[] = [];
  readonly containers: Map<string, Container>;
  readonly sandboxes: Map<string, Sandbox>;
  lists = 0;
  /** Runs before each recorded call: the world that changes meanwhile. */
  before: (call: NodeCall) => void = () => {};
  readonly #state: FakeNodeState;
  #ns: bigint;

  constructor(state: FakeNodeState) {
    this.#state = state;
    this.#ns = state.startNs ?? 0n;
    this.containers = new Map(state.containers.map((one) => [one.id, one]));
    this.sandboxes = new Map(state.sandboxes.map((one) => [one.id, one]));
  }

  /** IDs or entries of the recorded calls of one kind, in order. */
  called(kind: NodeCall["kind"]): readonly string[] {
    return this.calls.filter((call) => call.kind === kind).map(subjectOf);
  }

  readonly runtime: ListedRuntime = {
    listContainers: async () => {
      this.lists += 1;
      this.#fail("list");
      return [...this.containers.values()];
    },
    listSandboxes: async () => [...this.sandboxes.values()],
    containerDetail: async (id: ContainerId) => {
      this.#fail(`status ${id}`);
      const container = this.containers.get(id);
      return container === undefined ? null : this.#detail(container);
    },
    sandboxDetail: async (id: SandboxId) => {
      this.#fail(`status ${id}`);
      const sandbox = this.sandboxes.get(id);
      if (sandbox === undefined) return null;
      return { id, state: sandbox.state, address: this.#state.address ?? "" };
    },
  };

  readonly reader: ConstructorParameters<typeof LogUsers>[0] = {
    containerDetail: (id, signal) => this.runtime.containerDetail(id, signal),
    sandboxLogDirectory: async (id) => {
      this.#fail(`directory ${id}`);
      return this.#state.logDirectories?.get(id) ?? "";
    },
  };

  readonly writer: ContainerExecution["writer"] = {
    stopContainer: async (id, graceSeconds) => {
      this.#call({ kind: "stop-container", id, graceSeconds });
      const container = this.containers.get(id);
      if (container !== undefined) this.containers.set(id, { ...container, state: "exited" });
    },
    removeContainer: async (id) => {
      this.#call({ kind: "remove-container", id });
      this.containers.delete(id);
    },
    stopSandbox: async (id) => this.#call({ kind: "stop-sandbox", id }),
    removeSandbox: async (id) => {
      this.#call({ kind: "remove-sandbox", id });
      this.sandboxes.delete(id);
    },
    execSync: async (id, { words: command, timeoutSeconds }) => {
      this.#call({ kind: "exec", id, command, timeoutSeconds });
      return this.#state.exitCode ?? 0;
    },
  };

  readonly logs: LogRemover = {
    removeContainerLogs: async ({ path, podUid, kept }): Promise<RemovedFiles> => {
      this.#call({ kind: "remove-logs", path, uid: podUid, kept });
      return { names: [path], bytes: 4096n };
    },
    removeLegacyLink: async (entry) => {
      this.#call({ kind: "remove-link", entry });
      return true;
    },
    removePodLogs: async ({ entry }) => {
      this.#call({ kind: "remove-pod-logs", entry });
      return { names: [entry], bytes: 4096n };
    },
    // As if every log lay below /var/log/pods, with no link on its way.
    placesOf: async (logs) => logs.map(({ path }) => [path.replace("/var/log/pods/", "")]),
  };

  /** What it takes to remove what is planned by `input`, without limits. */
  execution(change: ExecutionChange = {}, input = noInput): ContainerExecution {
    return {
      plan: decideContainers(input),
      decideAgain: (lists) => decideContainersAgain(input, { ...lists, pods: input.pods }),
      signal: new AbortController().signal,
      held: () => false,
      maxRemovalsPerPass: null,
      stopGraceMax: seconds(30),
      inOrder: false,
      listedNs: 0n,
      removalInterval: duration(0n),
      done: () => undefined,
      runtime: this.runtime,
      lists: new PodLists(change.runtime ?? this.runtime),
      say: () => undefined,
      writer: this.writer,
      logs: this.logs,
      logUsers: new LogUsers(this.reader, { monotonicNs: () => this.#ns }),
      backoff: new Backoff({ monotonicNs: () => this.#ns }),
      hooks: {
        get: async (request) => {
          this.#call({ kind: "get", request });
          return 200;
        },
      },
      timer: {
        monotonicNs: () => this.#ns,
        // Passes only when nothing else is left to do, and not at all where it was given up by then.
        sleep: (ms, signal) =>
          new Promise((resolve) => {
            setImmediate(() => {
              if (!signal.aborted) this.#ns += BigInt(ms) * 1_000_000n;
              resolve();
            });
          }),
      },
      measureAvailable: null,
      ...change,
    };
  }

  #detail(container: Container): ContainerDetail {
    return {
      id: container.id,
      imageVolumes: [],
      finishedAt: container.state === "exited" ? container.createdAt : null,
      logPath: "",
      state: container.state,
      labels: labelsOf(container),
      annotations: {},
      ...this.#state.details?.get(container.id),
    };
  }

  #call(call: NodeCall): void {
    this.before(call);
    this.calls.push(call);
    this.#ns += this.#state.callNs ?? 0n;
    this.#fail(`${call.kind} ${subjectOf(call)}`);
  }

  #fail(what: string): void {
    if (this.#state.silent?.has(what) === true)
      throw new RuntimeError("deadline", `${what}: no answer`);
    if (this.#state.fails?.has(what) === true) throw new RuntimeError("failed", `${what}: refused`);
  }
}

function subjectOf(call: NodeCall): string {
  if ("id" in call) return call.id;
  if ("entry" in call) return call.entry;
  return call.kind === "get" ? call.request.host : call.path;
}

function labelsOf(container: Container): Readonly<Record<string, string>> {
  if (container.podUid === "") return {};
  return {
    "io.kubernetes.pod.uid": container.podUid,
    "io.kubernetes.pod.name": container.podName,
    "io.kubernetes.pod.namespace": container.podNamespace,
    "io.kubernetes.container.name": container.name,
  };
}
