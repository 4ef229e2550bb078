// A node to judge and decide on: old unused images unless a test says otherwise.

import type { ImageRecord, Ledger } from "../../src/model/ledger.ts";
import type { ImageLimits } from "../../src/model/limits.ts";
import type { ImagePlan } from "../../src/model/plan.ts";
import type { Image, Snapshot } from "../../src/model/snapshot.ts";
import { duration, hours, watched } from "../../src/model/time.ts";
import { type DecideImages, decideImages } from "../../src/policy/image/images.ts";
import { aLedger, aRecord, aSnapshot, defaultImageLimits } from "../support/build/values.ts";

export interface Node {
  readonly images?: readonly Image[];
  /** By the image's place in the list; an old, never used one where absent. */
  readonly records?: readonly Partial<ImageRecord>[];
  readonly snapshot?: Partial<Snapshot>;
  readonly ledger?: Partial<Ledger>;
  readonly limits?: Partial<ImageLimits>;
  readonly ask?: Partial<DecideImages>;
}

export const WATCHED = watched(hours(1_000));

export function inputOf({
  images = [],
  records = [],
  snapshot,
  ledger,
  limits,
  ask,
}: Node): DecideImages {
  const known = images.map((image, at) => [image.id, aRecord(records[at])] as const);
  return {
    snapshot: aSnapshot({ images, ...snapshot }),
    ledger: aLedger({ watched: WATCHED, images: new Map(known), ...ledger }),
    limits: { ...defaultImageLimits, ...limits },
    hold: null,
    without: new Set(),
    podSource: null,
    waitedForPods: duration(0n),
    purpose: { kind: "periodic" },
    pressureTargets: [],
    startedAt: null,
    ...ask,
  };
}

export const planOf = (node: Node): ImagePlan => decideImages(inputOf(node));

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
