// The ports of an agent on a simulated node: calls take time, fail while the runtime is away, and are counted.

import { Journal } from "../../src/gc/journal.ts";
import { PassMemory } from "../../src/gc/pass-memory.ts";
import type { Engine } from "../../src/gc/ports.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { ImageId } from "../../src/model/ids.ts";
import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import type { PassKind } from "../../src/model/pass.ts";
import type { Container, KeepRules, PodDirectory, Sandbox } from "../../src/model/snapshot.ts";
import { duration } from "../../src/model/time.ts";
import { reading } from "../support/build/pods.ts";
import type { FakeEngine, FakeWorld } from "../support/fake-engine.ts";
import type { Random } from "../support/random.ts";
import { signalIn, surrounded } from "./around.ts";
import { DEADLINE_MS } from "./clock.ts";
import type { Hostility } from "./hostility.ts";
import { available, filesystemOf, inodesFree, type SimNode } from "./node.ts";

/** The fake world, and what happens to calls: changed at will while time passes. */
export interface Weather extends FakeWorld {
  runtimeIsAway: boolean;
  /** A call takes up to so long. */
  latencyMs: number;
  /** Of a hundred removals, so many are refused; and so many are answered too late, and done all the same. */
  refusedPercent: number;
  tooLatePercent: number;
  /** No removal is ever answered, not even by its deadline. */
  removalsHang: boolean;
  /** A verbose image status is not answered before its deadline. */
  layersHang: boolean;
  /** What `ImageFsInfo` says of the images' use. */
  told: "exact" | "none";
}

/** What an agent did and said; shared by all that run on the node one after the other. */
export class SimRecord {
  readonly events: FakeEngine["events"];
  readonly passes: FakeEngine["passes"];
  statfs = 0;
  /** The pass that runs. */
  kind: PassKind | null = null;
  /** The keep rules that the latest observation read. */
  keepRead: KeepRules | null = null;
  /** The containers that the runtime named last, by their image. */
  listed: readonly Container[] = [];
  ledger: Ledger = emptyLedger;
  /** IDs of containers that were in the ledger at any time. */
  readonly remembered = new Set<string>();
  /** What must never happen, and did. */
  readonly violations: string[] = [];
  /** Removals of the pass that runs for which nothing asked any more. */
  surplus = 0;
  passStartedNs = 0n;
  listedSandboxes: readonly Sandbox[] = [];
  /** The directories of pods that were read last. */
  directories: readonly PodDirectory[] = [];
  /** Every RemoveImage call. */
  removals: { readonly atNs: bigint; readonly id: ImageId; readonly kind: PassKind | null }[] = [];

  constructor({ events, passes }: FakeEngine) {
    this.events = events;
    this.passes = passes;
  }
}

export interface SimPorts {
  readonly node: SimNode;
  readonly weather: Weather;
  readonly record: SimRecord;
  readonly random: Random;
  /** False once the process is gone: nothing that it asks for is answered then. */
  readonly isAlive: () => boolean;
  /** Why an image must not be removed now; `null`: it may be. */
  readonly judge: (id: ImageId) => string | null;
  /** `null`: the runtime answers what is true. */
  readonly hostility: Hostility | null;
}

const never = new Promise<never>(() => undefined);

export function simEngine(ports: SimPorts): Engine {
  const { node, weather, record, random, isAlive, hostility } = ports;
  const { clock, fake } = node;
  const { engine } = fake;
  const call: Call = async (signal) => {
    if (weather.latencyMs > 0) await clock.sleep(random.next() * weather.latencyMs, signal);
    if (!isAlive()) await never;
    if (signal?.aborted === true) throw new RuntimeError("cancelled", "the call was cancelled");
    if (weather.runtimeIsAway) throw new RuntimeError("unreachable", "the runtime is away");
  };
  const called = <Port extends object>(port: Port): Port =>
    surrounded(port, async (_, given, ask) => {
      await call(signalIn(given));
      return ask();
    });
  const honest = {
    reader: called({ ...engine.observe.runtime, imageConfig: originOf(ports) }),
    writer: { ...called(engine.writer), removeImage: removerOf(ports, call) },
  };
  weather.before = noted(ports);
  const disk = (path: string) => {
    const found = node.disks.find((one) => one.path === path);
    if (found === undefined) throw new Error(`the node has no disk at ${path}`);
    return found;
  };
  return {
    // Logs, hooks and locks have no part in a simulated life.
    ...engine,
    observe: {
      runtime: hostility?.reader(honest.reader, record) ?? honest.reader,
      disk: {
        filesystems: async () => node.disks.map((one) => filesystemOf(node, one, weather.told)),
        measure: async (path) => {
          record.statfs += 1;
          const one = disk(path);
          return {
            capacityBytes: one.capacity,
            availableBytes: available(node, one),
            inodes: one.inodes,
            inodesFree: inodesFree(node, one),
          };
        },
      },
      host: {
        ...engine.observe.host,
        clocks: () => ({
          wall: node.wall(),
          uptime: duration(node.uptimeNs()),
          bootId: weather.bootId,
        }),
        keepRules: async () => (record.keepRead = weather.keep),
        pods: async () => reading("kubelet-dir", ...node.pods),
      },
    },
    memory: {
      current: () => record.ledger,
      replace: (next) => {
        if (!isAlive()) return;
        record.ledger = next;
        for (const id of next.containers.keys()) record.remembered.add(id);
      },
      save: () => undefined,
    },
    timer: {
      monotonicNs: () => clock.monotonicNs(),
      sleep: async (ms, signal) => {
        await clock.sleep(ms, signal);
        if (!isAlive()) await never;
      },
    },
    writer: hostility?.writer(honest.writer, (id) => noteRemoval(ports, id)) ?? honest.writer,
    passes: new PassMemory(clock),
    journal: new Journal(clock, [
      fake.engine.journal,
      {
        passStarted: ({ kind }) => {
          record.kind = kind;
          record.surplus = 0;
          record.passStartedNs = clock.monotonicNs();
        },
        passEnded: () => {
          record.kind = null;
        },
      },
    ]),
  };
}

type Call = (signal?: AbortSignal) => Promise<void>;

/** Notes what the runtime is about to tell or do. */
function noted({ node, record, weather }: SimPorts): FakeWorld["before"] {
  return (method, about) => {
    if (method === "ListImages") node.wentUnseen.clear();
    if (method === "ListContainers") record.listed = weather.containers;
    if (method === "ListPodSandbox") record.listedSandboxes = weather.sandboxes;
    if (method === "podDirectories") record.directories = weather.podDirectories ?? [];
    const isIn = (
      list: readonly { readonly id: string; readonly state: string }[],
      state: string,
    ) => list.some((one) => one.id === about && one.state === state);
    if (method === "RemoveContainer" && isIn(weather.containers, "running"))
      record.violations.push(`the running container ${about} was removed`);
    if (method === "RemovePodSandbox" && isIn(weather.sandboxes, "ready"))
      record.violations.push(`the ready sandbox ${about} was removed`);
    // A life is long.
    for (const list of [node.fake.calls, node.fake.writes, node.fake.said]) list.length = 0;
  };
}

function originOf({ node, weather }: SimPorts): Engine["observe"]["runtime"]["imageConfig"] {
  return async (_, signal) => {
    if (weather.layersHang) {
      await node.clock.sleep(DEADLINE_MS, signal);
      throw new RuntimeError("deadline", "ImageStatus was not answered in time");
    }
    return { chain: null, builtAt: null };
  };
}

function removerOf(ports: SimPorts, call: Call): Engine["writer"]["removeImage"] {
  const { node, weather, record, random, hostility } = ports;
  return async (id) => {
    const surplusBefore = record.surplus;
    // A hostile runtime is judged by what it was asked, whenever and however often it does it.
    if (hostility === null) noteRemoval(ports, id);
    await call();
    if (weather.removalsHang) await never;
    const dice = random.next() * 100;
    if (dice < weather.refusedPercent) {
      record.surplus = surplusBefore;
      throw new RuntimeError("failed", "device is busy");
    }
    if (dice < weather.refusedPercent + weather.tooLatePercent) {
      node.clock.after(DEADLINE_MS * 1.5, () => {
        const cameNs = node.images.get(id)?.cameNs;
        node.removeImage(id);
        if (cameNs !== undefined && !node.images.has(id)) node.wentUnseen.set(id, cameNs);
      });
      await node.clock.sleep(DEADLINE_MS);
      throw new RuntimeError("deadline", "RemoveImage was not answered in time");
    }
    node.removeImage(id);
  };
}

function noteRemoval({ node, record, judge }: SimPorts, id: ImageId): void {
  record.removals.push({ atNs: node.clock.monotonicNs(), id, kind: record.kind });
  const fault = judge(id);
  if (fault !== null) record.violations.push(`${id} was removed: ${fault}`);
}
