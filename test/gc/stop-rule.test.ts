// Whether a pass goes on: it waits for space that comes late, and ends if removals give nothing back.
import { describe, expect, test } from "bun:test";

import { volatileMemory } from "../../src/gc/ports.ts";
import { removeImages } from "../../src/gc/remove-images.ts";
import type { Ledger } from "../../src/model/ledger.ts";
import type { ImageLimits } from "../../src/model/limits.ts";
import type { ImageCandidate, ImageTarget, Purpose } from "../../src/model/plan.ts";
import { duration, hours, minutes, watched } from "../../src/model/time.ts";
import { rememberNothingFreed } from "../../src/policy/space/freed.ts";
import {
  aCandidate,
  aFilesystem,
  aLedger,
  anImagePlan,
  aSnapshot,
  defaultImageLimits,
  factsOf,
  MIB,
  NOW,
  spaceTarget,
} from "../support/build/values.ts";

const PATH = "/var/lib/containerd";

interface Setting {
  /** Images of 100 MiB each, as reported. */
  readonly images?: number;
  readonly wanted?: bigint;
  readonly targets?: readonly ImageTarget[];
  readonly purpose?: Purpose;
  readonly limits?: Partial<ImageLimits>;
  readonly ledger?: Partial<Ledger>;
  /** Whether the layers of all images are known. */
  readonly known?: boolean;
  readonly change?: (candidate: ImageCandidate, index: number) => ImageCandidate;
  /** What a removal frees, by its number from 0, in MiB. */
  readonly frees?: (removal: number) => number;
  /** How long after the call it is free; the call itself takes `callMs`. */
  readonly lateMs?: number;
  readonly callMs?: number;
  /** How long lists take; from a second on the pass takes the targets of that moment. */
  readonly lookMs?: number;
  /** Freed space appears with a commit, and only then. */
  readonly onCommit?: "works" | "hangs";
  /** Of each removal, at once. */
  readonly inodes?: bigint;
  /** What other programs have written by then, in MiB. */
  readonly written?: (clockMs: number) => number;
}

const inodesTarget = (wantedInodes: bigint): ImageTarget => ({
  kind: "free-inodes",
  trigger: { kind: "space" },
  device: aFilesystem().device,
  path: PATH,
  inodesFree: (aFilesystem().inodesFree ?? 0n) + wantedInodes - 1n,
  wantedInodes,
  relievedInodes: wantedInodes,
});

/** 10 GiB, of which 1,000 MiB are available. */
async function passOver(setting: Setting = {}) {
  const begun = 1_000n * MIB;
  const wanted = (setting.wanted ?? 300n) * MIB;
  const targets = setting.targets ?? [spaceTarget(begun + wanted, wanted)];
  const candidates = Array.from({ length: setting.images ?? 20 }, (_, index) => {
    const candidate = aCandidate(`i${index}`);
    const size = candidate.image.sizeBytes;
    const frees = { lowerBytes: size, estimateBytes: size, upperBytes: size };
    const whole = setting.known === true ? { ...candidate, frees, sharersKnown: true } : candidate;
    return setting.change?.(whole, index) ?? whole;
  });
  const listed = new Map(candidates.map(({ image }) => [image.id, image]));
  let clockMs = 0;
  let removals = 0;
  let commits = 0;
  const due: { atMs: number; readonly bytes: bigint }[] = [];
  const mib = (amount: number): bigint => (BigInt(Math.round(amount * 1024)) * MIB) / 1024n;
  const available = (): bigint =>
    begun +
    due.reduce((sum, { atMs, bytes }) => sum + (atMs <= clockMs ? bytes : 0n), 0n) -
    mib(setting.written?.(clockMs) ?? 0);
  const snapshot = aSnapshot({
    images: [...listed.values()],
    filesystems: [aFilesystem({ path: PATH, imageUsedBytes: null })],
  });
  const origins = new Map([...listed.keys()].map((id) => [id, { chain: null, builtAt: null }]));
  const ledger = aLedger({ watched: watched(hours(1)), ...setting.ledger, origins });
  const { outcome, freed } = await removeImages({
    plan: anImagePlan(candidates, { targets }),
    facts: {
      ...factsOf(snapshot, ledger, {
        ...defaultImageLimits,
        minimumAge: duration(0n),
        whenFutile: "collect",
        ...setting.limits,
      }),
      ...(setting.purpose && { purpose: setting.purpose }),
    },
    memory: volatileMemory(ledger),
    hold: () => ({ kind: "none" }),

    steps: { wait: (_, wait) => wait() },
    runtime: {
      imageStatus: async (id) => [...listed.values()].find((it) => it.id === id) ?? null,
    },
    writer: {
      removeImage: async (id) => {
        listed.delete(id);
        clockMs += setting.callMs ?? 10;
        const atMs = setting.onCommit === undefined ? clockMs + (setting.lateMs ?? 0) : Infinity;
        due.push({ atMs, bytes: mib(setting.frees?.(removals) ?? 100) });
        removals += 1;
      },
    },
    commit: async () => {
      commits += 1;
      if (setting.onCommit === "hangs") clockMs += 5_000;
      else for (const one of due) one.atMs = Math.min(one.atMs, clockMs);
    },
    disk: {
      measure: async () => ({
        ...aFilesystem(),
        availableBytes: available(),
        inodesFree: (aFilesystem().inodesFree ?? 0n) + (setting.inodes ?? 0n) * BigInt(removals),
        ...(setting.onCommit && { freesOnCommit: true }),
      }),
    },
    timer: {
      monotonicNs: () => BigInt(clockMs) * 1_000_000n,
      sleep: async (ms) => void (clockMs += ms),
    },
    now: () => NOW,
    retarget: async () =>
      targets.map((target) =>
        target.kind === "available-bytes"
          ? { ...target, wantedBytes: target.availableBytes - available() }
          : target,
      ),
    look: async () => {
      clockMs += setting.lookMs ?? 20;
      return {
        snapshot: { ...snapshot, images: [...listed.values()] },
        missed: new Set(),
        block: null,
      };
    },
    done: () => undefined,
    signal: new AbortController().signal,
  });
  const waitedMs = clockMs - removals * (20 + (setting.callMs ?? 10));
  const next = rememberNothingFreed(ledger, freed, minutes(5));
  return { outcome, end: outcome.end, removals, commits, waitedMs, ledger: next, available };
}

describe("space that appears late", () => {
  test("is waited for once the estimates reach the target, so that no image is removed for nothing", async () => {
    const pass = await passOver({ lateMs: 400 });
    expect(pass).toMatchObject({ end: "target-reached", removals: 3, commits: 0 });
    expect(pass.waitedMs).toBeLessThanOrEqual(500);
    expect(pass.outcome.items.map(({ result }) => result)).toMatchObject([
      { settled: "not-waited" },
      { settled: "not-waited" },
      { settled: "afterwards" },
    ]);
  });

  test("counts for the removal that was waited for, with what it freed at once", async () => {
    const { outcome } = await passOver({ lateMs: 25 });
    const last = outcome.items.at(-1)?.result;
    expect(last).toMatchObject({ settled: "afterwards", measuredBytes: 200n * MIB });
  });

  test("is waited for as long as each half second brings a MiB", async () => {
    const slow = (ms: number): number => -Math.min(300, ms / 100);
    const pass = await passOver({ frees: () => 0, known: true, written: slow });
    expect(pass).toMatchObject({ end: "target-reached", removals: 3 });
    expect(pass.waitedMs).toBeGreaterThan(29_000);
  });

  test("is waited for a minute in all, and the rest is left to the next pass", async () => {
    const slow = (ms: number): number => -ms / 500;
    const pass = await passOver({ frees: () => 0, written: slow });
    expect(pass).toMatchObject({ end: "settle-exhausted", removals: 3, waitedMs: 60_000 });
  });

  test("is not waited for again if a wait ended at the end of that minute because available space fell", async () => {
    // Three removals of 30 ms each come before it.
    const written = (ms: number): number => -ms / 500 + (ms >= 60_090 ? 50 : 0);
    const pass = await passOver({ frees: () => 0, written });
    expect(pass).toMatchObject({ end: "nothing-freed", waitedMs: 60_000 });
  });

  test("is waited for once the estimates reach the only target that is not met yet", async () => {
    const targets = [inodesTarget(1n), spaceTarget(1_300n * MIB, 300n * MIB)];
    const pass = await passOver({ lateMs: 400, targets });
    expect(pass).toMatchObject({ end: "target-reached", removals: 3 });
  });

  test("is not waited for any longer once available space falls", async () => {
    const pass = await passOver({ frees: () => 50, written: (ms) => ms / 5 });
    expect(pass).toMatchObject({ end: "own-gain-reached", removals: 7 });
    expect(pass.waitedMs).toBeLessThanOrEqual(400);
  });

  test("is not waited for again in a pass in which nothing came late: the images share layers", async () => {
    const pass = await passOver({ frees: () => 20 });
    expect(pass).toMatchObject({ end: "target-reached", removals: 15, waitedMs: 500 });
  });

  test("is waited for after a removal for age, if that should have been enough", async () => {
    const change = (candidate: ImageCandidate, index: number): ImageCandidate =>
      index < 3 ? { ...candidate, triggers: [{ kind: "age" }] } : candidate;
    expect(await passOver({ lateMs: 400, change })).toMatchObject({
      end: "target-reached",
      removals: 3,
    });
  });

  test("is not waited for after a removal for age that could not have been enough", async () => {
    const change = (candidate: ImageCandidate, index: number): ImageCandidate =>
      index < 1 ? { ...candidate, triggers: [{ kind: "age" }] } : candidate;
    expect(await passOver({ change })).toMatchObject({
      end: "target-reached",
      removals: 3,
      waitedMs: 0,
    });
  });

  const count: ImageTarget = {
    kind: "image-count",
    trigger: { kind: "count" },
    maximumImages: 10,
    wantedImages: 10,
  };
  const everything: ImageTarget = { kind: "everything", trigger: { kind: "all-unused" } };
  const late = { frees: (removal: number) => (removal % 2 === 0 ? 0 : 100), lateMs: 10 };

  test.each([
    ["a number of images", count, 10],
    ["everything unused", everything, 20],
  ] as const)("is not waited for in a pass for %s", async (_, target, removals) => {
    const pass = await passOver({ ...late, targets: [target] });
    expect(pass).toMatchObject({ removals, waitedMs: 0 });
  });
});

test("what appears while a pass waits for its lists and takes new targets belongs to the removal before", async () => {
  const pass = await passOver({ known: true, lateMs: 1_200, lookMs: 2_000, wanted: 900n });
  expect(pass).toMatchObject({ end: "target-reached", removals: 9 });
});

describe("on a filesystem that frees space with its next commit", () => {
  test("a pass asks for the commit once the estimates reach the target, and stops at the right image", async () => {
    const pass = await passOver({ onCommit: "works" });
    expect(pass).toMatchObject({ end: "target-reached", removals: 3, commits: 1, waitedMs: 0 });
    expect(pass.outcome.measuredFreedBytes).toBe(300n * MIB);
    // Until then nothing shows what each of them freed.
    expect(pass.outcome.items.map(({ result }) => result)).toMatchObject([
      { settled: "not-seen" },
      { settled: "not-seen" },
      { settled: "afterwards" },
    ]);
  });

  test("a pass whose target is met by another program asks for no commit", async () => {
    const written = (clockMs: number) => (clockMs > 20 ? -300 : 0);
    const pass = await passOver({ onCommit: "works", written });
    expect(pass).toMatchObject({ end: "target-reached", removals: 1, commits: 0 });
  });

  test("a pass goes on by what the commit showed, and asks again", async () => {
    const pass = await passOver({ onCommit: "works", frees: () => 60 });
    expect(pass).toMatchObject({ end: "target-reached", removals: 5 });
    expect(pass.commits).toBeGreaterThan(1);
    expect(pass.waitedMs).toBeLessThan(2_000);
  });

  test("known removals do not end a pass whose space a commit shows", async () => {
    const pass = await passOver({ onCommit: "works", known: true, wanted: 900n });
    expect(pass).toMatchObject({ end: "target-reached", removals: 9, commits: 3 });
  });

  test("a commit that hangs costs five seconds, and no more than a minute in all", async () => {
    const pass = await passOver({ onCommit: "hangs", known: true });
    expect(pass).toMatchObject({ end: "nothing-freed", removals: 3, commits: 1 });
    const many = await passOver({ onCommit: "hangs", frees: () => 100, images: 9 });
    expect(many.waitedMs).toBeLessThanOrEqual(60_000);
  });
});

describe("removals that give nothing back", () => {
  const nothing = { frees: () => 0 };

  test.each([
    ["three with known sharers", true, 3],
    ["ten with unknown ones", false, 10],
  ] as const)("end a pass after %s", async (_, known, removals) => {
    const pass = await passOver({ ...nothing, known });
    expect(pass).toMatchObject({ end: "nothing-freed", removals });
    expect(pass.outcome.nothingFreed).toEqual({
      filesystem: PATH,
      removals,
      estimatedBytes: BigInt(removals) * 100n * MIB,
      gainedBytes: 0n,
      isNew: true,
    });
    expect(pass.waitedMs).toBe(known ? 500 : 1_000);
    expect(pass.ledger.nothingFreed.get(PATH)).toMatchObject({ removals, pauses: 1 });
  });

  test.each<[string, Setting]>([
    ["an age", { change: (one) => ({ ...one, triggers: [{ kind: "age" }] }) }],
    ["everything unused", { targets: [{ kind: "everything", trigger: { kind: "all-unused" } }] }],
  ])("end a pass for %s too", async (_, setting) => {
    expect(await passOver({ ...nothing, known: true, ...setting })).toMatchObject({
      end: "nothing-freed",
      removals: 3,
    });
  });

  test("do not end a pass if their space comes half a second later", async () => {
    const pass = await passOver({ known: true, wanted: 900n, lateMs: 400, callMs: 1 });
    expect(pass).toMatchObject({ end: "target-reached", removals: 9 });
  });

  test("end a pass although another program writes meanwhile", async () => {
    const pass = await passOver({ ...nothing, known: true, written: (ms) => ms / 20 });
    expect(pass).toMatchObject({ end: "nothing-freed", removals: 3 });
  });

  test("are told from those before which another program deleted a file in an instant", async () => {
    const written = (clockMs: number) => (clockMs >= 10 ? -50 : 0);
    const { end, removals } = await passOver({ wanted: 600n, known: true, callMs: 130, written });
    expect({ end, removals }).toEqual({ end: "target-reached", removals: 6 });
  });

  test("are told from those whose space another program fills at once", async () => {
    const writer = { callMs: 1_000, written: (ms: number): number => ms / 10 };
    const pass = await passOver({ known: true, images: 8, ...writer });
    expect(pass).toMatchObject({ end: "candidates-exhausted", removals: 8 });
  });

  test("are counted across passes, and each pass after the pause removes one", async () => {
    const first = await passOver({ ...nothing, known: true, images: 2 });
    expect(first.end).toBe("candidates-exhausted");
    const second = await passOver({ ...nothing, known: true, ledger: first.ledger });
    expect(second).toMatchObject({ end: "nothing-freed", removals: 1 });
    const third = await passOver({ ...nothing, known: true, ledger: second.ledger });
    expect(third).toMatchObject({ end: "nothing-freed", removals: 1 });
    expect(third.outcome.nothingFreed).toMatchObject({ removals: 4, isNew: false });
    const freeing = await passOver({ known: true, ledger: third.ledger });
    expect(freeing).toMatchObject({ end: "target-reached", removals: 3 });
    expect(freeing.ledger.nothingFreed.size).toBe(0);
  });

  test("pause a filesystem once more with each pass that they end, and anew after one that gave something back", async () => {
    const first = await passOver({ ...nothing, known: true });
    const second = await passOver({ ...nothing, known: true, ledger: first.ledger });
    expect(second.ledger.nothingFreed.get(PATH)?.pauses).toBe(2);
    const once = (removal: number): number => (removal === 0 ? 100 : 0);
    const third = await passOver({ frees: once, known: true, ledger: second.ledger });
    expect(third).toMatchObject({ end: "nothing-freed", removals: 4 });
    expect(third.ledger.nothingFreed.get(PATH)).toMatchObject({ removals: 3, pauses: 1 });
  });

  test("end a removal by hand by its own count alone", async () => {
    const before = await passOver({ ...nothing, known: true });
    const purpose = { kind: "all-unused" } as const;
    const targets = [{ kind: "everything", trigger: { kind: "all-unused" } }] as const;
    const byHand = { known: true, ledger: before.ledger, purpose, targets };
    expect((await passOver({ ...byHand, ...nothing })).removals).toBe(3);
  });

  test("after the pause, an image of which nothing can be expected is the only one too", async () => {
    const { ledger } = await passOver({ ...nothing, known: true });
    const change = (candidate: ImageCandidate): ImageCandidate => ({
      ...candidate,
      frees: { lowerBytes: 0n, estimateBytes: 0n, upperBytes: 4_096n },
    });
    expect(await passOver({ ...nothing, known: true, ledger, change })).toMatchObject({
      end: "nothing-freed",
      removals: 1,
    });
  });

  test("are told from those that free inodes, in a pass for inodes", async () => {
    const pass = await passOver({
      ...nothing,
      known: true,
      inodes: 1n,
      targets: [inodesTarget(6n)],
    });
    expect(pass).toMatchObject({ end: "target-reached" });
    expect((await passOver({ ...nothing, known: true, inodes: 1n })).end).toBe("nothing-freed");
  });

  test("end no pass that adds up reported sizes", async () => {
    const limits = { accounting: "reported" } as const;
    const pass = await passOver({ ...nothing, known: true, limits, wanted: 1_500n });
    expect(pass).toMatchObject({ end: "target-reached", removals: 15, waitedMs: 0 });
  });
});
