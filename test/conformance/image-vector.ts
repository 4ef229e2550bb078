/** One recorded decision of the kubelet on images, and what our own pass does with the same node. */

import { runPass } from "../../src/gc/pass.ts";
import { containerId, imageId, podUid } from "../../src/model/ids.ts";
import type { ImageRecord } from "../../src/model/ledger.ts";
import type { ImageOutcome } from "../../src/model/outcome.ts";
import type { Pass } from "../../src/model/pass.ts";
import type { Container } from "../../src/model/snapshot.ts";
import {
  durationFromMs,
  fromRfc3339,
  type Instant,
  instant,
  since,
  watched,
} from "../../src/model/time.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aRecord,
  defaultLimits,
} from "../support/build/values.ts";
import { type FakeEngine, fakeEngine, passRequest } from "../support/fake-engine.ts";

export interface ImageVector {
  readonly name: string;
  readonly operation: "image-gc" | "delete-unused-images";
  readonly now: string;
  readonly agentStartedAt: string;
  readonly policy: {
    readonly highThresholdPercent: number;
    readonly lowThresholdPercent: number;
    readonly minimumAgeMs: number;
    readonly maximumAgeMs: number;
  };
  readonly filesystem: { readonly capacityBytes: number; readonly availableBytes: number };
  /** Whether the disk shows at once what was removed; by default it stays as it is. */
  readonly isStatFresh?: boolean;
  readonly images: readonly {
    readonly id: string;
    readonly repoTags: readonly string[];
    readonly repoDigests: readonly string[];
    readonly sizeBytes: number;
    readonly pinned: boolean;
    readonly removeFails?: boolean;
  }[];
  readonly containers: readonly {
    readonly id: string;
    readonly name: string;
    readonly podUid: string;
    readonly state: string;
    readonly createdAt: string;
    readonly image: string;
    readonly imageId: string;
    readonly imageRef: string;
  }[];
  readonly records: Readonly<
    Record<string, { readonly firstDetected: string; readonly lastUsed: string | null }>
  >;
  readonly expect: ImageEffect;
}

export interface ImageEffect {
  /** Every RemoveImage call in order, failed ones too. */
  readonly removeAttempts: readonly string[];
  readonly outcome: {
    readonly kind: string;
    readonly wantedBytes?: number;
    readonly freedBytes?: number;
  };
  readonly events: readonly string[];
}

/** Runs one pass as `--compat kubelet` does, through the code of `gc` and `run`, on a node in memory. */
export async function effectOf(vector: ImageVector): Promise<ImageEffect> {
  const fake = fakeEngine({
    images: vector.images.map(imageOf),
    containers: vector.containers.map(containerOf),
    filesystem: aFilesystem({
      capacityBytes: BigInt(vector.filesystem.capacityBytes),
      availableBytes: BigInt(vector.filesystem.availableBytes),
    }),
    refuses: new Set(vector.images.filter((one) => one.removeFails === true).map((one) => one.id)),
    // The kubelet goes by sizes; the disk it reads once more, after removals for age.
    freed: ({ sizeBytes }) => (vector.isStatFresh === true ? sizeBytes : 0n),
    wall: time(vector.now),
    startedAt: time(vector.agentStartedAt),
    limits: limitsOf(vector),
    // What was observed is what the agent has run for: the first look at this node is the pass.
    ledger: aLedger({
      observedAt: null,
      watched: watched(since(time(vector.now), time(vector.agentStartedAt))),
      images: new Map(
        Object.entries(vector.records).map(([id, record]) => [
          imageId(id),
          recordOf(record, time(vector.agentStartedAt)),
        ]),
      ),
    }),
  });
  const pass = await imagePass(fake, vector.operation);
  return {
    removeAttempts: fake.writes.map((write) => write.replace("RemoveImage ", "")),
    outcome: outcomeOf(pass),
    events: fake.events.map((event) => event.reason),
  };
}

/** The pass of the agent over images. */
export async function imagePass(
  fake: FakeEngine,
  operation: ImageVector["operation"],
): Promise<Pass> {
  const purpose = { kind: operation === "image-gc" ? "periodic" : "all-unused" } as const;
  const request = passRequest(fake, { kind: "image-gc", purpose, containers: "none" });
  return (await runPass(fake.engine, request, new AbortController().signal)).pass;
}

function outcomeOf(pass: Pass): ImageEffect["outcome"] {
  const { images } = pass;
  if (images === null) return { kind: `no outcome: ${pass.error}` };
  if (images.end === "invalid-capacity") return { kind: "invalid-capacity" };
  if (images.end === "age-removal-errors") return { kind: "age-removal-errors" };
  if (images.items.some((item) => item.result.kind === "failed")) {
    return {
      kind: "removal-errors",
      freedBytes: Number(images.reportedFreedBytes),
      ...wantedOf(images),
    };
  }
  if (images.end === "candidates-exhausted" && images.wantedBytes !== null) {
    return {
      kind: "shortfall",
      ...wantedOf(images),
      freedBytes: Number(images.reportedFreedBytes),
    };
  }
  return { kind: "ok" };
}

const wantedOf = ({ wantedBytes }: ImageOutcome): { readonly wantedBytes?: number } =>
  wantedBytes === null ? {} : { wantedBytes: Number(wantedBytes) };

export function limitsOf({ policy }: Pick<ImageVector, "policy">) {
  return {
    ...defaultLimits,
    images: {
      ...defaultLimits.images,
      highPercent: policy.highThresholdPercent,
      lowPercent: policy.lowThresholdPercent,
      minimumAge: durationFromMs(policy.minimumAgeMs),
      maximumAge: durationFromMs(policy.maximumAgeMs),
      whenFutile: "collect" as const,
      accounting: "reported" as const,
      compat: "kubelet" as const,
    },
    memory: { ...defaultLimits.memory, compat: "kubelet" as const },
  };
}

export const imageOf = ({ id, repoTags, repoDigests, ...one }: ImageVector["images"][number]) =>
  anImage(id, {
    id: imageId(id),
    repoTags,
    repoDigests,
    sizeBytes: BigInt(one.sizeBytes),
    pinned: one.pinned,
  });

export const containerOf = (one: ImageVector["containers"][number]): Container =>
  aContainer(one.name, {
    id: containerId(one.id),
    podUid: podUid(one.podUid),
    imageName: one.image,
    imageRef: one.imageRef,
    imageId: one.imageId,
    state: one.state.toLowerCase() as Container["state"],
    createdAt: time(one.createdAt),
  });

function recordOf(record: ImageVector["records"][string], start: Instant): ImageRecord {
  const { firstDetected, lastUsed } = record;
  return aRecord({
    firstSeenAt: time(firstDetected),
    firstSeenWatched: watched(since(time(firstDetected), start)),
    lastUsedAt: lastUsed === null ? null : time(lastUsed),
    lastUsedWatched: lastUsed === null ? null : watched(since(time(lastUsed), start)),
    sizeBytes: 0n,
  });
}

function time(text: string): Instant {
  const at = fromRfc3339(text);
  if (at === null) throw new Error(`${text} is no time`);
  return instant(at);
}
