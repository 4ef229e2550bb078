/** An engine whose world is in memory: what passes and loops are run on in tests. */

import { Journal } from "../../src/gc/journal.ts";
import { PassMemory } from "../../src/gc/pass-memory.ts";
import { type PassEnd, type PassRequest, runPass } from "../../src/gc/pass.ts";
import { type ListedRuntime, PodLists } from "../../src/gc/pod-lists.ts";
import type { Engine } from "../../src/gc/ports.ts";
import { volatileMemory } from "../../src/gc/ports.ts";
import type { ContainerExecution } from "../../src/gc/remove-containers.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import { logPathOf } from "../../src/model/ids.ts";
import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import type { Limits } from "../../src/model/limits.ts";
import type { Event, Pass } from "../../src/model/pass.ts";
import type { ContainerDetail } from "../../src/model/ports.ts";
import type {
  Container,
  Filesystem,
  Image,
  PodDirectory,
  PodReading,
  RuntimeInfo,
  Sandbox,
  Snapshot,
} from "../../src/model/snapshot.ts";
import {
  type Duration,
  duration,
  hours,
  type Instant,
  instant,
  toMs,
} from "../../src/model/time.ts";
import type { ContainerInput } from "../../src/policy/container/container-rules.ts";
import { decideContainers } from "../../src/policy/container/containers.ts";
import { defaultPolicy, type Policy } from "../../src/policy/policy.ts";
import { againOn, inputOf } from "./build/pods.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aSandbox,
  aSnapshot,
  defaultLimits,
  GIB,
  idOf,
  NOW,
  recordsOf,
} from "./build/values.ts";

export interface FakeWorld {
  images: Image[];
  containers: Container[];
  sandboxes: Sandbox[];
  filesystem: Filesystem;
  keep: Snapshot["keep"];
  pods: PodReading;
  /** The kubelet's directories of pods; `null`: there is no kubelet. */
  podDirectories: readonly PodDirectory[] | null;
  logs: Snapshot["logs"];
  ledger: Ledger;
  limits: Limits;
  hold: ReturnType<Engine["hold"]>;
  policy: Policy;
  wall: Instant;
  /** The monotonic clock too. */
  uptime: bigint;
  bootId: string;
  /** Frees nothing by itself: a test says what a removal frees. */
  freed: (image: Image) => bigint;
  /** Images whose removal succeeds, and that stay. */
  ghosts: Set<string>;
  /** Calls that fail, and calls that are not answered: `METHOD`, or `METHOD SUBJECT`. */
  fails: Set<string>;
  silent: Set<string>;
  /** How long each call takes that changes something. */
  writeTakes: Duration;
  runtime: RuntimeInfo;
  /** What the status of each container says beside its list. */
  detail: (id: string) => Partial<ContainerDetail> | undefined;
  /** The address that sandboxes' own status names. */
  address: string;
  /** What every command that is run in a container ends with. */
  exitCode: number;
  /** Runs before a call is answered, with the method and what it is about; what it throws is the answer. */
  before: (method: string, about: string) => void | Promise<void>;
  /** Answers that are no error and wrong all the same: a list that is empty or names every other thing, or a thing that is said not to be there. */
  lies: (method: string, about: string) => Lie | null;
}

export type Lie = "empty" | "half" | "absent";

export interface FakeEngine {
  readonly world: FakeWorld;
  readonly engine: Engine;
  /** Lets time pass at once. */
  readonly elapse: (ms: number) => void;
  /** Calls that change something, in order: `METHOD SUBJECT`, and what else was said. */
  readonly writes: string[];

  readonly calls: string[];
  readonly events: Event[];
  readonly passes: Pass[];
  readonly said: string[];
}

export function fakeEngine(change: Partial<FakeWorld> = {}): FakeEngine {
  const world: FakeWorld = {
    images: [],
    containers: [],
    sandboxes: [],
    filesystem: aFilesystem(),
    keep: { rules: [], problems: [] },
    pods: { kind: "none", why: "a test" },
    podDirectories: null,
    logs: null,
    ledger: emptyLedger,
    limits: defaultLimits,
    hold: { kind: "none" },
    policy: defaultPolicy,
    wall: NOW,
    uptime: hours(48),
    bootId: "boot-1",
    freed: (image) => image.sizeBytes,
    ghosts: new Set(),
    fails: new Set(),
    silent: new Set(),
    writeTakes: duration(0n),
    runtime: aSnapshot().runtime,
    detail: () => undefined,
    address: "",
    exitCode: 0,
    before: () => undefined,
    lies: () => null,
    ...change,
  };
  const record = {
    writes: [] as string[],
    calls: [] as string[],
    events: [] as Event[],
    passes: [] as Pass[],
    said: [] as string[],
  };
  const elapse = (ms: number): void => {
    const ns = BigInt(Math.round(ms * 1e6));
    world.uptime += ns;
    world.wall = instant(world.wall + ns);
  };
  return { world, engine: engineOf(world, { ...record, elapse }), elapse, ...record };
}

type Record_ = Omit<FakeEngine, "world" | "engine">;

/** A whole pass of `gc`. */
export const passRequest = (change: Partial<PassRequest> = {}): PassRequest => ({
  kind: "gc",
  purpose: { kind: "periodic" },
  containers: "all",
  images: true,
  dryRun: false,
  ...change,
});

export const runFakePass = (
  fake: Pick<FakeEngine, "engine">,
  change: Partial<PassRequest> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<PassEnd> => runPass(fake.engine, passRequest(change), signal);

/** A disk of 100 GiB with 10 GiB free, a running container, and these old images that nothing uses, of 4 GiB each. */
export function aNodeOf(words: readonly string[], change: Partial<FakeWorld> = {}): FakeEngine {
  const all = [...words, "used"];
  return fakeEngine({
    images: all.map((word) => anImage(word, { sizeBytes: 4n * GIB })),
    containers: [aContainer("always", { imageId: idOf("used") })],
    sandboxes: [aSandbox("a")],
    ledger: aLedger({ images: recordsOf(all) }),
    ...change,
  });
}

/** What changes an execution; `runtime` counts for its lists too. */
export interface ExecutionChange extends Partial<Omit<ContainerExecution, "runtime" | "lists">> {
  readonly runtime?: ListedRuntime;
  readonly decide?: typeof decideContainers;
}

/** What it takes to remove what is planned by `input`, without limits. */
export function containerExecution(
  { engine }: Pick<FakeEngine, "engine">,
  { decide = decideContainers, ...change }: ExecutionChange = {},
  input: ContainerInput = inputOf({}),
): ContainerExecution {
  const runtime = change.runtime ?? engine.observe.runtime;
  return {
    ...engine,
    plan: decide(input),
    decideAgain: (lists) => againOn(lists, input, decide),
    signal: new AbortController().signal,
    held: () => false,
    listedNs: engine.timer.monotonicNs(),
    done: () => undefined,
    lists: new PodLists(runtime),
    logs: engine.remover,
    measureFree: async () => null,
    ...change,
    runtime,
  };
}

function engineOf(world: FakeWorld, record: Record_): Engine {
  const memory = volatileMemory(world.ledger);
  const answer = async (method: string, about: string): Promise<Lie | null> => {
    await world.before(method, about);
    for (const what of [method, `${method} ${about}`]) {
      if (world.fails.has(what)) throw new RuntimeError("failed", `${what} was made to fail`);
      if (world.silent.has(what)) throw new RuntimeError("deadline", `${what} was not answered`);
    }
    return world.lies(method, about);
  };
  const call = async (method: string, about = ""): Promise<Lie | null> => {
    record.calls.push(method);
    return answer(method, about);
  };
  const write = async (method: string, about: string, ...more: readonly unknown[]) => {
    record.writes.push([method, about, ...more].join(" "));
    record.elapse(toMs(world.writeTakes));
    await answer(method, about);
  };
  const list =
    <T>(method: string, of: () => readonly T[]) =>
    async (): Promise<readonly T[]> => {
      const lie = await call(method);
      if (lie === "half") return of().filter((_, at) => at % 2 === 1);
      return lie === "empty" ? [] : [...of()];
    };
  const runtime: Engine["observe"]["runtime"] = {
    info: async () => {
      await call("Version");
      return world.runtime;
    },
    listImages: list("ListImages", () => world.images),
    listContainers: list("ListContainers", () => world.containers),
    listSandboxes: list("ListPodSandbox", () => world.sandboxes),
    containerDetail: async (id) => {
      const lie = await call("ContainerStatus", id);
      const container = world.containers.find((one) => one.id === id);
      if (container === undefined || lie === "absent") return null;
      return { ...detailOf(container), ...world.detail(id) };
    },
    sandboxDetail: async (id) => {
      const lie = await call("PodSandboxStatus", id);
      const sandbox = world.sandboxes.find((one) => one.id === id);
      if (sandbox === undefined || lie === "absent") return null;
      return { id, state: sandbox.state, address: world.address };
    },
    imageStatus: async (reference) => {
      if ((await call("ImageStatus", reference)) === "absent") return null;
      return (
        world.images.find((one) => one.id === reference || one.repoTags.includes(reference)) ?? null
      );
    },
    writableLayers: async () => null,
    imageConfig: async (id) => {
      const lie = await call("ImageStatus", id);
      const listed = world.images.some((one) => one.id === id) && lie !== "absent";
      return listed ? { chain: null, builtAt: null } : null;
    },
    reportedFilesystems: async () => {
      await call("ImageFsInfo");
      return { images: [], containers: [] };
    },
  };
  return {
    observe: {
      runtime,
      disk: {
        filesystems: async () => {
          await call("statfs");
          return [world.filesystem];
        },
        measure: async (path) => {
          await call("statfs", path);
          return world.filesystem;
        },
      },
      host: {
        clocks: () => ({
          wall: world.wall,
          uptime: duration(world.uptime),
          bootId: world.bootId,
        }),
        keepRules: async () => world.keep,
        pods: async () => world.pods,
        podDirectories: async () => {
          await call("podDirectories");
          return world.podDirectories;
        },
        logs: async () => world.logs,
      },
    },
    memory: {
      current: () => memory.current(),
      replace: (next) => {
        memory.replace(next);
        world.ledger = next;
      },
      save: () => undefined,
    },
    timer: {
      monotonicNs: () => world.uptime,
      sleep: async (ms, signal) => {
        // Passes only when nothing else is left to do.
        await new Promise((resolve) => void setImmediate(resolve));
        if (!signal.aborted) record.elapse(ms);
      },
    },
    limits: () => world.limits,
    hold: () => world.hold,
    policy: world.policy,
    writer: {
      removeImage: async (id) => {
        await write("RemoveImage", id);
        const image = world.images.find((one) => one.id === id);
        if (world.ghosts.has(id)) return;
        world.images = world.images.filter((one) => one.id !== id);
        const bytes = image === undefined ? 0n : world.freed(image);
        world.filesystem = {
          ...world.filesystem,
          availableBytes: world.filesystem.availableBytes + bytes,
        };
      },
      stopContainer: async (id, graceSeconds) => {
        await write("StopContainer", id, graceSeconds);
        world.containers = world.containers.map((one) =>
          one.id === id ? { ...one, state: "exited" } : one,
        );
      },
      removeContainer: async (id) => {
        await write("RemoveContainer", id);
        world.containers = world.containers.filter((one) => one.id !== id);
      },
      stopSandbox: (id) => write("StopPodSandbox", id),
      removeSandbox: async (id) => {
        await write("RemovePodSandbox", id);
        world.sandboxes = world.sandboxes.filter((one) => one.id !== id);
      },
      execSync: async (id, { words, timeoutSeconds }) => {
        await write("ExecSync", id, ...words, timeoutSeconds);
        return world.exitCode;
      },
    },
    remover: {
      removeContainerLogs: async (container) => {
        const path = logPathOf(container)?.join("/");
        if (path === undefined) return { names: [], bytes: 0n };
        await write("RemoveLogs", path);
        return { names: [path], bytes: 4096n };
      },
      removeLink: async ({ entry }) => {
        await write("RemoveLink", entry);
        return true;
      },
      removePodLogs: async ({ entry }) => {
        await write("RemovePodLogs", entry);
        return { names: [entry], bytes: 4096n };
      },
    },
    passes: new PassMemory({ monotonicNs: () => world.uptime }),
    hooks: {
      get: async (request) => {
        await write("GET", JSON.stringify(request));
        return 200;
      },
    },
    commit: async () => undefined,
    journal: journalOf(world, record),
  };
}

const detailOf = (container: Container): ContainerDetail => ({
  id: container.id,
  imageVolumes: [],
  state: container.state,
  labels:
    container.podUid === ""
      ? {}
      : {
          "io.kubernetes.pod.uid": container.podUid,
          "io.kubernetes.pod.name": container.podName,
          "io.kubernetes.pod.namespace": container.podNamespace,
          "io.kubernetes.container.name": container.name,
        },
  annotations: {},
});

export const journalOf = (
  world: Pick<FakeWorld, "uptime">,
  record: Pick<Record_, "passes" | "events" | "said">,
): Journal =>
  new Journal({ monotonicNs: () => world.uptime }, [
    {
      passEnded: (pass) => void record.passes.push(pass),
      event: (event) => void record.events.push(event),
      say: (_, message) => void record.said.push(message),
    },
  ]);
