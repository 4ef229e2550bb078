/** One recorded decision of the kubelet on images, and what our own pass does with the same node. */

import { runPass } from "../../src/gc/pass.ts";
import { containerId, imageId, podUid } from "../../src/model/ids.ts";
import { type ImageOutcome, reportedOf } from "../../src/model/pass.ts";
import type { Pass } from "../../src/model/pass.ts";
import type { Container } from "../../src/model/snapshot.ts";
import { type Duration, duration, durationFromMs } from "../../src/model/time.ts";
import { ImageManager } from "../../src/policy/kubelet/image-manager.ts";
import { kubeletPolicy } from "../../src/policy/kubelet/kubelet.ts";
import { aContainer, aFilesystem, anImage, defaultLimits } from "../support/build/values.ts";
import { type FakeEngine, fakeEngine, journalOf, passRequest } from "../support/fake-engine.ts";
import { timeOf } from "./read-vectors.ts";

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
  const beganAt = uptimeAt(vector.agentStartedAt);
  const fake = fakeEngine({
    images: vector.images.map(imageOf),
    containers: vector.containers.map(containerOf),
    filesystem: aFilesystem({
      capacityBytes: BigInt(vector.filesystem.capacityBytes),
      availableBytes: BigInt(vector.filesystem.availableBytes),
    }),
    fails: new Set(refusedOf(vector)),
    // The kubelet goes by sizes; the disk it reads once more, after removals for age.
    freed: ({ sizeBytes }) => (vector.isStatFresh === true ? sizeBytes : 0n),
    wall: timeOf(vector.now),
    uptime: uptimeAt(vector.now),
    policy: kubeletPolicy(
      beganAt,
      new ImageManager(
        beganAt,
        new Map(Object.entries(vector.records).map(([id, one]) => [imageId(id), recordOf(one)])),
      ),
    ),
    limits: limitsOf(vector),
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
  const request = passRequest({ kind: "image-gc", purpose, containers: "none" });
  // The kubelet raises an event in each pass.
  const engine = { ...fake.engine, journal: journalOf(fake.world, fake) };
  return (await runPass(engine, request, new AbortController().signal)).pass;
}

/** The removals that the runtime refuses. */
export const refusedOf = ({ images }: Pick<ImageVector, "images">): readonly string[] =>
  images.filter(({ removeFails }) => removeFails).map(({ id }) => `RemoveImage ${id}`);

function outcomeOf({ images, error }: Pass): ImageEffect["outcome"] {
  if (images === null) return { kind: `no outcome: ${error}` };
  const { end, items, wantedBytes } = images;
  if (end === "invalid-capacity" || end === "age-removal-errors") return { kind: end };
  const figures = {
    freedBytes: Number(freedForTargets(images)),
    ...(wantedBytes !== null && { wantedBytes: Number(wantedBytes) }),
  };
  if (items.some((item) => item.result.kind === "failed"))
    return { kind: "removal-errors", ...figures };
  return end === "candidates-exhausted" && wantedBytes !== null
    ? { kind: "shortfall", ...figures }
    : { kind: "ok" };
}

export function limitsOf({ policy }: Pick<ImageVector, "policy">) {
  return {
    ...defaultLimits,
    images: {
      ...defaultLimits.images,
      highPercent: policy.highThresholdPercent,
      lowPercent: policy.lowThresholdPercent,
      minimumAge: durationFromMs(policy.minimumAgeMs),
      maximumAge: durationFromMs(policy.maximumAgeMs),
    },
    ledger: { ...defaultLimits.ledger, bootGrace: duration(0n) },
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
    createdAt: timeOf(one.createdAt),
  });

const recordOf = ({ firstDetected, lastUsed }: ImageVector["records"][string]) => ({
  firstDetected: uptimeAt(firstDetected),
  lastUsed: lastUsed === null ? null : uptimeAt(lastUsed),
});

/** Of a machine that runs since 1970. */
const uptimeAt = (time: string): Duration => duration(timeOf(time));

/** Reported sizes; what went for its age does not count. */
const freedForTargets = ({ items }: Pick<ImageOutcome, "items">): bigint =>
  items.reduce((sum, it) => (it.trigger.kind === "age" ? sum : sum + reportedOf(it)), 0n);
