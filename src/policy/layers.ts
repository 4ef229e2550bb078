/**
 * The layers of a node's images: which of them share how much, and about what a removal frees. Images share layers by
 * chain, so two images share their common beginning. Runtimes report the size of an image, never of a layer.
 */

import type { ChainId, ImageId } from "../model/ids.ts";
import { compared } from "../model/values.ts";

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

  /** Whether one of these images has all layers of another one. */
  coveredBy(ids: Iterable<ImageId>): (id: ImageId) => boolean {
    const covered = new Set<Chain | undefined>();
    for (const id of ids)
      for (const chain of downFrom(this.#members.get(id)?.end ?? null)) covered.add(chain);
    return (id) => covered.has(this.#members.get(id)?.end);
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

  /** The same, but where an image is itself the smallest, the others have as much as it has. */
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
