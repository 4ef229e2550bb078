/** The recorded layers of images: each layer once, in runs that images share. */
import type { ChainId, ImageId } from "../../model/ids.ts";
import type { LayerRun, Ledger, OriginRecord } from "../../model/ledger.ts";
import type { Image, ImageOrigin } from "../../model/snapshot.ts";
import { unlistedImages } from "../image/image-index.ts";
import { type ChainParents, LayerForest } from "./layers.ts";

export type Origins = Pick<Ledger, "origins" | "layers">;

/** Adds what was read of new images, and drops what no listed image has; returns the same maps if nothing changed. */
export function rememberOrigins(
  { origins: knownOrigins, layers: knownLayers }: Origins,
  images: readonly Pick<Image, "id">[],
  read: ReadonlyMap<ImageId, ImageOrigin>,
): Origins {
  const gone = unlistedImages({ known: knownOrigins, listed: images });
  const listed = read.size === 0 ? null : new Set(images.map(({ id }) => id));
  const fresh = [...read].filter(([id]) => listed?.has(id) === true && !knownOrigins.has(id));
  if (gone.length === 0 && fresh.length === 0)
    return { origins: knownOrigins, layers: knownLayers };
  const origins = new Map(knownOrigins);
  for (const id of gone) origins.delete(id);
  const layers = gone.length === 0 ? new Map(knownLayers) : neededRuns(knownLayers, origins);
  const there = new Map<ChainId, ChainId>();
  for (const run of layers.values()) for (const chain of run.chain) there.set(chain, chain);
  for (const [id, { chain, builtAt }] of fresh) {
    origins.set(id, { chain: chain === null ? null : addRun(layers, there, chain), builtAt });
  }
  return { origins, layers };
}

const forests = new WeakMap<
  readonly Image[],
  { readonly origins: Origins["origins"]; readonly forest: LayerForest }
>();

/** The forest of all images with known layers; computed once for the same list and records. */
export function forestOf(images: readonly Image[], { origins, layers }: Origins): LayerForest {
  const made = forests.get(images);
  if (made?.origins === origins) return made.forest;
  const layered = images.flatMap(({ id, sizeBytes }) => {
    const chain = origins.get(id)?.chain ?? null;
    return chain === null ? [] : [{ id, sizeBytes, chain }];
  });
  // One whose status named no layers, such as an artifact, shares none.
  const others = images.some(({ id }) => !origins.has(id));
  const forest = new LayerForest(layered, chainParents(layers), others);
  forests.set(images, { origins, forest });
  return forest;
}

const parentsOf = new WeakMap<Origins["layers"], ChainParents>();

/** Computed once for the same runs. */
function chainParents(layers: Origins["layers"]): ChainParents {
  const made = parentsOf.get(layers);
  if (made !== undefined) return made;
  const parents = new Map<ChainId, ChainId | null>();
  for (const { below, chain } of layers.values()) {
    let parent = below;
    for (const one of chain) {
      parents.set(one, parent);
      parent = one;
    }
  }
  parentsOf.set(layers, parents);
  return parents;
}

/** Adds the layers that no run has yet, reusing known strings; returns the last chain. */
function addRun(
  layers: Map<ChainId, LayerRun>,
  there: Map<ChainId, ChainId>,
  chain: readonly ChainId[],
): ChainId | null {
  const last = chain[chain.length - 1];
  if (last === undefined) return null;
  // If a chain is known, so is everything below it.
  const known = chain.findLastIndex((one) => there.has(one));
  const below = there.get(chain[known] ?? last) ?? null;
  const added = chain.slice(known + 1);
  if (added.length === 0) return below;
  for (const one of added) there.set(one, one);
  layers.set(last, { below, chain: added });
  return last;
}

/** The runs that contain a layer of any of these images. */
function neededRuns(
  layers: Origins["layers"],
  origins: ReadonlyMap<ImageId, OriginRecord>,
): Map<ChainId, LayerRun> {
  const runOf = new Map<ChainId, ChainId>();
  for (const [last, { chain }] of layers) for (const one of chain) runOf.set(one, last);
  const needed = new Set<ChainId>();
  for (const { chain } of origins.values()) {
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
