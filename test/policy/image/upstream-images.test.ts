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

describe("removing all unused images", () => {
  test("4: a pinned image is kept", () => {
    const node = new Kubelet().detect(Z, [img(0, 1024, true)]);
    expect(outcome(node.decide({ unused: true })).removed).toEqual([]);
  });
});

describe("freeing space", () => {
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
});
