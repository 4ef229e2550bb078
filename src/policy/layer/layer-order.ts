/**
 * The order of removal with shared layers: an image whose layers a kept image has is kept, and a base follows its last
 * child.
 */
import type { ImageId } from "../../model/ids.ts";
import type { Ledger } from "../../model/ledger.ts";
import type { ImageCandidate, ImageTarget, KeptImage, Purpose } from "../../model/plan.ts";
import type { ImageKeepReason, ImageTrigger } from "../../model/reason.ts";
import type { Image } from "../../model/snapshot.ts";
import type { ProtectionContext } from "../image/protect.ts";
import { type Gain, scaled } from "./gain.ts";
import type { LayerForest } from "./layers.ts";

export interface Choice {
  /** Those removed for their age first. */
  readonly candidates: readonly ImageCandidate[];
  readonly kept: readonly KeptImage[];
}

/** Maximum number of images named in a reason. */
const NAMED_MAX = 3;
/** Maximum number of images that a base is known to follow; beyond it, the removal of a base does not check each. */
const FOLLOWED_MAX = 256;

/**
 * Whether layers matter: not with compat kubelet or reported sizes, not if everything unused is removed, and not if
 * only the number of images counts.
 */
export const layersCount = (
  { compat, accounting }: ProtectionContext["limits"],
  purpose: Purpose,
  targets: readonly ImageTarget[],
): boolean =>
  compat === "none" &&
  accounting === "measured" &&
  purpose.kind !== "all-unused" &&
  (targets.length === 0 || targets.some(({ kind }) => kind !== "image-count"));

/**
 * Applies layers to a choice. `triggers` are those of the targets, for images that were to be removed for their age but
 * have to wait for a child.
 */
export function orderByLayers(
  choice: Choice,
  layers: Layers,
  triggers: readonly ImageTrigger[],
): Choice {
  const { forest } = layers;
  const order = basesAfterChildren(forest, choice.candidates);
  const names = new Map<ImageId, string>(
    [...choice.candidates, ...choice.kept].map(({ image }) => [image.id, nameOf(image)]),
  );
  const lastAged = order.candidates.findLastIndex(isAged);
  const firstOther = order.candidates.findIndex((one) => !isAged(one));
  const mixed = firstOther >= 0 && lastAged > firstOther;
  const ordered = mixed
    ? order.candidates.map((one, at) => (at < firstOther ? one : { ...one, triggers }))
    : order.candidates;
  const before = new Set<ImageId>();
  const candidates = withEstimates(ordered, layers).map((candidate) => {
    const { id } = candidate.image;
    const follows = forest.sharers(id, FOLLOWED_MAX).filter((one) => before.has(one));
    before.add(id);
    if (candidate.frees === undefined) return candidate;
    const tried: ImageCandidate["tried"] = [...candidate.tried, "shares-all-layers"];
    return { ...candidate, tried, ...(follows.length === 0 ? {} : { follows }) };
  });
  const staying = order.staying.map((candidate): KeptImage => {
    const { image, record, tried } = candidate;
    const reason = sharesAllLayers(forest, image.id, names);
    return { image, record, reason, tried: [...tried, reason.kind] };
  });
  return { candidates, kept: [...choice.kept, ...staying] };
}

interface Layers {
  readonly forest: LayerForest;
  readonly gain: Gain;
}

/** The same candidates in the same order, with what each removal frees after those before it. */
export function withEstimates(
  candidates: readonly ImageCandidate[],
  { forest, gain }: Layers,
): readonly ImageCandidate[] {
  const sharersKnown = forest.isComplete;
  const removals = forest.removals();
  return candidates.map((candidate) => {
    const { id } = candidate.image;
    const frees = removals.remove(id);
    const whole = forest.wholeChainOf(id);
    if (frees === null || whole === null) return candidate;
    return {
      ...candidate,
      frees: scaled(frees, gain, { sharersKnown }),
      unscaled: frees,
      sharersKnown,
      chain: whole.chain,
    };
  });
}

export interface LayerOrder<Candidate> {
  /** In the order of removal, without those that are kept. */
  readonly candidates: readonly Candidate[];
  /** Candidates whose removal would free nothing, because a kept image has all of their layers. */
  readonly staying: readonly Candidate[];
}

/**
 * Orders candidates given in the order of last use; every other image of the forest is kept. An image comes right after
 * the last of those that have all of its layers. Of several with the same layers only the last frees anything, so they
 * are removed together. Images with unknown layers keep their place.
 */
export function basesAfterChildren<Candidate extends { readonly image: { readonly id: ImageId } }>(
  forest: LayerForest,
  candidates: readonly Candidate[],
): LayerOrder<Candidate> {
  const places = new Map(candidates.map(({ image }, index) => [image.id, index]));
  const lastPlace = forest.gather(
    ({ id }) => places.get(id) ?? Number.POSITIVE_INFINITY,
    (one, other) => Math.max(one, other),
  );
  const placed = candidates.map((candidate, index) => {
    const { id } = candidate.image;
    const layers = forest.wholeChainOf(id)?.layers ?? 0;
    return { candidate, place: lastPlace(id) ?? index, layers };
  });
  return {
    staying: placed.filter(({ place }) => place === Infinity).map(({ candidate }) => candidate),
    candidates: placed
      .filter(({ place }) => place !== Infinity)
      .toSorted((a, b) => a.place - b.place || b.layers - a.layers)
      .map(({ candidate }) => candidate),
  };
}

/** The reason for an image whose layers kept images have. */
export function sharesAllLayers(
  forest: LayerForest,
  id: ImageId,
  names: ReadonlyMap<ImageId, string>,
): Extract<ImageKeepReason, { readonly kind: "shares-all-layers" }> {
  const sharers = forest.sharers(id, NAMED_MAX);
  return {
    kind: "shares-all-layers",
    images: sharers.map((one) => ({ id: one, name: names.get(one) ?? one })),
  };
}

/** Why a base is kept after all: an earlier candidate with all of its layers still exists. */
export function childStillThere(
  { follows = [] }: ImageCandidate,
  removed: ReadonlySet<ImageId>,
  listed: readonly Image[],
): ImageKeepReason | null {
  const left = new Set(follows.filter((id) => !removed.has(id)));
  if (left.size === 0) return null;
  const child = listed.find(({ id }) => left.has(id));
  if (child === undefined) return null;
  return { kind: "shares-all-layers", images: [{ id: child.id, name: nameOf(child) }] };
}

/** The candidate at its turn: an image that came after the plan may share its layers. */
export function withListed(
  candidate: ImageCandidate,
  listed: readonly Image[],
  { origins }: Pick<Ledger, "origins">,
): ImageCandidate {
  if (candidate.sharersKnown !== true || listed.every(({ id }) => origins.has(id)))
    return candidate;
  return { ...candidate, sharersKnown: false };
}

const isAged = ({ triggers }: ImageCandidate): boolean =>
  triggers.some(({ kind }) => kind === "age");

/** The display name of an image: its first tag, else its first digest, else its ID. */
export const nameOf = ({ id, repoTags, repoDigests }: Image): string =>
  repoTags.toSorted()[0] ?? repoDigests.toSorted()[0] ?? id;
