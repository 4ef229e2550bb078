/** A pass over images of one letter and 100 MiB each, with 1,000 MiB available, on a disk and a clock in memory. */

import { expect, test } from "bun:test";

import { type ImageExecution, removeImages } from "../../src/gc/remove-images.ts";
import type { Ledger } from "../../src/model/ledger.ts";
import type { ImageLimits } from "../../src/model/limits.ts";
import type { ImageCandidate, ImagePlan, ImageTarget } from "../../src/model/plan.ts";
import type { Image, Snapshot } from "../../src/model/snapshot.ts";
import { duration, durationFromMs, minutes } from "../../src/model/time.ts";
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
import { type FakeEngine, fakeEngine } from "./fake-engine.ts";

/** The node of a pass. */
export interface ImageWorld extends FakeEngine {
  /** What other programs have written so far, in MiB. */
  others: number;
  /** Names of images, in the order of the calls. */
  readonly removals: () => string;
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
  /** The filesystem frees in the background. */
  readonly inBackground?: boolean;
  /** What each removal frees at once, and what others take before each look from the first removal on. */
  readonly inodes?: bigint;
  readonly inodesTaken?: bigint;
  /** What other programs have written by then, in MiB. */
  readonly written?: (clockMs: number) => number;
  /** Names of images whose removal fails, is not answered, or leaves them. */
  readonly fails?: string;
  readonly silent?: string;
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
const imagesOf = (names = ""): readonly Image[] => names.split("").map((name) => anImage(name));
const nameOf = (image: Image): string => /\/(.+):/.exec(image.repoTags[0] ?? "")?.[1] ?? "";

/** The outcome of a pass, and what it asked of the runtime and of the disk. */
export async function imagePass(setting: ImagePassSetting) {
  const images = imagesOf(setting.of);
  const origins = new Map(images.map(({ id }) => [id, { chain: null, builtAt: null }]));
  const ledger = { ...(setting.facts?.ledger ?? aLedger()), origins };
  const { world, due, clockMs } = worldOf(images, ledger, setting);
  const target = BigInt(setting.to) * MIB;
  const targets = setting.targets ?? [spaceTarget(target, target - AVAILABLE)];
  const snapshot = aSnapshot({ images, filesystems: [STORE] });
  const limits = {
    ...defaultImageLimits,
    minimumAge: duration(0n),
    whenFutile: "collect",
    ...setting.limits,
  } as const;
  let [looks, commits, inodesTaken] = [0, 0, 0n];
  const plain: ImageExecution = {
    ...world.engine,
    ...world.engine.observe,
    plan: anImagePlan(candidatesOf(images, setting), { targets, ...setting.plan }),
    facts: { ...factsOf(snapshot, ledger, limits), ...setting.facts, ledger },
    steps: { wait: (_, wait) => wait() },
    commit: async () => {
      commits += 1;
      if (setting.onCommit === "hangs") world.elapse(5_000);
      else for (const one of due) one.atMs = Math.min(one.atMs, clockMs());
    },
    disk: {
      measure: async () => ({
        ...STORE,
        availableBytes: world.availableBytes(),
        inodesFree:
          (STORE.inodesFree ?? 0n) +
          (setting.inodes ?? 0n) * BigInt(world.writes.length) -
          inodesTaken,
        ...(setting.onCommit && { freesOnCommit: true }),
        ...(setting.inBackground === true && { freesInBackground: true }),
      }),
    },
    now: () => NOW,
    look: async () => {
      world.elapse(setting.lookMs ?? 0);
      setting.meanwhile?.(world);
      looks += 1;
      if (world.writes.length > 0) inodesTaken += setting.inodesTaken ?? 0n;
      const node = { ...snapshot, images: world.world.images, ...setting.node?.(looks) };
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
  const execution = { ...plain, ...setting.change?.(plain, world) };
  const { outcome, freed } = await removeImages(execution);
  const count = world.writes.length;
  return {
    ...outcome,
    removals: world.removals(),
    count,
    commits,
    waitedMs: clockMs() - count * ((setting.lookMs ?? 0) + (setting.callMs ?? 0)),
    ledger: rememberNothingFreed(execution.facts.ledger, freed, minutes(5)),
  };
}

/** What is freed is due at a time, or with the next commit. */
function worldOf(images: readonly Image[], ledger: Ledger, setting: ImagePassSetting) {
  const due: { atMs: number; readonly bytes: bigint }[] = [];
  const removals = (names?: string) => imagesOf(names).map(({ id }) => `RemoveImage ${id}`);
  const fake: FakeEngine = fakeEngine({
    images: [...images],
    ledger,
    fails: new Set(removals(setting.fails)),
    silent: new Set(removals(setting.silent)),
    ghosts: new Set(imagesOf(setting.ghosts).map(({ id }) => id)),
    writeTakes: durationFromMs(setting.callMs ?? 0),
    freed: (image) => {
      const atMs = setting.onCommit === undefined ? clockMs() + (setting.lateMs ?? 0) : Infinity;
      const bytes = mib(setting.frees?.(nameOf(image), fake.writes.length - 1) ?? 100);
      due.push({ atMs, bytes });
      return 0n;
    },
  });
  const { timer } = fake.engine;
  const startNs = timer.monotonicNs();
  const clockMs = (): number => Number(timer.monotonicNs() - startNs) / 1e6;
  const names = new Map(images.map((image) => [`RemoveImage ${image.id}`, nameOf(image)]));
  const world: ImageWorld = {
    ...fake,
    others: 0,
    removals: () => fake.writes.map((write) => names.get(write)).join(""),
    availableBytes: () =>
      AVAILABLE +
      due.reduce((sum, { atMs, bytes }) => sum + (atMs <= clockMs() ? bytes : 0n), 0n) -
      mib(world.others + (setting.written?.(clockMs()) ?? 0)),
  };
  return { world, due, clockMs };
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
