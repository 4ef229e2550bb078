/** A layer at its place in the forest, and the size of its path as bounded by image sizes. */
import type { ChainId, ImageId } from "../../model/ids.ts";
import type { Bounds } from "../../model/plan.ts";

/** An image by the chain that ends with its last layer. */
export interface LayeredImage {
  readonly id: ImageId;
  /** As the runtime reports it: compressed on some runtimes. */
  readonly sizeBytes: bigint;
  readonly chain: ChainId;
}

/** What the layers up to a chain were seen to take where no image ends: an estimate, within the bounds that sizes give. */
export type PathSizes = ReadonlyMap<ChainId, bigint>;

/** The size of an image counts its configuration and manifest, which are not layers; what real images have at most. */
export const CONFIG_MAX_BYTES = 32n * 1024n;
/** A layer in its place: the path from a first layer to here. */
export interface Path {
  readonly chain: ChainId;
  readonly parent: Path | null;
  readonly layers: number;
  /** Images that end here. */
  readonly ending: LayeredImage[];
  readonly children: Path[];
  /** Layers from the first to here take at least and at most this much. */
  lowerBytes: bigint;
  upperBytes: bigint;
  /** Layers of the image that gave `upperBytes`; 0: none has yet. */
  upperLayers: number;
  /** What the nearest image that ends at or above takes, and how many layers it has. */
  baseBytes: bigint;
  baseLayers: number;
}

export const NOTHING: Bounds = { lowerBytes: 0n, estimateBytes: 0n, upperBytes: 0n };

/** What an image takes beside the path that others have in common with it; `null`: it shares nothing. */
export function above(sizeBytes: bigint, path: Path | null): Bounds {
  const left = path === null ? NOTHING : boundsOf(path);
  return {
    lowerBytes: atLeastZero(sizeBytes - left.upperBytes),
    estimateBytes: atLeastZero(sizeBytes - left.estimateBytes),
    upperBytes: atLeastZero(sizeBytes - left.lowerBytes),
  };
}

export const plus = (one: Bounds, other: Bounds): Bounds => ({
  lowerBytes: one.lowerBytes + other.lowerBytes,
  estimateBytes: one.estimateBytes + other.estimateBytes,
  upperBytes: one.upperBytes + other.upperBytes,
});

/** An image of these bytes and layers goes through the path. */
export function boundAbove(path: Path, bytes: bigint, layers: number): void {
  if (path.upperLayers > 0 && bytes >= path.upperBytes) return;
  path.upperBytes = bytes;
  path.upperLayers = layers;
}

/** Needs the parent's bounds and its own upper bound. */
export function boundBelow(path: Path, learned: PathSizes): void {
  const { parent, ending } = path;
  path.lowerBytes = parent?.lowerBytes ?? 0n;
  path.baseBytes = parent?.baseBytes ?? 0n;
  path.baseLayers = parent?.baseLayers ?? 0;
  for (const { sizeBytes } of ending) {
    const layersBytes = atLeastZero(sizeBytes - CONFIG_MAX_BYTES);
    if (layersBytes > path.lowerBytes) path.lowerBytes = layersBytes;
  }
  const known = ending.length === 0 ? learned.get(path.chain) : path.upperBytes;
  if (known === undefined) return;
  path.baseBytes = smaller(known > path.lowerBytes ? known : path.lowerBytes, path.upperBytes);
  path.baseLayers = path.layers;
}

/**
 * Where no image ends, the estimate lies between the image below and the smallest one above, by the number of layers. Images
 * whose shared layers were compressed differently contradict each other: the bounds then hold both.
 */
export function boundsOf(path: Path): Bounds {
  const { lowerBytes, upperBytes, baseBytes, baseLayers, layers, upperLayers } = path;
  const span = BigInt(Math.max(1, upperLayers - baseLayers));
  // What goes through a path goes through the one below it: no base is above the path's own upper bound.
  const share = upperBytes - baseBytes;
  const estimateBytes = baseBytes + (share * BigInt(layers - baseLayers)) / span;
  return ordered({ lowerBytes, estimateBytes, upperBytes });
}

function ordered({ lowerBytes, estimateBytes, upperBytes }: Bounds): Bounds {
  const lower = smaller(lowerBytes, upperBytes);
  const upper = lowerBytes > upperBytes ? lowerBytes : upperBytes;
  const inside = smaller(estimateBytes, upper);
  return {
    lowerBytes: lower,
    estimateBytes: inside < lower ? lower : inside,
    upperBytes: upper,
  };
}

export function imagesThrough(path: Path): number {
  let count = 0;
  const open: Path[] = [path];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    count += next.ending.length;
    open.push(...next.children);
  }
  return count;
}

export const smaller = (one: bigint, other: bigint): bigint => (one < other ? one : other);
export const atLeastZero = (bytes: bigint): bigint => (bytes > 0n ? bytes : 0n);
