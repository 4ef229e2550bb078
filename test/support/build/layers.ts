/** Images by the layers that they are made of. */

import { type ChainId, chainId } from "../../../src/model/ids.ts";
import type { Image } from "../../../src/model/snapshot.ts";
import { Layers } from "../../../src/policy/layers.ts";

/** An image and its layers, from the first to the last: `base/app`. */
export type Layered = readonly [image: Pick<Image, "id" | "sizeBytes">, layers: string];

/** Of these images, all of whose layers are known. */
export const layersOf = (...images: readonly Layered[]): Layers =>
  new Layers(
    images.map(([{ id, sizeBytes }, layers]) => ({ id, sizeBytes, chain: chainId(layers) })),
    new Map(images.flatMap(([, layers]) => parentsIn(layers.split("/")))),
  );

const parentsIn = (layers: readonly string[]): readonly (readonly [ChainId, ChainId | null])[] =>
  layers.map((_, at) => [
    chainId(layers.slice(0, at + 1).join("/")),
    at === 0 ? null : chainId(layers.slice(0, at).join("/")),
  ]);
