/**
 * The layers of a node's images: which of them share how much, about what a removal frees, and how the ledger records them.
 * Images share layers by chain, so two images share their common beginning. Runtimes report the size of an image, never of a
 * layer.
 */

import type { ChainId, ImageId } from "../model/ids.ts";
import type { ImageConfig, ImageConfigRecord, LayerRun, Ledger } from "../model/ledger.ts";
import type { Image } from "../model/snapshot.ts";
import { compared } from "../model/values.ts";
import { byParts } from "./by-object.ts";

/** An image by the chain that ends with its last layer. */
export interface LayeredImage {
  readonly id: ImageId;
  /** As the runtime reports it: compressed on some runtimes. */
  readonly sizeBytes: bigint;
  readonly chain: ChainId;
}

/** Each chain with the one below its last layer; `null` for a first layer. */
export type ChainParents = ReadonlyMap<ChainId, ChainId | null>;

/** A longer chain is invalid: a record that names itself as its parent must not cause an endless loop. */
const LAYERS_MAX = 1024;

/** All layers from the first up to one of them. */
interface Chain {
  readonly below: Chain | null;
  readonly layers: number;
  /** Those that have all of these layers, smallest first. */
  readonly images: Member[];
}

interface Member extends LayeredImage {
  readonly end: Chain;
}

export class Layers {
  readonly #members = new Map<ImageId, Member>();
  readonly #chains = new Map<ChainId, Chain>();

  /** Linear in the number of layers of all images. Images without a complete chain are left out. */
  constructor(images: Iterable<LayeredImage>, parents: ChainParents) {
    const smallestFirst = [...images].toSorted(
      (one, other) =>
        compared(one.sizeBytes, other.sizeBytes) || compared<string>(one.id, other.id),
    );
    for (const image of smallestFirst) {
      const end = this.#members.has(image.id) ? null : this.#chainOf(image.chain, parents);
      if (end === null) continue;
      const member = { ...image, end };
      this.#members.set(image.id, member);
      for (const chain of downFrom(end)) chain.images.push(member);
    }
  }

  has(id: ImageId): boolean {
    return this.#members.has(id);
  }

  /** How many layers an image has; 0 if unknown. */
  depthOf(id: ImageId): number {
    return this.#members.get(id)?.end.layers ?? 0;
  }

  /** Other images that have all layers of this one. */
  builtOn(id: ImageId): readonly ImageId[] {
    const those = this.#members.get(id)?.end.images ?? [];
    return those.filter((one) => one.id !== id).map((one) => one.id);
  }

  /** For each of these images, the place of the last one that has all of its layers. */
  lastPlaces(order: readonly ImageId[]): ReadonlyMap<ImageId, number> {
    const last = new Map<Chain | undefined, number>();
    for (const [place, id] of order.entries())
      for (const chain of downFrom(this.#members.get(id)?.end ?? null)) last.set(chain, place);
    return new Map(order.map((id, place) => [id, last.get(this.#members.get(id)?.end) ?? place]));
  }

  /** What these images take by their sizes: each layer once, a shared one as large as the sizes allow. */
  sizeOf(images: Iterable<{ readonly id: ImageId; readonly sizeBytes: bigint }>): bigint {
    const largestFirst = [...images].toSorted((one, other) =>
      compared(other.sizeBytes, one.sizeBytes),
    );
    const among = new Set(largestFirst.map(({ id }) => id));
    const removals = new Removals(this.#members, among);
    return largestFirst.reduce(
      (sum, { id, sizeBytes }) => sum + (removals.removeLargest(id) ?? sizeBytes),
      0n,
    );
  }

  /** Follows a sequence of removals: what each frees depends on the earlier ones. */
  removals(): Removals {
    return new Removals(this.#members, new Set(this.#members.keys()));
  }

  /** Adds what is missing; `null` if the chain is incomplete. */
  #chainOf(id: ChainId, parents: ChainParents): Chain | null {
    const missing: ChainId[] = [];
    let below: Chain | null = null;
    for (let next: ChainId | null = id; next !== null;) {
      below = this.#chains.get(next) ?? null;
      if (below !== null) break;
      const parent = parents.get(next);
      if (parent === undefined || missing.length === LAYERS_MAX) return null;
      missing.push(next);
      next = parent;
    }
    for (const one of missing.toReversed()) {
      const layers: number = (below?.layers ?? 0) + 1;
      below = { below, layers, images: [] };
      this.#chains.set(one, below);
    }
    return below;
  }
}

function* downFrom(end: Chain | null): Generator<Chain> {
  for (let chain = end; chain !== null; chain = chain.below) yield chain;
}

/** One sequence of removals, of images that are there. */
class Removals {
  readonly #members: ReadonlyMap<ImageId, Member>;
  readonly #left: Set<ImageId>;
  /** Removed images at the front of a chain's list, so that its smallest one is found at once. */
  readonly #passed = new Map<Chain, number>();

  constructor(members: ReadonlyMap<ImageId, Member>, left: Set<ImageId>) {
    this.#members = members;
    this.#left = left;
  }

  /**
   * About what the removal frees, in reported sizes: what the image has beyond the smallest one that shares its layers as
   * far as any does; if it is itself the smallest, its own layers' share of its layers. `null` if its layers are unknown.
   */
  remove(id: ImageId): bigint | null {
    return this.#remove(
      id,
      ({ end, sizeBytes }, shared) =>
        (sizeBytes * BigInt(end.layers - shared.layers)) / BigInt(end.layers),
    );
  }

  /** The same, but 0 for an image that is itself the smallest: then the others have all that it has. */
  removeLargest(id: ImageId): bigint | null {
    return this.#remove(id, () => 0n);
  }

  #remove(id: ImageId, ofSmallest: (member: Member, shared: Chain) => bigint): bigint | null {
    const member = this.#members.get(id);
    if (member === undefined) return null;
    if (!this.#left.delete(id)) return 0n;
    for (const shared of downFrom(member.end)) {
      const smallest = this.#smallestOf(shared);
      if (smallest === null) continue;
      if (shared === member.end) return 0n;
      const beyond = member.sizeBytes - smallest.sizeBytes;
      return beyond > 0n ? beyond : ofSmallest(member, shared);
    }
    return member.sizeBytes;
  }

  #smallestOf(chain: Chain): Member | null {
    let at = this.#passed.get(chain) ?? 0;
    const isGone = (member: Member | undefined): boolean =>
      member !== undefined && !this.#left.has(member.id);
    while (isGone(chain.images[at])) at += 1;
    this.#passed.set(chain, at);
    return chain.images[at] ?? null;
  }
}

// What the ledger records: each layer once, in runs that images share

export type ImageConfigs = Pick<Ledger, "imageConfigs" | "layers">;

/** Adds what was read of new images, and drops what no listed image has; returns the same maps if nothing changed. */
export function rememberImageConfigs(
  known: ImageConfigs,
  images: Iterable<ImageId>,
  read: ReadonlyMap<ImageId, ImageConfig>,
): ImageConfigs {
  const listed = new Set(images);
  const imageConfigs = new Map([...known.imageConfigs].filter(([id]) => listed.has(id)));
  const fresh = [...read].filter(([id]) => listed.has(id) && !imageConfigs.has(id));
  const isLess = imageConfigs.size < known.imageConfigs.size;
  if (!isLess && fresh.length === 0)
    return { imageConfigs: known.imageConfigs, layers: known.layers };
  const layers = isLess ? neededRuns(known.layers, imageConfigs) : new Map(known.layers);
  const chains = new Set([...layers.values()].flatMap(({ chain }) => chain));
  for (const [id, { chain, builtAt }] of fresh) {
    imageConfigs.set(id, { chain: chain?.at(-1) ?? null, builtAt });
    if (chain !== null) addRun(layers, chains, chain);
  }
  return { imageConfigs, layers };
}

/** The layers of all images, where known; computed once for the same list and records. */
export const layersOf = (
  images: readonly Image[],
  { imageConfigs, layers: runs }: ImageConfigs,
): Layers => layersOfParts({ images, imageConfigs, runs });

const layersOfParts = byParts(({ images, imageConfigs, runs }: LayerParts): Layers => {
  const layered = images.flatMap(({ id, sizeBytes }) => {
    const chain = imageConfigs.get(id)?.chain ?? null;
    return chain === null ? [] : [{ id, sizeBytes, chain }];
  });
  const parents = new Map<ChainId, ChainId | null>();
  for (const { below, chain } of runs.values())
    chain.forEach((one, index) => parents.set(one, chain[index - 1] ?? below));
  return new Layers(layered, parents);
});

interface LayerParts {
  readonly images: readonly Image[];
  readonly imageConfigs: ImageConfigs["imageConfigs"];
  readonly runs: ImageConfigs["layers"];
}

/** Adds the layers that no run has yet: if a chain is known, so is everything below it. */
function addRun(
  layers: Map<ChainId, LayerRun>,
  chains: Set<ChainId>,
  chain: readonly ChainId[],
): void {
  const known = chain.findLastIndex((one) => chains.has(one));
  const added = chain.slice(known + 1);
  const last = added.at(-1);
  if (last === undefined) return;
  for (const one of added) chains.add(one);
  layers.set(last, { below: chain[known] ?? null, chain: added });
}

/** The runs that contain a layer of any of these images. */
function neededRuns(
  layers: ImageConfigs["layers"],
  imageConfigs: ReadonlyMap<ImageId, ImageConfigRecord>,
): Map<ChainId, LayerRun> {
  const runOf = new Map<ChainId, ChainId>();
  for (const [last, { chain }] of layers) for (const one of chain) runOf.set(one, last);
  const needed = new Set<ChainId>();
  for (const { chain } of imageConfigs.values()) {
    let at = chain;
    while (at !== null) {
      const last = runOf.get(at);
      if (last === undefined || needed.has(last)) break;
      needed.add(last);
      at = layers.get(last)?.below ?? null;
    }
  }
  return new Map([...layers].filter(([last]) => needed.has(last)));
}
