/** The layers of one image, for `Explanation` and `crigc explain`. */

import type { ImageLayers } from "../../model/disk-usage.ts";
import type { Bounds } from "../../model/plan.ts";
import { counted, humanBytes } from "../bytes.ts";
import type { JsonObject } from "../document/json.ts";
import { shortId } from "../names.ts";
import type { Screen } from "../terminal.ts";
import { type Column, tableLines, wrapped } from "./table.ts";

export const layersJson = (layers: ImageLayers | null): JsonObject | undefined =>
  layers === null
    ? undefined
    : {
        freesBytes: layers.frees.estimateBytes,
        freesAtLeastBytes: layers.frees.lowerBytes,
        freesAtMostBytes: layers.frees.upperBytes,
        chain: layers.chain.map(({ chain, through, path }) => ({
          chainId: chain,
          images: through,
          sizeToHereBytes: path.estimateBytes,
          sizeToHereAtLeastBytes: path.lowerBytes,
          sizeToHereAtMostBytes: path.upperBytes,
        })),
      };

const LAYER_COLUMNS: readonly Column[] = [
  { title: "LAYER", align: "right" },
  { title: "CHAIN ID" },
  { title: "IMAGES", align: "right" },
  { title: "CUMULATIVE", align: "right" },
];

/** From first to last layer, with the number of images that have it. */
export function layerLines(layers: ImageLayers | null, screen: Screen): readonly string[] {
  if (layers === null) return [];
  const { chain, frees } = layers;
  const shared = chain.filter(({ through }) => through > 1).length;
  const rows = chain.map(({ chain: id, through, path }, index) => [
    String(index + 1),
    shortId(id),
    String(through),
    amountWords(path),
  ]);
  return [
    "",
    ...wrapped(
      `${counted(chain.length, "layer")}, ${shared} shared with other images; removing this image alone would free ${amountWords(frees)}.`,
      screen,
    ),
    ...tableLines(LAYER_COLUMNS, rows, screen),
  ];
}

const amountWords = ({ lowerBytes, estimateBytes, upperBytes }: Bounds): string =>
  humanBytes(lowerBytes) === humanBytes(upperBytes)
    ? humanBytes(estimateBytes)
    : `about ${humanBytes(estimateBytes)}`;
