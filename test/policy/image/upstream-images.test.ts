// The kubelet's own test cases for images, by number, as far as they concern what is remembered and decided.
// 16 and 17 as far as they are about deciding; 17's failing statistics and 23's validation belong to observation and configuration.

import { describe, expect, test } from "bun:test";

import { imageId } from "../../../src/model/ids.ts";
import { emptyLedger, type Ledger } from "../../../src/model/ledger.ts";
import type { ImageLimits } from "../../../src/model/limits.ts";
import type { ImagePlan, ImageTarget } from "../../../src/model/plan.ts";
import type { Container, Image, Snapshot } from "../../../src/model/snapshot.ts";
import { duration, type Instant, instant, minutes, seconds } from "../../../src/model/time.ts";
import { usageOf } from "../../../src/policy/image/usage.ts";
import { remember } from "../../../src/policy/remember.ts";
import {
  aContainer,
  aFilesystem,
  aSnapshot,
  defaultImageLimits,
  defaultLimits,
  factsOf,
  NOW,
} from "../../support/build/values.ts";
import { decideAlone } from "../judging.ts";

const img = (id: string | number, size: number, pinned = false): Image => ({
  id: imageId(`sha256:image-${id}`),
  repoTags: [],
  repoDigests: [],
  sizeBytes: BigInt(size),
  pinned,
});
const using = (...ids: readonly number[]): readonly Container[] =>
  ids.map((id) => aContainer(`c${id}`, { imageId: img(id, 0).id }));

/** A node of the kubelet: what it lists at an instant, and what that makes of its memory. */
class Kubelet {
  ledger: Ledger = emptyLedger;
  #snapshot: Snapshot = aSnapshot();

  detect(at: Instant, images: readonly Image[], containers: readonly Container[] = []): this {
    const clocks = { wall: at, uptime: duration(at), bootId: "boot-1" };
    // The calls take a moment, after which what is in use counts as used.
    this.#snapshot = aSnapshot({ clocks, observedAt: instant(at + 1n), images, containers });
    this.ledger = remember({
      ledger: this.ledger,
      snapshot: this.#snapshot,
      usage: usageOf(this.#snapshot),
      limits: { ...defaultLimits.memory, compat: "kubelet" },
      pods: new Map(),
    });
    return this;
  }

  record(id: number) {
    return this.ledger.images.get(img(id, 0).id);
  }

  decide(change: {
    readonly limits?: Partial<ImageLimits>;
    readonly snapshot?: Partial<Snapshot>;
    readonly startedAt?: Instant;
    readonly want?: number;
    readonly unused?: true;
  }): ImagePlan {
    const { limits, snapshot, startedAt = null, want, unused } = change;
    const asked = want === undefined ? [] : [wanting(BigInt(want))];
    return decideAlone({
      ...factsOf({ ...this.#snapshot, ...snapshot }, this.ledger, {
        ...defaultImageLimits,
        minimumAge: duration(0n),
        compat: "kubelet",
        accounting: "reported",
        whenFutile: "collect",
        ...limits,
      }),
      purpose:
        unused === true
          ? { kind: "all-unused" }
          : asked.length > 0
            ? { kind: "pressure", signals: [] }
            : { kind: "periodic" },
      pressureTargets: asked,
      startedAt,
    });
  }
}

const wanting = (wantedBytes: bigint): ImageTarget => ({
  kind: "available-bytes",
  trigger: { kind: "space" },
  device: "8:1",
  path: "/",
  availableBytes: 0n,
  wantedBytes,
  relievedBytes: 0n,
});

/** What a pass without failures removes, and what it counts as freed. */
function outcome(plan: ImagePlan) {
  const gone = plan.candidates.filter(({ expected }) => expected);
  return {
    removed: gone.map(({ image }) => image.id.replace("sha256:image-", "")),
    freed: Number(gone.reduce((sum, { image }) => sum + image.sizeBytes, 0n)),
  };
}

const Z = NOW;
const after = (span: bigint): Instant => instant(Z + span);

describe("detection", () => {
  test("1: images are first seen at the pass, and used by ID if a container has no name for them", () => {
    const node = new Kubelet().detect(Z, [img(0, 1024), img(1, 2048), img(2, 2048)], using(1, 2));
    expect(node.ledger.images.size).toBe(3);
    for (const id of [0, 1, 2]) expect(node.record(id)?.firstSeenAt).toBe(Z);
    expect(node.record(0)?.lastUsedAt).toBeNull();
    for (const id of [1, 2]) expect(node.record(id)?.lastUsedAt).toBeGreaterThan(Z);
  });

  test("2: a runtime handler is not part of an image's record", () => {
    const node = new Kubelet().detect(Z, [img(0, 1024), img(1, 1024), img(2, 1024)], using(1, 2));
    expect([0, 1, 2].map((id) => node.record(id)?.lastUsedAt !== null)).toEqual([
      false,
      true,
      true,
    ]);
  });

  test("3: a later image is first seen later, sizes are refreshed, first seen never changes", () => {
    const node = new Kubelet().detect(Z, [img(0, 1024), img(1, 2048)], using(1));
    const used = node.record(1)?.lastUsedAt ?? instant(0n);
    node.detect(after(seconds(1)), [img(0, 1024), img(1, 1024), img(2, 1024)], using(1));
    expect([0, 1, 2].map((id) => node.record(id)?.firstSeenAt)).toEqual([Z, Z, after(seconds(1))]);
    expect(node.record(0)?.lastUsedAt).toBeNull();
    expect(node.record(1)?.lastUsedAt).toBeGreaterThan(used);
    expect(node.record(1)?.sizeBytes).toBe(1024n);
  });

  test("9: an image whose container was removed keeps its last use", () => {
    const node = new Kubelet().detect(Z, [img(0, 1024), img(1, 2048)], using(1));
    const used = node.record(1)?.lastUsedAt ?? null;
    node.detect(after(seconds(1)), [img(0, 1024), img(1, 2048)]);
    expect(node.ledger.images.size).toBe(2);
    expect(node.record(1)?.lastUsedAt).toBe(used);
    expect(node.record(0)).toMatchObject({ firstSeenAt: Z, lastUsedAt: null });
  });

  test("10: records of unlisted images are dropped", () => {
    const node = new Kubelet().detect(Z, [img(0, 1024), img(1, 2048)], using(1));
    expect(node.detect(after(seconds(1)), []).ledger.images.size).toBe(0);
  });
});

describe("removing all unused images", () => {
  test("4: a pinned image is kept", () => {
    const node = new Kubelet().detect(Z, [img(0, 1024, true)]);
    expect(outcome(node.decide({ unused: true })).removed).toEqual([]);
  });

  test("5: of two entries of one ID the last one's pin counts, and it is removed once", () => {
    const node = new Kubelet().detect(Z, [img("x", 1024, true), img("x", 1024)]);
    expect(outcome(node.decide({ unused: true })).removed).toEqual(["x"]);
  });

  test("12: an image in use is kept", () => {
    const node = new Kubelet().detect(Z, [img(0, 1024), img(1, 2048), img(2, 2048)], using(2));
    expect(outcome(node.decide({ unused: true })).removed.toSorted()).toEqual(["0", "1"]);
  });

  test("13: the minimum age applies", () => {
    const images = [img(0, 1024), img(1, 2048), img(2, 2048)];
    const limits = { minimumAge: seconds(3) };
    const node = new Kubelet().detect(Z, images, using(2));
    expect(outcome(node.decide({ unused: true, limits })).removed).toEqual([]);
    node.detect(after(seconds(3)), images, using(2));
    expect(outcome(node.decide({ unused: true, limits })).removed.toSorted()).toEqual(["0", "1"]);
  });
});

describe("freeing space", () => {
  test("6: a pinned image is skipped", () => {
    const node = new Kubelet().detect(Z, [img(1, 1024, true), img(2, 1024)]);
    expect(outcome(node.decide({ want: 4096 }))).toEqual({ removed: ["2"], freed: 1024 });
  });

  test("7: two unpinned images are removed if both are needed", () => {
    const node = new Kubelet().detect(Z, [img(1, 1024), img(2, 1024)]);
    expect(outcome(node.decide({ want: 2048 })).freed).toBe(2048);
  });

  test("8: nothing is removed if all are pinned", () => {
    const node = new Kubelet().detect(Z, [img(1, 1024, true), img(2, 1024, true)]);
    expect(outcome(node.decide({ want: 2048 }))).toEqual({ removed: [], freed: 0 });
  });

  test("11: an image in use is never removed", () => {
    const node = new Kubelet().detect(Z, [img(0, 1024), img(1, 2048)], using(1));
    expect(outcome(node.decide({ want: 2048 }))).toEqual({ removed: ["0"], freed: 1024 });
  });

  test("14: the least recently used image is removed first", () => {
    const images = [img(0, 1024), img(1, 2048)];
    const node = new Kubelet()
      .detect(Z, images, using(0, 1))
      .detect(after(seconds(1)), images, using(1));
    node.detect(after(minutes(1)), images);
    expect(outcome(node.decide({ want: 1024 }))).toEqual({ removed: ["0"], freed: 1024 });
  });

  test("15: a never used image is removed first although seen later; more than needed may be freed", () => {
    const node = new Kubelet().detect(Z, [img(0, 1024)], using(0));
    node.detect(after(seconds(1)), [img(0, 1024), img(1, 2048)], using(0));
    node.detect(after(minutes(1)), [img(0, 1024), img(1, 2048)]);
    expect(outcome(node.decide({ want: 1024 }))).toEqual({ removed: ["1"], freed: 2048 });
  });

  test("20: an age equal to the minimum is eligible", () => {
    const images = [img(0, 1024), img(1, 2048)];
    const limits = { minimumAge: minutes(1) };
    const node = new Kubelet().detect(Z, images, using(1));
    expect(outcome(node.decide({ want: 1024, limits })).freed).toBe(0);
    node.detect(after(minutes(1)), images, using(1));
    expect(outcome(node.decide({ want: 1024, limits }))).toEqual({ removed: ["0"], freed: 1024 });
  });
});

describe("the periodic pass", () => {
  const limits = { highPercent: 90, lowPercent: 80 };
  const filesystem = (capacityBytes: bigint, availableBytes: bigint) => ({
    filesystems: [aFilesystem({ capacityBytes, availableBytes })],
  });

  test("16: below the thresholds nothing is done", () => {
    const plan = new Kubelet()
      .detect(Z, [img(0, 450)])
      .decide({ limits, snapshot: filesystem(1000n, 600n) });
    expect(plan).toMatchObject({ triggers: [], candidates: [], usage: [{ usedPercent: 40 }] });
  });

  test("18: the target is freed", () => {
    const plan = new Kubelet()
      .detect(Z, [img(0, 450)])
      .decide({ limits, snapshot: filesystem(1000n, 50n) });
    expect(plan.targets).toMatchObject([{ wantedBytes: 150n }]);
    expect(outcome(plan).freed).toBe(450);
  });

  test("19: too little is an error", () => {
    const gib = 1024n ** 3n;
    const snapshot = filesystem(10n * gib, gib / 2n);
    const plan = new Kubelet().detect(Z, [img(0, 500 * 1024 ** 2)]).decide({ limits, snapshot });
    expect(plan.usage).toMatchObject([{ usedPercent: 95 }]);
    expect(plan.targets).toMatchObject([{ wantedBytes: 1_610_612_736n }]);
    expect(outcome(plan).freed).toBe(524_288_000);
  });
});

describe("the maximum age", () => {
  const images = [img(0, 1024), img(1, 2048)];
  const node = new Kubelet().detect(Z, images, using(0, 1));
  const aged = (at: Instant, maximumAge: bigint) => {
    const later = new Kubelet();
    later.ledger = node.ledger;
    return outcome(
      later.detect(at, images, using(1)).decide({
        limits: { maximumAge: duration(maximumAge) },
        startedAt: Z,
        snapshot: { filesystems: [aFilesystem({ availableBytes: 90n * 1024n ** 3n })] },
      }),
    ).removed;
  };

  test("21: both of its comparisons are strict", () => {
    expect(aged(Z, minutes(1))).toEqual([]);
    expect(aged(after(minutes(1)), minutes(1))).toEqual([]);
    expect(aged(after(minutes(1) + 1n), minutes(1))).toEqual(["0"]);
  });

  test("22: 0 turns it off", () => {
    expect(aged(Z, 0n)).toEqual([]);
    expect(aged(instant(9_223_372_036_854_775_807n), 0n)).toEqual([]);
  });
});
