// Waiting for space: once per version of a runtime where nothing is known of it, and only for space on a disk.
import { describe, expect, test } from "bun:test";

import { executeImages } from "../../src/execute/image/images.ts";
import { expectedGain, settle, type SettleInput } from "../../src/execute/image/settle.ts";
import { volatileMemory } from "../../src/loop/ports.ts";
import type { ImageId } from "../../src/model/ids.ts";
import type { ReleaseRecord } from "../../src/model/ledger.ts";
import type { ImageTarget } from "../../src/model/plan.ts";
import type { RuntimeInfo } from "../../src/model/snapshot.ts";
import { duration } from "../../src/model/time.ts";
import {
  noRelease,
  releaseKey,
  spaceReleaseOf,
  TELLING_BYTES,
} from "../../src/policy/space/release.ts";
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
import { familyImages, unsharedBytes } from "../support/families.ts";
import { noCreations } from "../support/no-creations.ts";

const CONTAINERD = { name: "containerd", version: "2.1.9" };

interface Setting {
  readonly runtimeInfo?: Pick<RuntimeInfo, "name" | "version">;
  readonly release?: ReleaseRecord;
  readonly targets?: readonly ImageTarget[];
  readonly storeBytes?: bigint;
  /** A call takes so long. */
  readonly callMs?: number;
  /** Space comes this long after the call began. */
  readonly delayMs?: number;
  /** What other programs have freed by then, in bytes. */
  readonly othersFreed?: (clockMs: number) => bigint;
  readonly images?: number;
  /** What a removal frees in place of the layers that no other image has, by how many went before it. */
  readonly gains?: (removal: number) => bigint;
}

/** 40 images of 9 MiB in 4 families, of which 8 MiB are shared; 1 GiB is available. */
async function passOver(setting: Setting = {}) {
  const members = familyImages({
    families: 4,
    images: setting.images ?? 40,
    baseBytes: Number(8n * MIB),
    ownBytes: Number(MIB),
  });
  const unshared = unsharedBytes(members);
  const candidates = members.map(({ id }) => {
    const candidate = aCandidate(id);
    return { ...candidate, image: { ...candidate.image, id: id as ImageId, sizeBytes: 9n * MIB } };
  });
  const listed = new Map(candidates.map(({ image }) => [image.id, image]));
  const begun = 1_024n * MIB;
  let clockMs = 0;
  const due: { readonly atMs: number; readonly bytes: bigint }[] = [];
  const freed = (): bigint =>
    due.filter(({ atMs }) => atMs <= clockMs).reduce((sum, { bytes }) => sum + bytes, 0n);
  const timer = {
    monotonicNs: () => BigInt(clockMs) * 1_000_000n,
    sleep: async (ms: number) => void (clockMs += ms),
  };
  const targets = setting.targets ?? [spaceTarget(begun + 20n * MIB, 20n * MIB)];
  const images = [...listed.values()];
  const filesystems = [aFilesystem({ path: "/", imageUsedBytes: setting.storeBytes ?? null })];
  const about = setting.runtimeInfo ?? CONTAINERD;
  const snapshot = aSnapshot({
    images,
    filesystems,
    runtime: { ...aSnapshot().runtime, ...about },
  });
  const ledger = aLedger({
    releases: new Map([[releaseKey(about), setting.release ?? noRelease]]),
  });
  const { outcome, release } = await executeImages(
    {
      plan: anImagePlan(candidates, { targets }),
      facts: factsOf(snapshot, ledger, {
        ...defaultImageLimits,
        minimumAge: duration(0n),
        whenFutile: "collect",
      }),
      memory: volatileMemory(ledger),
      hold: () => ({ kind: "none" }),
      creations: noCreations,
      waiting: (_, wait) => wait(),
      runtime: { imageStatus: async (id) => listed.get(id as ImageId) ?? null },
      writer: {
        removeImage: async (id) => {
          listed.delete(id);
          const bytes = setting.gains?.(due.length) ?? unshared({ id });
          due.push({ atMs: clockMs + (setting.delayMs ?? 0), bytes });
          clockMs += setting.callMs ?? 0;
        },
      },
      disk: {
        measure: async () => ({
          ...aFilesystem(),
          availableBytes: begun + freed() + (setting.othersFreed?.(clockMs) ?? 0n),
        }),
      },
      timer,
      now: () => NOW,
      lists: async () => ({
        snapshot: { ...snapshot, images: [...listed.values()] },
        missed: new Set(),
      }),
      done: () => undefined,
    },
    new AbortController().signal,
  );
  const waits = outcome.items.map(({ took }) => Number(took / 1_000_000n));
  return { outcome, release, waits, clockMs, removed: outcome.items.length };
}

const countTarget: ImageTarget = {
  kind: "image-count",
  trigger: { kind: "count" },
  maximumImages: 10,
  wantedImages: 30,
};
const everything: ImageTarget = { kind: "everything", trigger: { kind: "all-unused" } };

describe("with images that share layers", () => {
  test("a runtime that frees space at once is watched for one removal and then never waited for", async () => {
    const { outcome, release, removed, clockMs } = await passOver();
    expect(outcome.end).toBe("target-reached");
    expect(removed).toBe(20);
    expect(clockMs).toBeLessThanOrEqual(5_100);
    expect(outcome.items[0]?.result).toMatchObject({ settled: "at-once" });
    expect(spaceReleaseOf(CONTAINERD, release)).toBe("immediate");
    expect(await passOver({ release })).toMatchObject({ clockMs: 0, removed: 20 });
  });

  test("CRI-O is known to free space at once, so that nothing is waited for", async () => {
    const runtimeInfo = { name: "cri-o", version: "1.37.0" };
    expect(await passOver({ runtimeInfo })).toMatchObject({ clockMs: 0, removed: 20 });
  });

  test("another program that deletes a file while the first removal is watched does not make the runtime delayed", async () => {
    const { release, outcome, clockMs } = await passOver({
      othersFreed: (ms) => (ms >= 300 ? 6n * MIB : 0n),
    });
    expect(outcome.end).toBe("target-reached");
    expect(spaceReleaseOf(CONTAINERD, release)).toBe("immediate");
    expect(clockMs).toBeLessThan(12_000);
  });

  test("a runtime that frees space two seconds later is delayed after two removals, and no image is removed in vain", async () => {
    const { release, outcome, removed } = await passOver({ delayMs: 2_000 });
    expect(outcome.end).toBe("target-reached");
    expect(removed).toBe(20);
    expect(spaceReleaseOf(CONTAINERD, release)).toBe("delayed");
  });

  test("a runtime taken for delayed becomes immediate as soon as a watched removal shows no delay", async () => {
    const release = { promptRemovals: 0, lateRemovals: 2 };
    const again = await passOver({ release });
    expect(again.outcome.end).toBe("target-reached");
    expect(again.clockMs).toBeLessThanOrEqual(5_100);
    expect(spaceReleaseOf(CONTAINERD, again.release)).toBe("immediate");
  });
});

describe("a pass that is not for space on a disk", () => {
  test.each([
    ["for the number of images", countTarget, 30],
    ["for everything unused", everything, 40],
  ] as const)(
    "%s never waits, not even for a runtime that frees space with a delay",
    async (_, target, count) => {
      for (const version of ["2.0.3", "2.1.9"]) {
        const runtimeInfo = { name: "containerd", version };
        const delayed = await passOver({ targets: [target], runtimeInfo, delayMs: 60_000 });
        expect(delayed).toMatchObject({ clockMs: 0, removed: count });
      }
    },
  );

  test("for a budget does not take a runtime for immediate because of the space of the removal before", async () => {
    const budget: ImageTarget = {
      kind: "store-bytes",
      trigger: { kind: "budget" },
      maximumBytes: 0n,
      wantedBytes: 36n * MIB,
    };
    const targets = [budget];
    const unshared = { targets, storeBytes: 36n * MIB, images: 4, callMs: 1_000 };
    const late = await passOver({ ...unshared, delayMs: 1_500 });
    expect(spaceReleaseOf(CONTAINERD, late.release)).toBe("unknown");
    const prompt = await passOver(unshared);
    expect(spaceReleaseOf(CONTAINERD, prompt.release)).toBe("immediate");
    const telling = (removal: number): bigint => (removal === 0 ? TELLING_BYTES : 9n * MIB);
    const first = await passOver({ ...unshared, gains: telling });
    expect(spaceReleaseOf(CONTAINERD, first.release)).toBe("immediate");
  });

  test("for a budget removes no more than the reported sizes require while no space has appeared", async () => {
    const storeBytes = 72n * MIB;
    const budget: ImageTarget = {
      kind: "store-bytes",
      trigger: { kind: "budget" },
      maximumBytes: 36n * MIB,
      wantedBytes: 36n * MIB,
    };
    const targets = [budget];
    const late = await passOver({ targets, storeBytes, delayMs: 60_000 });
    expect(late).toMatchObject({ clockMs: 0, removed: 4, outcome: { end: "settle-exhausted" } });
    const runtimeInfo = { name: "containerd", version: "2.0.3" };
    const known = await passOver({ targets, storeBytes, runtimeInfo, delayMs: 60_000 });
    expect(known).toMatchObject({ clockMs: 0, removed: 4, outcome: { end: "settle-exhausted" } });
    const runtime = { name: "cri-o", version: "1.37.0" };
    const gains = (removal: number): bigint => (removal < 8 ? 0n : 40n * MIB);
    const atOnce = await passOver({ targets, storeBytes, runtimeInfo: runtime, gains });
    expect(atOnce).toMatchObject({ removed: 9, outcome: { end: "target-reached" } });
    const prompt = await passOver({ targets, storeBytes });
    // 36 MiB of own layers: the shared ones stay.
    expect(prompt).toMatchObject({ clockMs: 0, outcome: { end: "target-reached" } });
    expect(prompt.removed).toBeGreaterThan(4);
  });
});

test("containerd 2.0.0 to 2.0.4 is waited for from its first removal on", async () => {
  const runtimeInfo = { name: "containerd", version: "2.0.3" };
  const { outcome, waits, removed } = await passOver({ runtimeInfo, delayMs: 1_500 });
  expect(outcome.end).toBe("target-reached");
  expect(removed).toBe(20);
  expect(Math.min(...waits.slice(0, 19))).toBeGreaterThanOrEqual(1_500);
  expect(Math.max(...waits)).toBeLessThan(3_000);
});

test("a delayed runtime is waited for a minute in one pass, and the rest is left to the next", async () => {
  const runtimeInfo = { name: "containerd", version: "2.0.3" };
  const { outcome, clockMs, removed } = await passOver({ runtimeInfo, delayMs: 600_000 });
  expect(outcome.end).toBe("settle-exhausted");
  expect(removed).toBe(12);
  expect(clockMs).toBeLessThanOrEqual(60_100);
  expect(outcome.items[0]?.result).toMatchObject({ settled: "not-seen" });
});

test("the last wait of that minute is cut to what is left of it", async () => {
  const runtimeInfo = { name: "containerd", version: "2.0.3" };
  const gains = (removal: number): bigint => (removal === 0 ? MIB : 0n);
  const { clockMs } = await passOver({ runtimeInfo, delayMs: 1_500, gains });
  expect(clockMs).toBe(60_000);
});

test("a removal that was watched in vain owes nothing: what is there at once after it proves the runtime immediate", async () => {
  const { release } = await passOver({ gains: (removal) => (removal === 0 ? 0n : 9n * MIB) });
  expect(spaceReleaseOf(CONTAINERD, release)).toBe("immediate");
});

test("a runtime that shows no delay in the last seconds of that minute is not waited for, and the pass continues", async () => {
  const release = { promptRemovals: 0, lateRemovals: 2 };
  const telling = (removal: number): bigint => (removal < 11 ? 0n : MIB);
  const late = await passOver({ release, gains: telling });
  expect(late.clockMs).toBe(60_000);
  expect(late.outcome.end).toBe("target-reached");
  expect(spaceReleaseOf(CONTAINERD, late.release)).toBe("immediate");
});

describe("the watch of one removal", () => {
  const KIB = 1_024n;

  /** 8 MiB are expected; what is there by the clock comes from `seen`. */
  async function watched(seen: (clockMs: number) => bigint, change: Partial<SettleInput> = {}) {
    let clockMs = 0;
    return settle(
      {
        release: "unknown",
        signsBefore: 0,
        reportedBytes: 16n * MIB,
        expectedGainBytes: 8n * MIB,
        mayWait: true,
        budgetMs: 60_000,
        gainedBytes: seen(0),
        measure: async () => seen(clockMs),
        timer: {
          monotonicNs: () => BigInt(clockMs) * 1_000_000n,
          sleep: async (ms: number) => void (clockMs += ms),
        },
        ...change,
      },
      new AbortController().signal,
    );
  }

  test("ends as soon as immediate and later space together are enough", async () => {
    const settling = await watched((ms) => (ms < 300 ? 5n * MIB : 9n * MIB));
    expect(settling).toMatchObject({ settled: "afterwards", sign: "more-followed" });
    expect(settling.waitedMs).toBeLessThan(600);
  });

  test("ends as soon as the later space is enough, although others write meanwhile", async () => {
    const settling = await watched((ms) => (ms < 300 ? -20n * MIB : -12n * MIB));
    expect(settling).toMatchObject({ settled: "afterwards", sign: "more-followed" });
    expect(settling.waitedMs).toBeLessThan(600);
  });

  test("counts from the lowest free space since, if another program writes before the space appears", async () => {
    const settling = await watched((ms) => (ms < 300 ? 0n : ms < 1_000 ? -5n * MIB : -4n * MIB));
    expect(settling).toMatchObject({ settled: "afterwards", sign: "more-followed" });
  });

  test("continues while only a small part appeared, and ends a second after a significant one", async () => {
    const small = await watched((ms) => (ms < 300 ? 0n : 100n * KIB));
    expect(small).toMatchObject({ sign: "more-followed", waitedMs: 5_000 });
    const telling = await watched((ms) => (ms < 300 ? 0n : MIB));
    expect(telling.sign).toBe("more-followed");
    expect(telling.waitedMs).toBeGreaterThanOrEqual(1_300);
    expect(telling.waitedMs).toBeLessThan(2_000);
  });

  const whole = { waitedMs: 5_000 };
  test.each([
    ["all of it at once is enough", [8n * MIB, 8n * MIB], { sign: "there-at-once", waitedMs: 0 }],
    [
      "all of it with a telling rise is enough",
      [7n * MIB, 8n * MIB],
      { settled: "afterwards", waitedMs: 20 },
    ],
    [
      "all of it without a telling rise is not",
      [8n * MIB - 1n, 8n * MIB],
      { sign: "none-followed", ...whole },
    ],
    [
      "a rise that just tells has followed",
      [0n, TELLING_BYTES],
      { sign: "more-followed", ...whole },
    ],
    [
      "what just tells was there",
      [TELLING_BYTES, TELLING_BYTES],
      { sign: "none-followed", ...whole },
    ],
  ] as const)("knows to the byte that %s", async (_, [atOnce, after], expected) => {
    expect(await watched((ms) => (ms === 0 ? atOnce : after))).toMatchObject(expected);
  });

  test("takes for telling, however little is expected, no less than can be told from other programs", async () => {
    const little = { expectedGainBytes: 2n * TELLING_BYTES };
    const settling = await watched((ms) => (ms < 300 ? 0n : TELLING_BYTES - 1n), little);
    expect(settling).toMatchObject({ sign: "nothing-seen", ...whole });
  });

  test("is shorter for a runtime that has shown a sign of being immediate", async () => {
    expect(await watched(() => 0n)).toMatchObject({ sign: "nothing-seen", waitedMs: 5_000 });
    expect(await watched(() => 0n, { signsBefore: 1 })).toMatchObject({
      sign: "nothing-seen",
      waitedMs: 2_000,
    });
  });

  test("teaches nothing about the runtime if the pass has too little time left for it", async () => {
    const settling = await watched(() => 0n, { budgetMs: 3_000 });
    expect(settling).toEqual({ settled: "at-once", sign: null, waitedMs: 3_000 });
  });

  test("is skipped for less space than other programs' noise", async () => {
    const little = { expectedGainBytes: 64n * KIB - 1n };
    expect(await watched(() => 0n, little)).toMatchObject({ settled: "not-waited", sign: null });
    const first = { expectedGainBytes: 64n * KIB };
    expect(await watched(() => 0n, first)).toMatchObject({ waitedMs: 5_000 });
  });

  test("takes three quarters of the bytes expected from layers as all of them, and teaches nothing without layers", () => {
    const frees = { lowerBytes: 80n * MIB, estimateBytes: 90n * MIB, upperBytes: 100n * MIB };
    expect(expectedGain(aCandidate("a", { frees }))).toBe(60n * MIB);
    expect(expectedGain(aCandidate("a"))).toBeNull();
  });
});
