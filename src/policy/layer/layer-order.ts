/**
 * The order of removal with shared layers: an image whose layers a kept image has is kept, and a base follows its last
 * child.
 */
import type { ImageId } from "../../model/ids.ts";
import type { Ledger } from "../../model/ledger.ts";
import type { ImageLimits } from "../../model/limits.ts";
import type { ImageCandidate, KeptImage, Purpose } from "../../model/plan.ts";
import type { ImageKeepReason, ImageTrigger } from "../../model/reason.ts";
import type { Image } from "../../model/snapshot.ts";
import { type Gain, scaled } from "../space/freed.ts";
import type { LayerForest } from "./layers.ts";

export interface Choice {
  /** Those removed for their age first. */
  readonly candidates: readonly ImageCandidate[];
  readonly kept: readonly KeptImage[];
}

interface Layers {
  readonly forest: LayerForest;
  readonly gain: Gain;
}

/** Maximum number of images named in a reason. */
const NAMED_MAX = 3;
/** Maximum number of images that a base is known to follow; beyond it, the removal of a base does not check each. */
const FOLLOWED_MAX = 256;

/**
 * Whether layers matter: not with compat kubelet or reported sizes, and not if everything unused is removed.
 */
export const layersCount = (
  { compat, accounting }: Pick<ImageLimits, "compat" | "accounting">,
  purpose: Purpose,
): boolean => compat === "none" && accounting === "measured" && purpose.kind !== "all-unused";

/**
 * Applies layers to a choice, whose candidates are in the order of last use. An image comes right after the last of
 * those that have all of its layers. Of several with the same layers only the last frees anything, so they are removed
 * together. Images with unknown layers keep their place. `triggers` are those of the targets, for images that were to be
 * removed for their age but have to wait for a child.
 */
export function orderByLayers(
  choice: Choice,
  layers: Layers,
  triggers: readonly ImageTrigger[],
): Choice {
  const { forest } = layers;
  const places = new Map(choice.candidates.map(({ image }, index) => [image.id, index]));
  const lastPlace = forest.gather(({ id }) => places.get(id) ?? Infinity, Math.max);
  const placed = choice.candidates.map((candidate, index) => {
    const { id } = candidate.image;
    const depth = forest.wholeChainOf(id)?.layers ?? 0;
    const place = lastPlace(id) ?? index;
    return { candidate, place: place === Infinity && isAged(candidate) ? index : place, depth };
  });
  // A kept image has all layers of these, so their removal would free nothing. An aged image is removed anyway.
  const staying = placed.filter(({ place }) => place === Infinity);
  const ordered = placed
    .filter(({ place }) => place !== Infinity)
    .toSorted((one, other) => one.place - other.place || other.depth - one.depth)
    .map(({ candidate }) => candidate);
  const firstOther = ordered.findIndex((one) => !isAged(one));
  const aligned = ordered.map((one, at) =>
    firstOther >= 0 && at > firstOther && isAged(one) ? { ...one, triggers } : one,
  );
  const before = new Set<ImageId>();
  const candidates = withEstimates(aligned, layers).map((candidate) => {
    const { id } = candidate.image;
    const follows = forest.sharers(id, FOLLOWED_MAX).filter((one) => before.has(one));
    before.add(id);
    if (candidate.frees === undefined) return candidate;
    const tried: ImageCandidate["tried"] = [...candidate.tried, "shares-all-layers"];
    return { ...candidate, tried, ...(follows.length === 0 ? {} : { follows }) };
  });
  const names = new Map<ImageId, string>(
    [...choice.candidates, ...choice.kept].map(({ image }) => [image.id, nameOf(image)]),
  );
  const kept = staying.map(({ candidate: { image, record, tried } }): KeptImage => {
    const sharers = forest.sharers(image.id, NAMED_MAX, (id) => !before.has(id));
    const reason = {
      kind: "shares-all-layers" as const,
      images: sharers.map((id) => ({ id, name: names.get(id) ?? id })),
    };
    return { image, record, reason, tried: [...tried, reason.kind] };
  });
  return { candidates, kept: [...choice.kept, ...kept] };
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
    const unscaled = removals.remove(id);
    const whole = forest.wholeChainOf(id);
    if (unscaled === null || whole === null) return candidate;
    const frees = scaled(unscaled, gain, { sharersKnown });
    return { ...candidate, frees, unscaled, sharersKnown, chain: whole.chain };
  });
}

/** Why a base is kept after all: an earlier candidate with all of its layers still exists. */
export function childStillThere(
  { follows = [] }: ImageCandidate,
  removed: ReadonlySet<ImageId>,
  listed: readonly Image[],
): ImageKeepReason | null {
  const left = new Set(follows.filter((id) => !removed.has(id)));
  const child = left.size === 0 ? undefined : listed.find(({ id }) => left.has(id));
  return child === undefined
    ? null
    : { kind: "shares-all-layers", images: [{ id: child.id, name: nameOf(child) }] };
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
