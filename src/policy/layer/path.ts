/** A layer at its place in the forest, and the size of its path as bounded by image sizes. */
import type { ChainId, ImageId } from "../../model/ids.ts";
import type { Bounds } from "../../model/plan.ts";
import { atLeastZero, smaller } from "../../model/values.ts";

/** An image by the chain that ends with its last layer. */
export interface LayeredImage {
  readonly id: ImageId;
  /** As the runtime reports it: compressed on some runtimes. */
  readonly sizeBytes: bigint;
  readonly chain: ChainId;
}

/** The size of an image includes its configuration and manifest, which are not layers; no real image has more. */
export const CONFIG_MAX_BYTES = 32n * 1024n;
/** A layer in its place: the path from a first layer to here. */
export interface Path {
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

export const NOTHING: Bounds = { lowerBytes: 0n, estimateBytes: 0n, upperBytes: 0n };

/** The size of an image beyond the path that it shares with others; `null`: it shares nothing. */
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

/** An image with this size and number of layers goes through the path. */
export function boundAbove(path: Path, bytes: bigint, layers: number): void {
  if (path.upperLayers > 0 && bytes >= path.upperBytes) return;
  path.upperBytes = bytes;
  path.upperLayers = layers;
}

/** Needs the parent's bounds and its own upper bound. */
export function boundBelow(path: Path): void {
  const { parent, ending } = path;
  path.lowerBytes = parent?.lowerBytes ?? 0n;
  path.baseBytes = parent?.baseBytes ?? 0n;
  path.baseLayers = parent?.baseLayers ?? 0;
  for (const { sizeBytes } of ending) {
    const layersBytes = atLeastZero(sizeBytes - CONFIG_MAX_BYTES);
    if (layersBytes > path.lowerBytes) path.lowerBytes = layersBytes;
  }
  if (ending.length === 0) return;
  path.baseBytes = path.upperBytes;
  path.baseLayers = path.layers;
}

/**
 * If no image ends here, the estimate is interpolated between the image below and the smallest one above, by the number
 * of layers. Images whose shared layers were compressed differently contradict each other; the bounds then include
 * both.
 */
export function boundsOf(path: Path): Bounds {
  const { lowerBytes, upperBytes, baseBytes, baseLayers, layers, upperLayers } = path;
  const span = BigInt(Math.max(1, upperLayers - baseLayers));
  // What goes through a path also goes through the one below it, so no base exceeds the path's own upper bound.
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
