/**
 * Predicts what a removal frees. Images share layers by chain: two images share their common prefix, so all images
 * together are a forest of chains. The runtime does not report the size of a layer, but the size of an image is the sum
 * along its path, which bounds every point of the forest.
 */
import type { ChainLayer } from "../../model/disk-usage.ts";
import type { ChainId, ImageId } from "../../model/ids.ts";
import type { Bounds } from "../../model/plan.ts";
import { smaller } from "../../model/values.ts";
import {
  above,
  boundAbove,
  boundBelow,
  boundsOf,
  CONFIG_MAX_BYTES,
  imagesThrough,
  type LayeredImage,
  NOTHING,
  type Path,
  plus,
} from "./path.ts";

/** Each chain with the one below its last layer; `null` for a first layer. */
export type ChainParents = ReadonlyMap<ChainId, ChainId | null>;

/** A longer chain is invalid: a record that names itself as its parent must not cause an endless loop. */
const LAYERS_MAX = 1024;

/** All images of a node by their layers. */
export class LayerForest {
  readonly #paths = new Map<ChainId, Path>();
  readonly #leaves = new Map<ImageId, Path>();
  readonly #images = new Map<ImageId, LayeredImage>();

  /** Whether the layers of all images on the node are known, so that no other image can share any of them. */
  readonly isComplete: boolean;

  /**
   * Linear in the number of distinct layers. Images listed twice count once; those without a complete chain are left
   * out. `others`: whether the node has images whose layers are unknown.
   */
  constructor(images: Iterable<LayeredImage>, parents: ChainParents, others = false) {
    let isComplete = !others;
    for (const image of images) {
      this.#insert(image, parents);
      isComplete &&= this.#leaves.has(image.id);
    }
    this.isComplete = isComplete;
    this.#bound();
  }

  has(id: ImageId): boolean {
    return this.#leaves.has(id);
  }

  /** Images whose layers include all layers of this one, up to `most` of them; empty if the image is unknown. */
  sharers(id: ImageId, most: number): readonly ImageId[] {
    const leaf = this.#leaves.get(id);
    if (leaf === undefined) return [];
    const found: ImageId[] = [];
    const open: Path[] = [leaf];
    for (let path = open.pop(); path !== undefined && found.length < most; path = open.pop()) {
      for (const image of path.ending)
        if (image.id !== id && found.length < most) found.push(image.id);
      open.push(...path.children);
    }
    return found;
  }

  /** Size and sharing along an image's chain, from its first layer to its last; `null` if its layers are unknown. */
  chainOf(id: ImageId): readonly ChainLayer[] | null {
    const leaf = this.#leaves.get(id);
    if (leaf === undefined) return null;
    const layers: ChainLayer[] = [];
    for (let path: Path | null = leaf; path !== null; path = path.parent)
      layers.push({ chain: path.chain, through: imagesThrough(path), path: boundsOf(path) });
    return layers.toReversed();
  }

  /**
   * Combines a figure of each image along its path: the result for a path is `combine` of the figures of all images
   * that end at it or pass through it. One walk over the forest answers any number of questions.
   */
  gather<Figure>(
    figureOf: (image: LayeredImage) => Figure,
    combine: (one: Figure, other: Figure) => Figure,
  ): (id: ImageId) => Figure | undefined {
    const figures = new Map<Path, Figure>();
    const add = (path: Path, figure: Figure): void => {
      const before = figures.get(path);
      figures.set(path, before === undefined ? figure : combine(before, figure));
    };
    // Children were inserted after their parents.
    for (const path of [...this.#paths.values()].toReversed()) {
      for (const image of path.ending) add(path, figureOf(image));
      const figure = figures.get(path);
      if (path.parent !== null && figure !== undefined) add(path.parent, figure);
    }
    return (id) => {
      const leaf = this.#leaves.get(id);
      return leaf === undefined ? undefined : figures.get(leaf);
    };
  }

  /** The total size of these images, each layer once; images with unknown layers count with their size. */
  union(images: Iterable<{ readonly id: ImageId; readonly sizeBytes: bigint }>): Bounds {
    const covered = new Set<Path>();
    let sum = NOTHING;
    for (const { id, sizeBytes } of images) {
      const leaf = this.#leaves.get(id) ?? null;
      let path = leaf;
      while (path !== null && !covered.has(path)) {
        covered.add(path);
        path = path.parent;
      }
      if (leaf === null || path !== leaf) sum = plus(sum, above(sizeBytes, path));
    }
    return sum;
  }

  /** The first layer of an image's chain, which its whole family has; `null` if its layers are unknown. */
  familyOf(id: ImageId): ChainId | null {
    let path = this.#leaves.get(id) ?? null;
    while (path !== null && path.parent !== null) path = path.parent;
    return path?.chain ?? null;
  }

  /** The chain of all layers of an image, and their number; `null` if unknown. */
  wholeChainOf(id: ImageId): { readonly chain: ChainId; readonly layers: number } | null {
    return this.#leaves.get(id) ?? null;
  }

  removals(): LayerRemovals {
    return new Removals(this.#leaves, this.#images);
  }

  #insert(image: LayeredImage, parents: ChainParents): void {
    if (this.#leaves.has(image.id)) return;
    const leaf = this.#pathTo(image.chain, parents);
    if (leaf === null) return;
    leaf.ending.push(image);
    this.#leaves.set(image.id, leaf);
    this.#images.set(image.id, image);
  }

  /** Adds what is missing of the path; `null` if the chain is incomplete. */
  #pathTo(chain: ChainId, parents: ChainParents): Path | null {
    const missing: ChainId[] = [];
    let next: ChainId | null = chain;
    let path = this.#paths.get(chain) ?? null;
    while (path === null && next !== null) {
      const below = parents.get(next);
      if (below === undefined || missing.length === LAYERS_MAX) return null;
      missing.push(next);
      next = below;
      if (next !== null) path = this.#paths.get(next) ?? null;
    }
    for (const one of missing.toReversed()) path = this.#add(one, path);
    return path;
  }

  #add(chain: ChainId, parent: Path | null): Path {
    const path: Path = {
      chain,
      parent,
      layers: (parent?.layers ?? 0) + 1,
      ending: [],
      children: [],
      lowerBytes: 0n,
      upperBytes: 0n,
      upperLayers: 0,
      baseBytes: 0n,
      baseLayers: 0,
    };
    parent?.children.push(path);
    this.#paths.set(chain, path);
    return path;
  }

  /**
   * A path is at least as large as the largest image that ends on it, and at most as large as the smallest image that
   * goes through it.
   */
  #bound(): void {
    const paths = [...this.#paths.values()];
    for (const path of paths.toReversed()) {
      for (const { sizeBytes } of path.ending) boundAbove(path, sizeBytes, path.layers);
      for (const child of path.children) boundAbove(path, child.upperBytes, child.upperLayers);
    }
    for (const path of paths) boundBelow(path);
  }
}

/** Follows a sequence of removals: what each frees depends on the earlier ones. */
export interface LayerRemovals {
  /** What the removal of this image frees after the earlier ones; `null` if its layers are unknown. */
  remove(id: ImageId): Bounds | null;
}

class Removals implements LayerRemovals {
  readonly #leaves: ReadonlyMap<ImageId, Path>;
  readonly #images: ReadonlyMap<ImageId, LayeredImage>;
  readonly #removed = new Set<ImageId>();
  /** Remaining images by path: those that end at it, and its children that are still needed. */
  readonly #needed = new Map<Path, number>();

  constructor(leaves: ReadonlyMap<ImageId, Path>, images: ReadonlyMap<ImageId, LayeredImage>) {
    this.#leaves = leaves;
    this.#images = images;
  }

  remove(id: ImageId): Bounds | null {
    const leaf = this.#leaves.get(id);
    const image = this.#images.get(id);
    if (leaf === undefined || image === undefined) return null;
    if (this.#removed.has(id)) return NOTHING;
    this.#removed.add(id);
    let path: Path | null = leaf;
    while (path !== null && this.#release(path) === 0) path = path.parent;
    // Others have all of its layers, so only its configuration is freed.
    return path === leaf
      ? { ...NOTHING, upperBytes: smaller(CONFIG_MAX_BYTES, image.sizeBytes) }
      : above(image.sizeBytes, path);
  }

  /** Decrements the number of users of the path, and returns it. */
  #release(path: Path): number {
    const before = this.#needed.get(path) ?? path.ending.length + path.children.length;
    this.#needed.set(path, before - 1);
    return before - 1;
  }
}
