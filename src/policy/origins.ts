/** The recorded layers of images: each layer once, in runs that images share. */
import type { ChainId, ImageId } from "../model/ids.ts";
import type { ImageOrigin, LayerRun, Ledger, OriginRecord } from "../model/ledger.ts";
import type { Image } from "../model/snapshot.ts";
import { Layers } from "./layers.ts";

export type Origins = Pick<Ledger, "origins" | "layers">;

/** Adds what was read of new images, and drops what no listed image has; returns the same maps if nothing changed. */
export function rememberOrigins(
  known: Origins,
  images: readonly Pick<Image, "id">[],
  read: ReadonlyMap<ImageId, ImageOrigin>,
): Origins {
  const listed = new Set(images.map(({ id }) => id));
  const origins = new Map([...known.origins].filter(([id]) => listed.has(id)));
  const fresh = [...read].filter(([id]) => listed.has(id) && !origins.has(id));
  const isLess = origins.size < known.origins.size;
  if (!isLess && fresh.length === 0) return { origins: known.origins, layers: known.layers };
  const layers = isLess ? neededRuns(known.layers, origins) : new Map(known.layers);
  const chains = new Set([...layers.values()].flatMap(({ chain }) => chain));
  for (const [id, { chain, builtAt }] of fresh) {
    origins.set(id, { chain: chain?.at(-1) ?? null, builtAt });
    if (chain !== null) addRun(layers, chains, chain);
  }
  return { origins, layers };
}

const made = new WeakMap<
  readonly Image[],
  { readonly origins: Origins["origins"]; readonly layers: Layers }
>();

/** The layers of all images, where known; computed once for the same list and records. */
export function layersOf(images: readonly Image[], { origins, layers: runs }: Origins): Layers {
  const before = made.get(images);
  if (before?.origins === origins) return before.layers;
  const layered = images.flatMap(({ id, sizeBytes }) => {
    const chain = origins.get(id)?.chain ?? null;
    return chain === null ? [] : [{ id, sizeBytes, chain }];
  });
  const parents = new Map<ChainId, ChainId | null>();
  for (const { below, chain } of runs.values())
    chain.forEach((one, index) => parents.set(one, chain[index - 1] ?? below));
  const layers = new Layers(layered, parents);
  made.set(images, { origins, layers });
  return layers;
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
