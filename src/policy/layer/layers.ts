/**
 * Predicts what a removal frees. Images share layers by chain: two images share their common prefix, so all images
 * together are a forest of chains. The runtime does not report the size of a layer, but the size of an image is the sum
 * along its path, which bounds every point of the forest.
 */
import type { ChainId, ImageId } from "../../model/ids.ts";
import type { Bounds } from "../../model/plan.ts";
import type { ChainLayer } from "../../model/reports.ts";
import { atLeastZero, smaller } from "../../model/values.ts";

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
/** The size of an image includes its configuration and manifest, which are not layers; no real image has more. */
const CONFIG_MAX_BYTES = 32n * 1024n;

export const NOTHING: Bounds = { lowerBytes: 0n, estimateBytes: 0n, upperBytes: 0n };

export const plus = (one: Bounds, other: Bounds): Bounds => ({
  lowerBytes: one.lowerBytes + other.lowerBytes,
  estimateBytes: one.estimateBytes + other.estimateBytes,
  upperBytes: one.upperBytes + other.upperBytes,
});

/** A layer in its place: the path from a first layer to here. */
interface Path {
  readonly chain: ChainId;
  readonly parent: Path | null;
  readonly layers: number;
  /** Images that end here. */
  readonly ending: LayeredImage[];
  readonly children: Path[];
  /** The bounds of the size of all layers up to here. */
  lowerBytes: bigint;
  upperBytes: bigint;
  /** The number of layers of the image that gave `upperBytes`; 0: none has yet. */
  upperLayers: number;
  /** The nearest image that ends here or earlier on the path: its size and number of layers. */
  baseBytes: bigint;
  baseLayers: number;
}

interface LayerRemovals {
  /** What the removal of this image frees after the earlier ones; `null` if its layers are unknown. */
  readonly remove: (id: ImageId) => Bounds | null;
}

/** All images of a node by their layers. */
export class LayerForest {
  readonly #paths = new Map<ChainId, Path>();
  readonly #leaves = new Map<ImageId, Path>();

  /** Whether the layers of all images on the node are known, so that no other image can share any of them. */
  readonly isComplete: boolean;

  /**
   * Linear in the number of distinct layers. Images listed twice count once; those without a complete chain are left
   * out. `others`: whether the node has images whose layers are unknown.
   */
  constructor(images: Iterable<LayeredImage>, parents: ChainParents, others = false) {
    let isComplete = !others;
    for (const image of images) {
      if (this.#leaves.has(image.id)) continue;
      const leaf = this.#pathTo(image.chain, parents);
      if (leaf === null) isComplete = false;
      else {
        leaf.ending.push(image);
        this.#leaves.set(image.id, leaf);
      }
    }
    this.isComplete = isComplete;
    const paths = [...this.#paths.values()];
    for (const path of paths.toReversed()) boundAbove(path);
    for (const path of paths) boundBelow(path);
  }

  has(id: ImageId): boolean {
    return this.#leaves.has(id);
  }

  /** Images that count and whose layers include all layers of this one, up to `most` of them; empty if the image is unknown. */
  sharers(id: ImageId, most: number, counts?: (sharer: ImageId) => boolean): readonly ImageId[] {
    const found: ImageId[] = [];
    for (const image of imagesThrough(this.#leaves.get(id))) {
      if (found.length === most) break;
      if (image.id !== id && counts?.(image.id) !== false) found.push(image.id);
    }
    return found;
  }

  /** Size and sharing along an image's chain, from its first layer to its last; `null` if its layers are unknown. */
  chainOf(id: ImageId): readonly ChainLayer[] | null {
    const leaf = this.#leaves.get(id);
    if (leaf === undefined) return null;
    const layers: ChainLayer[] = [];
    for (let path: Path | null = leaf; path !== null; path = path.parent)
      layers.push({
        chain: path.chain,
        through: [...imagesThrough(path)].length,
        path: boundsOf(path),
      });
    return layers.toReversed();
  }

  /** The layers of an image, from its first to its last, with their estimated sizes; `null` if they are unknown. */
  layersOf(id: ImageId): readonly { readonly chain: ChainId; readonly sizeBytes: bigint }[] | null {
    const layers: { readonly chain: ChainId; readonly sizeBytes: bigint }[] = [];
    for (let path = this.#leaves.get(id) ?? null; path !== null; path = path.parent) {
      const below = path.parent === null ? 0n : boundsOf(path.parent).estimateBytes;
      const sizeBytes = atLeastZero(boundsOf(path).estimateBytes - below);
      layers.push({ chain: path.chain, sizeBytes });
    }
    return layers.length === 0 ? null : layers.toReversed();
  }

  /**
   * Combines a figure of each image along its path: the result for a path is `combine` of the figures of all images
   * that end at it or pass through it. One walk over the forest answers any number of questions.
   */
  gather<Figure>(
    figureOf: (image: LayeredImage) => Figure,
    combine: (one: Figure, other: Figure) => Figure,
  ): (id: ImageId) => Figure | undefined {
    const figures = new Map<Path | undefined, Figure>();
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
    return (id) => figures.get(this.#leaves.get(id));
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
      if (leaf === null || path !== leaf) sum = plus(sum, sizeAbove(sizeBytes, path));
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

  /** Follows a sequence of removals: what each frees depends on the earlier ones. */
  removals(): LayerRemovals {
    const removed = new Set<ImageId>();
    /** Remaining images by path: those that end at it, and its children that are still needed. */
    const needed = new Map<Path, number>();
    const remove = (id: ImageId): Bounds | null => {
      const leaf = this.#leaves.get(id);
      const image = leaf?.ending.find((one) => one.id === id);
      if (leaf === undefined || image === undefined) return null;
      if (removed.has(id)) return NOTHING;
      removed.add(id);
      let path: Path | null = leaf;
      while (path !== null) {
        const left: number = (needed.get(path) ?? path.ending.length + path.children.length) - 1;
        needed.set(path, left);
        if (left > 0) break;
        path = path.parent;
      }
      // Others have all of its layers, so only its configuration is freed.
      return path === leaf
        ? { ...NOTHING, upperBytes: smaller(CONFIG_MAX_BYTES, image.sizeBytes) }
        : sizeAbove(image.sizeBytes, path);
    };
    return { remove };
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
}

/** A path is at most as large as the smallest image that goes through it. Needs the bounds of its children. */
function boundAbove(path: Path): void {
  const through = [
    ...path.ending.map(({ sizeBytes }) => ({ upperBytes: sizeBytes, upperLayers: path.layers })),
    ...path.children,
  ];
  for (const { upperBytes, upperLayers } of through) {
    if (path.upperLayers > 0 && upperBytes >= path.upperBytes) continue;
    path.upperBytes = upperBytes;
    path.upperLayers = upperLayers;
  }
}

/** A path is at least as large as the largest image that ends on it. Needs its parent's bounds and its upper bound. */
function boundBelow(path: Path): void {
  const { parent, ending } = path;
  path.lowerBytes = parent?.lowerBytes ?? 0n;
  for (const { sizeBytes } of ending) {
    const layersBytes = sizeBytes - CONFIG_MAX_BYTES;
    if (layersBytes > path.lowerBytes) path.lowerBytes = layersBytes;
  }
  path.baseBytes = ending.length > 0 ? path.upperBytes : (parent?.baseBytes ?? 0n);
  path.baseLayers = ending.length > 0 ? path.layers : (parent?.baseLayers ?? 0);
}

/** The size of an image beyond the path that it shares with others; `null`: it shares nothing. */
function sizeAbove(sizeBytes: bigint, path: Path | null): Bounds {
  const left = path === null ? NOTHING : boundsOf(path);
  return {
    lowerBytes: atLeastZero(sizeBytes - left.upperBytes),
    estimateBytes: atLeastZero(sizeBytes - left.estimateBytes),
    upperBytes: atLeastZero(sizeBytes - left.lowerBytes),
  };
}

/**
 * If no image ends here, the estimate is interpolated between the image below and the smallest one above, by the number
 * of layers. Images whose shared layers were compressed differently contradict each other; the bounds then include
 * both.
 */
function boundsOf(path: Path): Bounds {
  const { lowerBytes, upperBytes, baseBytes, baseLayers, layers, upperLayers } = path;
  const span = BigInt(Math.max(1, upperLayers - baseLayers));
  // What goes through a path also goes through the one below it, so no base exceeds the path's own upper bound.
  const share = upperBytes - baseBytes;
  const estimateBytes = baseBytes + (share * BigInt(layers - baseLayers)) / span;
  const lower = smaller(lowerBytes, upperBytes);
  const upper = lowerBytes > upperBytes ? lowerBytes : upperBytes;
  const inside = smaller(estimateBytes, upper);
  return {
    lowerBytes: lower,
    estimateBytes: inside < lower ? lower : inside,
    upperBytes: upper,
  };
}

function* imagesThrough(path: Path | undefined): Iterable<LayeredImage> {
  const open = path === undefined ? [] : [path];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    yield* next.ending;
    open.push(...next.children);
  }
}
