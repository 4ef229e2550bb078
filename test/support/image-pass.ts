/** A pass over images of one letter and 100 MiB each, with 1,000 MiB available, on a disk and a clock in memory. */

import { expect, test } from "bun:test";

import { volatileMemory } from "../../src/gc/ports.ts";
import { type ImageExecution, removeImages } from "../../src/gc/remove-images.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { ImageId } from "../../src/model/ids.ts";
import type { ImageLimits } from "../../src/model/limits.ts";
import type { ImageCandidate, ImagePlan, ImageTarget } from "../../src/model/plan.ts";
import type { Image, Snapshot } from "../../src/model/snapshot.ts";
import { duration, minutes } from "../../src/model/time.ts";
import type { Facts } from "../../src/policy/facts.ts";
import { rememberNothingFreed } from "../../src/policy/space/freed.ts";
import {
  aCandidate,
  aFilesystem,
  aLedger,
  anImage,
  anImagePlan,
  aSnapshot,
  defaultImageLimits,
  factsOf,
  MIB,
  NOW,
  spaceTarget,
} from "./build/values.ts";

export interface ImageWorld {
  listed: Map<ImageId, Image>;
  clockMs: number;
  /** What other programs have written so far, in MiB. */
  others: number;
  /** Names of images, in the order of the calls. */
  removals: string;
  readonly availableBytes: () => bigint;
}

export interface ImagePassSetting {
  /** How much is to be available, in MiB, and the names of the images. */
  readonly to: number;
  readonly of: string;
  /** What a removal really frees, in MiB. */
  readonly frees?: (name: string, removal: number) => number;
  /** How long after the call it is free; the call itself takes `callMs`, and a look at the node `lookMs`. */
  readonly lateMs?: number;
  readonly callMs?: number;
  readonly lookMs?: number;
  /** Freed space appears with a commit, and only then. */
  readonly onCommit?: "works" | "hangs";
  /** What each removal frees at once, and what others take before each look from the first removal on. */
  readonly inodes?: bigint;
  readonly inodesTaken?: bigint;
  /** What other programs have written by then, in MiB. */
  readonly written?: (clockMs: number) => number;
  readonly fails?: string;
  /** What those that fail fail with. */
  readonly failure?: RuntimeError;
  readonly ghosts?: string;
  /** Before each look. */
  readonly meanwhile?: (world: ImageWorld) => void;
  /** What the node lists beside the images, or in place of them, at each look from 1. */
  readonly node?: (look: number) => Partial<Snapshot>;
  /** So many candidates go for their age, whatever the disk says. */
  readonly aged?: number;
  /** The layers of these images are known; and whether those of all others are, which may share them. */
  readonly known?: boolean;
  readonly candidates?: (candidate: ImageCandidate, index: number) => ImageCandidate;
  readonly targets?: readonly ImageTarget[];
  readonly plan?: Partial<ImagePlan>;
  readonly limits?: Partial<ImageLimits>;
  readonly facts?: Partial<Facts>;
  /** The pass takes new targets, as one under pressure does. */
  readonly retargets?: boolean;
  /** Changes of what executes the plan. */
  readonly change?: (execution: ImageExecution, world: ImageWorld) => Partial<ImageExecution>;
}

export const STORE = aFilesystem({ imageUsedBytes: null });
const AVAILABLE = 1_000n * MIB;
const mib = (amount: number): bigint => BigInt(Math.round(amount * Number(MIB)));
const nameOf = (image: Image): string => /\/(.+):/.exec(image.repoTags[0] ?? "")?.[1] ?? "";

interface Disk {
  readonly due: { atMs: number; readonly bytes: bigint }[];
  commits: number;
  inodesTaken: bigint;
}

/** The outcome of a pass, and what it asked of the runtime and of the disk. */
export async function imagePass(setting: ImagePassSetting) {
  const disk: Disk = { due: [], commits: 0, inodesTaken: 0n };
  const world: ImageWorld = {
    listed: new Map(setting.of.split("").map((name) => [anImage(name).id, anImage(name)])),
    clockMs: 0,
    others: 0,
    removals: "",
    availableBytes: () =>
      AVAILABLE +
      disk.due.reduce((sum, { atMs, bytes }) => sum + (atMs <= world.clockMs ? bytes : 0n), 0n) -
      mib(world.others + (setting.written?.(world.clockMs) ?? 0)),
  };
  const execution = executionOf(world, disk, setting);
  const { outcome, freed } = await removeImages(execution);
  const { memory, facts } = execution;
  const { removals, clockMs } = world;
  const eachMs = (setting.lookMs ?? 0) + (setting.callMs ?? 0);
  return {
    ...outcome,
    removals,
    count: removals.length,
    commits: disk.commits,
    waitedMs: clockMs - removals.length * eachMs,
    memory,
    ledger: rememberNothingFreed(facts.ledger, freed, minutes(5)),
  };
}

function executionOf(world: ImageWorld, disk: Disk, setting: ImagePassSetting): ImageExecution {
  const images = (): readonly Image[] => [...world.listed.values()];
  const target = BigInt(setting.to) * MIB;
  const targets = setting.targets ?? [spaceTarget(target, target - AVAILABLE)];
  const origins = new Map(
    [...world.listed.keys()].map((id) => [id, { chain: null, builtAt: null }]),
  );
  const ledger = { ...(setting.facts?.ledger ?? aLedger()), origins };
  const snapshot = aSnapshot({ images: images(), filesystems: [STORE] });
  const limits = {
    ...defaultImageLimits,
    minimumAge: duration(0n),
    whenFutile: "collect",
    ...setting.limits,
  } as const;
  let looks = 0;
  const execution: ImageExecution = {
    plan: anImagePlan(candidatesOf(images(), setting), { targets, ...setting.plan }),
    facts: { ...factsOf(snapshot, ledger, limits), ...setting.facts, ledger },
    runtime: { imageStatus: async (id) => images().find((image) => image.id === id) ?? null },
    memory: volatileMemory(ledger),
    hold: () => ({ kind: "none" }),
    steps: { wait: (_, wait) => wait() },
    writer: { removeImage: async (id) => removeImage(id, world, disk, setting) },
    commit: async () => {
      disk.commits += 1;
      if (setting.onCommit === "hangs") world.clockMs += 5_000;
      else for (const one of disk.due) one.atMs = Math.min(one.atMs, world.clockMs);
    },
    disk: {
      measure: async () => ({
        ...STORE,
        availableBytes: world.availableBytes(),
        inodesFree:
          (STORE.inodesFree ?? 0n) +
          (setting.inodes ?? 0n) * BigInt(world.removals.length) -
          disk.inodesTaken,
        ...(setting.onCommit && { freesOnCommit: true }),
      }),
    },
    timer: {
      monotonicNs: () => BigInt(world.clockMs) * 1_000_000n,
      sleep: async (ms) => void (world.clockMs += ms),
    },
    now: () => NOW,
    look: async () => {
      world.clockMs += setting.lookMs ?? 0;
      setting.meanwhile?.(world);
      looks += 1;
      if (world.removals !== "") disk.inodesTaken += setting.inodesTaken ?? 0n;
      const node = { ...snapshot, images: images(), ...setting.node?.(looks) };
      return { snapshot: node, missed: new Set(), block: null };
    },
    done: () => undefined,
    signal: new AbortController().signal,
    ...(setting.retargets === true && {
      retarget: async () =>
        targets.map((one) =>
          one.kind === "available-bytes"
            ? { ...one, wantedBytes: one.availableBytes - world.availableBytes() }
            : one,
        ),
    }),
  };
  return { ...execution, ...setting.change?.(execution, world) };
}

function candidatesOf(
  images: readonly Image[],
  { known, candidates, aged = 0 }: ImagePassSetting,
): readonly ImageCandidate[] {
  return images.map((image, index) => {
    const { sizeBytes: size } = image;
    const frees = { lowerBytes: size, estimateBytes: size, upperBytes: size };
    const candidate = aCandidate(nameOf(image), {
      ...(known !== undefined && { frees, sharersKnown: known }),
      ...(index < aged && { triggers: [{ kind: "age" }] }),
    });
    return candidates?.(candidate, index) ?? candidate;
  });
}

function removeImage(id: ImageId, world: ImageWorld, disk: Disk, setting: ImagePassSetting): void {
  const name = nameOf(world.listed.get(id) ?? anImage(""));
  const removal = world.removals.length;
  world.removals += name;
  world.clockMs += setting.callMs ?? 0;
  if (setting.fails?.includes(name) === true)
    throw setting.failure ?? new RuntimeError("failed", "device is busy");
  if (setting.ghosts?.includes(name) === true) return;
  world.listed.delete(id);
  const atMs = setting.onCommit === undefined ? world.clockMs + (setting.lateMs ?? 0) : Infinity;
  disk.due.push({ atMs, bytes: mib(setting.frees?.(name, removal) ?? 100) });
}

type Expected = Omit<Partial<Awaited<ReturnType<typeof imagePass>>>, "items"> & {
  readonly items?: readonly object[];
};

/** Each row is a test: its claim, the setting, and what comes of it. */
export function claimsOf<Setting>(
  pass: (setting: Setting) => ReturnType<typeof imagePass>,
  rows: readonly (readonly [claim: string, setting: Setting, expected: Expected])[],
): void {
  test.each([...rows])("%s", async (_, setting, expected) => {
    expect(await pass(setting)).toMatchObject(expected);
  });
}
