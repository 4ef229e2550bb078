// The ports of an agent on a simulated node: calls take time, fail while the runtime is away, and are counted.

import { PassMemory } from "../../src/gc/pass-memory.ts";
import type { Engine } from "../../src/gc/ports.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { ImageId } from "../../src/model/ids.ts";
import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import type { Limits } from "../../src/model/limits.ts";
import type { Event, HoldState, Pass, PassKind } from "../../src/model/pass.ts";
import type { Container, KeepRules, PodDirectory, Sandbox } from "../../src/model/snapshot.ts";
import { duration } from "../../src/model/time.ts";
import { reading } from "../support/build/pods.ts";
import { fakeEngine, journalOf } from "../support/fake-engine.ts";
import type { Random } from "../support/random.ts";
import { signalIn, surrounded } from "./around.ts";
import type { Hostility } from "./hostility.ts";
import { available, filesystemOf, inodesFree, type SimNode } from "./node.ts";

/** What happens to calls, changed at will while time passes. */
export interface Weather {
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
  hold: HoldState;
  keep: KeepRules;
  limits: Limits;
  /** What `ImageFsInfo` says of the images' use. */
  told: "exact" | "none";
}

/** What an agent did and said; shared by all that run on the node one after the other. */
export class SimRecord {
  readonly events: Event[] = [];
  readonly passes: Pass[] = [];
  readonly said: string[] = [];
  runtimeCalls = 0;
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
  const { clock } = node;
  const call: Call = async (signal) => {
    record.runtimeCalls += 1;
    if (weather.latencyMs > 0) await clock.sleep(random.next() * weather.latencyMs, signal);
    if (!isAlive()) await never;
    if (signal?.aborted === true) throw new RuntimeError("cancelled", "the call was cancelled");
    if (weather.runtimeIsAway) throw new RuntimeError("unreachable", "the runtime is away");
  };
  const honest = {
    reader: surrounded(readerOf(ports), async (_, given, ask) => {
      await call(signalIn(given));
      return ask();
    }),
    writer: writerOf(ports, call),
  };
  const reader = hostility?.reader(honest.reader, record) ?? honest.reader;
  const fake = fakeEngine().engine;
  const disk = (path: string) => {
    const found = node.disks.find((one) => one.path === path);
    if (found === undefined) throw new Error(`the node has no disk at ${path}`);
    return found;
  };
  return {
    // Logs, hooks and locks have no part in a simulated life.
    ...fake,
    observe: {
      runtime: reader,
      disk: {
        filesystems: async () => {
          return node.disks.map((one) => filesystemOf(node, one, weather.told));
        },
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
        ...fake.observe.host,
        clocks: () => ({
          wall: node.wall(),
          uptime: duration(node.uptimeNs()),
          bootId: node.bootId,
        }),
        keepRules: async () => (record.keepRead = weather.keep),
        pods: async () => reading("kubelet-dir", ...node.pods),
        podDirectories: async () => (record.directories = [...node.directories.values()]),
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
    limits: () => weather.limits,
    hold: () => weather.hold,
    writer: hostility?.writer(honest.writer, (id) => noteRemoval(ports, id)) ?? honest.writer,
    passes: new PassMemory(clock),
    journal: {
      ...journalOf(record),
      passStarted: ({ kind }) => {
        record.kind = kind;
        record.surplus = 0;
        record.passStartedNs = clock.monotonicNs();
      },
      passEnded: (pass) => {
        record.kind = null;
        record.passes.push(pass);
      },
    },
  };
}

type Call = (signal?: AbortSignal) => Promise<void>;

function readerOf({ node, record, weather }: SimPorts): Engine["observe"]["runtime"] {
  return {
    // What a life asks for and never changes.
    ...fakeEngine().engine.observe.runtime,
    listImages: async () => {
      node.wentUnseen.clear();
      return [...node.images.values()].map(({ image }) => image);
    },
    listContainers: async () => (record.listed = [...node.containers.values()]),
    listSandboxes: async () => (record.listedSandboxes = [...node.sandboxes.values()]),
    containerDetail: async (id) => {
      const container = node.containers.get(id);
      if (container === undefined) return null;
      return {
        id,
        imageVolumes: [],
        state: container.state,
        labels: { "io.kubernetes.pod.uid": container.podUid },
        annotations: {},
      };
    },
    sandboxDetail: async (id) => {
      const sandbox = node.sandboxes.get(id);
      return sandbox === undefined ? null : { id, state: sandbox.state, address: "" };
    },
    imageStatus: async (reference) =>
      [...node.images.values()].find(({ image }) => image.id === reference)?.image ?? null,
    imageOrigin: async (_, signal) => {
      if (weather.layersHang) {
        await node.clock.sleep(DEADLINE_MS, signal);
        throw new RuntimeError("deadline", "ImageStatus was not answered in time");
      }
      return { chain: null, builtAt: null };
    },
  };
}

/** The deadline of a call, as configured by default. */
const DEADLINE_MS = 120_000;

function writerOf(ports: SimPorts, call: Call): Engine["writer"] {
  const { node, weather, record, random, hostility } = ports;
  return {
    removeImage: async (id) => {
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
    },
    stopContainer: () => call(),
    removeContainer: async (id) => {
      await call();
      if (node.containers.get(id)?.state === "running")
        record.violations.push(`the running container ${id} was removed`);
      node.containers.delete(id);
    },
    stopSandbox: () => call(),
    removeSandbox: async (id) => {
      await call();
      if (node.sandboxes.get(id)?.state === "ready")
        record.violations.push(`the ready sandbox ${id} was removed`);
      node.sandboxes.delete(id);
    },
    execSync: async () => 0,
  };
}

function noteRemoval({ node, record, judge }: SimPorts, id: ImageId): void {
  record.removals.push({ atNs: node.clock.monotonicNs(), id, kind: record.kind });
  const fault = judge(id);
  if (fault !== null) record.violations.push(`${id} was removed: ${fault}`);
}
