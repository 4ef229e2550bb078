// A node to judge and decide on: old unused images unless a test says otherwise.

import type { ContainerId } from "../../src/model/ids.ts";
import type { ImageRecord, Ledger } from "../../src/model/ledger.ts";
import type { ImageLimits } from "../../src/model/limits.ts";
import type { ImagePlan } from "../../src/model/plan.ts";
import type { Image, Snapshot } from "../../src/model/snapshot.ts";
import { type Duration, duration, hours, totalUptime } from "../../src/model/time.ts";
import type { Facts } from "../../src/policy/facts.ts";
import { decideImages } from "../../src/policy/image/images.ts";
import { ImageManager } from "../../src/policy/kubelet/image-manager.ts";
import {
  aLedger,
  aRecord,
  aSnapshot,
  defaultImageLimits,
  factsOf,
} from "../support/build/values.ts";

export interface Node {
  readonly images?: readonly Image[];
  /** By the image's place in the list; an old, never used one where absent. */
  readonly records?: readonly Partial<ImageRecord>[];
  readonly snapshot?: Partial<Snapshot>;
  readonly ledger?: Partial<Ledger>;
  readonly limits?: Partial<ImageLimits>;
  readonly facts?: Partial<Facts>;
  /** Containers that go before the images. */
  readonly without?: ReadonlySet<ContainerId>;
}

export const WATCHED = totalUptime(hours(1_000));

export function inputOf({
  images = [],
  records = [],
  snapshot,
  ledger,
  limits,
  facts,
}: Node): Facts {
  const known = images.map((image, at) => [image.id, aRecord(records[at])] as const);
  return {
    ...factsOf(
      aSnapshot({ images, ...snapshot }),
      aLedger({ totalUptime: WATCHED, images: new Map(known), ...ledger }),
      { ...defaultImageLimits, ...limits },
    ),
    ...facts,
  };
}

export const planOf = (node: Node): ImagePlan => decideAlone(inputOf(node), node.without);

/** Decides on the images of a node on which nothing but these containers goes before them. */
export const decideAlone = (
  facts: Facts,
  containers: ReadonlySet<ContainerId> = new Set(),
): ImagePlan => decideImages(facts, containers);

export interface KubeletNode extends Node {
  /** The uptime at which the agent began; `null`: a single command. */
  readonly beganAt?: Duration | null;
}

/** The plan of a kubelet that knows the images of the node as its ledger does, by the uptime of the machine. */
export function kubeletPlanOf({ beganAt = null, ...node }: KubeletNode): ImagePlan {
  const facts = inputOf(node);
  return kubeletOn(facts, beganAt).decide(facts, node.without ?? new Set());
}

export function kubeletOn(
  { snapshot: { clocks }, ledger: { images, totalUptime: now } }: Facts,
  beganAt: Duration | null = null,
): ImageManager {
  const at = (time: bigint): Duration => duration(clocks.uptime - (now - time));
  const records = [...images].map(([id, { firstSeenUptime, lastUsedUptime: used }]) => {
    const lastUsed = used === null ? null : at(used);
    return [id, { firstDetected: at(firstSeenUptime), lastUsed }] as const;
  });
  return new ImageManager(beganAt, new Map(records));
}

/** The word from which the ID of a candidate's image was made, by its first tag: `registry.example/WORD:v1`. */
export const words = (images: readonly { readonly image: Image }[]): readonly string[] =>
  images.map(({ image }) => image.repoTags[0]?.replace(/^.*\/|:.*$/g, "") ?? "");

/** What became of an image: the code of the reason that keeps it, or `goes`. */
export function fateOf(plan: ImagePlan, image: Image): string {
  const kept = plan.kept.find((one) => one.image.id === image.id);
  return (
    kept?.reason.kind ??
    (plan.candidates.some((one) => one.image.id === image.id) ? "goes" : "lost")
  );
}
