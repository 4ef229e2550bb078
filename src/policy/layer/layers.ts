/**
 * What a removal frees, known before it is made. Images share layers by chain: what two images share is their common prefix,
 * so all images together are a forest of chains. A layer's own size is not reported; the size of an image is the sum along its
 * path, which bounds every point of the forest.
 */
import type { ChainLayer } from "../../model/disk-usage.ts";
import type { ChainId, ImageId } from "../../model/ids.ts";
import type { Bounds } from "../../model/plan.ts";
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
  type PathSizes,
  plus,
  smaller,
} from "./path.ts";

/** Each chain with the one below its last layer; `null` for a first layer. */
export type ChainParents = ReadonlyMap<ChainId, ChainId | null>;

/** A chain of more is no chain of layers: a record that names itself as its parent must not hold anything up. */
const LAYERS_MAX = 1024;

/** All images of a node by their layers. */
export class LayerForest {
  readonly #paths = new Map<ChainId, Path>();
  readonly #leaves = new Map<ImageId, Path>();
  readonly #images = new Map<ImageId, LayeredImage>();

  /** Linear in the distinct layers. Images that are listed twice count once; those whose chain is not known whole are left out. */
  constructor(
    images: Iterable<LayeredImage>,
    parents: ChainParents,
    learned: PathSizes = new Map(),
  ) {
    for (const image of images) this.#insert(image, parents);
    this.#bound(learned);
  }

  has(id: ImageId): boolean {
    return this.#leaves.has(id);
  }

  /** Images whose layers include all layers of this one, up to `most` of them; empty where the image is not known. */
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

  /** Size and sharing along an image's chain, from its first layer to its last; `null` where its layers are not known. */
  chainOf(id: ImageId): readonly ChainLayer[] | null {
    const leaf = this.#leaves.get(id);
    if (leaf === undefined) return null;
    const layers: ChainLayer[] = [];
    for (let path: Path | null = leaf; path !== null; path = path.parent)
      layers.push({ chain: path.chain, through: imagesThrough(path), path: boundsOf(path) });
    return layers.toReversed();
  }

  /**
   * Sums a figure of each image up to all paths that the image's chain goes through: for a path, `combine` of the figures of
   * the images that end at it or below it. One walk over the forest, for any number of questions about it.
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

  /** What these images take together, each layer once; images whose layers are not known count with their size. */
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

  /** The first layer of an image's chain, which all of its family have; `null` where its layers are not known. */
  familyOf(id: ImageId): ChainId | null {
    let path = this.#leaves.get(id) ?? null;
    while (path !== null && path.parent !== null) path = path.parent;
    return path?.chain ?? null;
  }

  /** The chain of all layers of an image, and how many they are; `null` where they are not known. */
  wholeChainOf(id: ImageId): { readonly chain: ChainId; readonly layers: number } | null {
    return this.#leaves.get(id) ?? null;
  }

  /** The removals of a pass, one after another. */
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

  /** Adds what is missing of the path; `null`: the chain is not known whole. */
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

  /** A path is not smaller than the largest image that ends on it, and not larger than the smallest image that goes through it. */
  #bound(learned: PathSizes): void {
    const paths = [...this.#paths.values()];
    for (const path of paths.toReversed()) {
      for (const { sizeBytes } of path.ending) boundAbove(path, sizeBytes, path.layers);
      for (const child of path.children) boundAbove(path, child.upperBytes, child.upperLayers);
    }
    for (const path of paths) boundBelow(path, learned);
  }
}

/** Follows a sequence of removals: what each frees depends on what went before. */
export interface LayerRemovals {
  /** What the removal of this image frees, given those before it; `null` where its layers are not known. */
  remove(id: ImageId): Freed | null;
}

export interface Freed extends Bounds {
  /** The chain of the layers that it leaves to other images; `null`: none. */
  readonly leaves: ChainId | null;
}

class Removals implements LayerRemovals {
  readonly #leaves: ReadonlyMap<ImageId, Path>;
  readonly #images: ReadonlyMap<ImageId, LayeredImage>;
  readonly #removed = new Set<ImageId>();
  /** Images that are still there, by path: those that end at it, and its children that are still needed. */
  readonly #needed = new Map<Path, number>();

  constructor(leaves: ReadonlyMap<ImageId, Path>, images: ReadonlyMap<ImageId, LayeredImage>) {
    this.#leaves = leaves;
    this.#images = images;
  }

  remove(id: ImageId): Freed | null {
    const leaf = this.#leaves.get(id);
    const image = this.#images.get(id);
    if (leaf === undefined || image === undefined) return null;
    if (this.#removed.has(id)) return { ...NOTHING, leaves: leaf.chain };
    this.#removed.add(id);
    let path: Path | null = leaf;
    while (path !== null && this.#release(path) === 0) path = path.parent;
    // Others have all of its layers: only its configuration goes.
    const freed =
      path === leaf
        ? { ...NOTHING, upperBytes: smaller(CONFIG_MAX_BYTES, image.sizeBytes) }
        : above(image.sizeBytes, path);
    return { ...freed, leaves: path?.chain ?? null };
  }

  /** One fewer needs the path; returns how many still do. */
  #release(path: Path): number {
    const before = this.#needed.get(path) ?? path.ending.length + path.children.length;
    this.#needed.set(path, before - 1);
    return before - 1;
  }
}
