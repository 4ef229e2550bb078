/** An engine whose world is in memory: what passes and loops are run on in tests. */

import { Announcer } from "../../src/gc/announcer.ts";
import { Backoff } from "../../src/gc/calls.ts";
import { LogUsers } from "../../src/gc/log-users.ts";
import { type PassEnd, type PassRequest, runPass } from "../../src/gc/pass.ts";
import type { Engine, Journal, Seen } from "../../src/gc/ports.ts";
import { volatileMemory } from "../../src/gc/ports.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import { type ContainerMark, emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import type { Limits } from "../../src/model/limits.ts";
import type { Event, Pass } from "../../src/model/pass.ts";
import type { ContainerDetail } from "../../src/model/ports.ts";
import type {
  Container,
  Filesystem,
  Image,
  PodReading,
  RuntimeInfo,
  Sandbox,
  Snapshot,
} from "../../src/model/snapshot.ts";
import { duration, hours, type Instant, instant } from "../../src/model/time.ts";
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
import { noAnnouncements, noPulls } from "./no-creations.ts";

export interface FakeWorld {
  images: Image[];
  containers: Container[];
  sandboxes: Sandbox[];
  filesystem: Filesystem;
  keep: Snapshot["keep"];
  pods: PodReading;
  /** The kubelet's marks of containers; `null`: its directory cannot be read. */
  marks: readonly ContainerMark[] | null;
  logs: Snapshot["logs"];
  ledger: Ledger;
  limits: Limits;
  hold: ReturnType<Engine["hold"]>;
  startedAt: Instant | null;
  wall: Instant;
  uptime: bigint;
  /** Frees nothing by itself: a test says what a removal frees. */
  freed: (image: Image) => bigint;
  /** Images whose removal the runtime refuses. */
  refuses: Set<string>;
  /** Images whose removal succeeds, and that stay. */
  ghosts: Set<string>;
  /** Calls that fail: a method's name. */
  fails: Set<string>;
  lockIsFree: boolean;
  runtime: RuntimeInfo;
  /** What the status of each container says beside its list. */
  detail: Partial<ContainerDetail>;
  /** Where each log lies, below the log directory. */
  logPlaces: readonly string[];
  /** References of image volumes, by container. */
  volumes: ReadonlyMap<string, readonly string[]>;
  /** Runs before a call is answered, with the method and what it is about; what it throws is the answer. */
  before: (method: string, about: string) => void | Promise<void>;
  /** Answers that are no error and wrong all the same: a list that is empty or names every other thing, or a thing that is said not to be there. */
  lies: (method: string) => Lie | null;
}

export type Lie = "empty" | "half" | "absent";

export interface FakeEngine {
  readonly world: FakeWorld;
  readonly engine: Engine;
  /** Calls that change the runtime, in order: `RemoveImage ID`. */
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
    keep: { rules: [], problems: [], directoriesRead: [] },
    pods: { kind: "none", why: "a test" },
    marks: [],
    logs: null,
    ledger: emptyLedger,
    limits: defaultLimits,
    hold: { kind: "none" },
    startedAt: null,
    wall: NOW,
    uptime: hours(48),
    freed: (image) => image.sizeBytes,
    refuses: new Set(),
    ghosts: new Set(),
    fails: new Set(),
    lockIsFree: true,
    runtime: aSnapshot().runtime,
    detail: {},
    logPlaces: [],
    volumes: new Map(),
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
  return { world, engine: engineOf(world, record), ...record };
}

type Record_ = Omit<FakeEngine, "world" | "engine">;

/** A whole pass of `gc` over the fake world, by its clock. */
export const passRequest = (
  { engine }: Pick<FakeEngine, "engine">,
  change: Partial<PassRequest> = {},
): PassRequest => ({
  kind: "gc",
  purpose: { kind: "periodic" },
  containers: "all",
  images: true,
  dryRun: false,
  lockWaitMs: 0,
  announcer: new Announcer(engine.journal),
  ...change,
});

export const runFakePass = (
  fake: Pick<FakeEngine, "engine">,
  change: Partial<PassRequest> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<PassEnd> => runPass(fake.engine, passRequest(fake, change), signal);

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

function engineOf(world: FakeWorld, record: Record_): Engine {
  const memory = volatileMemory(world.ledger);
  const call = async (method: string, about = ""): Promise<Lie | null> => {
    record.calls.push(method);
    if (world.fails.has(method)) throw new RuntimeError("failed", `${method} was made to fail`);
    await world.before(method, about);
    return world.lies(method);
  };
  const list =
    <T>(method: string, of: () => readonly T[]) =>
    async (): Promise<readonly T[]> => {
      const lie = await call(method);
      if (lie === "half") return of().filter((_, at) => at % 2 === 1);
      return lie === "empty" ? [] : [...of()];
    };
  let monotonicNs = 0n;
  return {
    observe: {
      silent: new Backoff({ monotonicNs: () => monotonicNs }),
      runtime: {
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
          return {
            id,
            imageVolumes: world.volumes.get(id) ?? [],
            finishedAt: null,
            logPath: "",
            state: container.state,
            labels: { "io.kubernetes.pod.uid": container.podUid },
            annotations: {},
            ...world.detail,
          };
        },
        sandboxDetail: async (id) => {
          const lie = await call("PodSandboxStatus", id);
          const sandbox = world.sandboxes.find((one) => one.id === id);
          if (sandbox === undefined || lie === "absent") return null;
          return { id, state: sandbox.state, address: "" };
        },
        sandboxLogDirectory: async (id) => {
          await call("PodSandboxStatus", id);
          return "";
        },
        sandboxImage: async (id) => {
          await call("PodSandboxStatus", id);
          return null;
        },
        imageStatus: async (reference) => {
          if ((await call("ImageStatus", reference)) === "absent") return null;
          return (
            world.images.find((one) => one.id === reference || one.repoTags.includes(reference)) ??
            null
          );
        },
        writableLayers: async () => null,
        imageOrigin: async (id) => {
          const lie = await call("ImageStatus", id);
          const listed = world.images.some((one) => one.id === id) && lie !== "absent";
          return listed ? { chain: null, builtAt: null } : null;
        },
        reportedFilesystems: async () => {
          await call("ImageFsInfo");
          return { images: [], containers: [] };
        },
      },
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
        clocks: () => ({ wall: world.wall, uptime: duration(world.uptime), bootId: "boot-1" }),
        keepRules: async () => world.keep,
        pods: async () => world.pods,
        newerPods: async (before) => {
          const { manifests = [] } = world.pods;
          return manifests.length === 0 ? before : { ...before, manifests };
        },
        pulls: noPulls,
        containerMarks: async (pods, isNew) => {
          await call("marks");
          if (world.marks === null) return { marks: [], unreadable: new Set(pods) };
          const marks = world.marks.filter((it) => pods.includes(it.podUid) && isNew(it));
          return { marks, unreadable: new Set() };
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
    },
    timer: {
      monotonicNs: () => (monotonicNs += 1_000n),
      sleep: async (ms, signal) => {
        // Passes only when nothing else is left to do.
        await new Promise((resolve) => void setImmediate(resolve));
        if (signal.aborted) return;
        const ns = BigInt(Math.round(ms * 1e6));
        monotonicNs += ns;
        world.uptime += ns;
        world.wall = instant(world.wall + ns);
      },
    },
    limits: () => world.limits,
    hold: () => world.hold,
    startedAt: world.startedAt,
    writer: {
      removeImage: async (id) => {
        record.writes.push(`RemoveImage ${id}`);
        await world.before("RemoveImage", id);
        const image = world.images.find((one) => one.id === id);
        if (world.refuses.has(id)) throw new RuntimeError("failed", "the runtime refuses");
        if (world.ghosts.has(id)) return;
        world.images = world.images.filter((one) => one.id !== id);
        const bytes = image === undefined ? 0n : world.freed(image);
        world.filesystem = {
          ...world.filesystem,
          availableBytes: world.filesystem.availableBytes + bytes,
        };
      },
      stopContainer: async (id) => {
        record.writes.push(`StopContainer ${id}`);
        await world.before("StopContainer", id);
      },
      removeContainer: async (id) => {
        record.writes.push(`RemoveContainer ${id}`);
        await world.before("RemoveContainer", id);
        world.containers = world.containers.filter((one) => one.id !== id);
      },
      stopSandbox: async (id) => {
        record.writes.push(`StopPodSandbox ${id}`);
        await world.before("StopPodSandbox", id);
      },
      removeSandbox: async (id) => {
        record.writes.push(`RemovePodSandbox ${id}`);
        await world.before("RemovePodSandbox", id);
        world.sandboxes = world.sandboxes.filter((one) => one.id !== id);
      },
      execSync: async () => 0,
    },
    remover: {
      removeContainerLogs: async () => ({ names: [], bytes: 0n }),
      removeLegacyLink: async () => false,
      placesOf: async (logs) => logs.map(() => world.logPlaces),
      removePodLogs: async ({ entry }) => {
        record.writes.push(`remove logs ${entry}`);
        return { names: [], bytes: 0n };
      },
    },
    // Nothing is listed that logs: what is done with logs is tested in execute and with the executable.
    logUsers: new LogUsers(
      { containerDetail: async () => null, sandboxLogDirectory: async () => null },
      { monotonicNs: () => monotonicNs },
    ),
    backoff: new Backoff({ monotonicNs: () => monotonicNs }),
    hooks: { get: async () => 200 },
    commit: async () => undefined,
    journal: journalOf(record),
    lock: { acquire: async () => (world.lockIsFree ? () => undefined : null) },
    events: noAnnouncements,
  };
}

function journalOf(record: Record_): Journal {
  return {
    passStarted: () => undefined,
    imageDone: () => undefined,
    containerDone: () => undefined,
    passEnded: (pass: Pass, _seen: Seen | null) => void record.passes.push(pass),
    event: (event) => void record.events.push(event),
    say: (_, message) => void record.said.push(message),
    failed: (_, message) => void record.said.push(message),
    succeeded: (_, what) => void record.said.push(`${what} succeeds again`),
  };
}
