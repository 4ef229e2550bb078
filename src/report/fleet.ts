/** Document `Fleet` and the output of `crigc fleet`: nodes with their disks, and images by the number of nodes that have them. */

import type { FleetImage, FleetNode } from "../model/reports.ts";
import { document, jsonOf, lazily } from "./document.ts";
import { column, type Columns, NAME, OPTIONAL, Printer, RIGHT } from "./printer.ts";
import { clean, type Screen } from "./terminal.ts";
import { counted, humanBytes, usedPercent } from "./words.ts";

export interface FleetReport {
  readonly nodes: readonly FleetNode[];
  /** The selected ones, those on the fewest nodes first. */
  readonly images: readonly FleetImage[];
  /** Whether images were selected, so that only they are shown. */
  readonly isSelected: boolean;
}

export type FleetDocument = ReturnType<typeof fleetDocument>;

export const fleetDocument = ({ nodes, images, isSelected }: FleetReport) =>
  document("Fleet", {
    nodes: nodes.map((node) => jsonOf(node)),
    images: lazily(images, (image) => jsonOf(image)),
    selected: isSelected,
  });

const NODES: Columns<FleetDocument["nodes"][number]> = [
  column("NODE", ({ name }) => clean(name), NAME),
  column("DISK", ({ capacityBytes: all, availableBytes: free }) =>
    all === null || free === null ? "-" : `${usedPercent(all, free) ?? "?"}% of ${humanBytes(all)}`,
  ),
  column("IMAGES", ({ images }) => `${images}`, RIGHT),
  column("SIZE", ({ imagesBytes }) => humanBytes(imagesBytes), RIGHT),
  column("UNUSED", ({ unusedImages }) => `${unusedImages}`, RIGHT),
  column("ONLY HERE", ({ onlyCopies }) => `${onlyCopies}`, RIGHT),
  column("CAME BACK", (it) => returnedWords(it), OPTIONAL),
];

const returnedWords = ({
  returnedImages,
  returnedBytes,
}: Pick<FleetNode, "returnedImages" | "returnedBytes">): string =>
  returnedImages === null ? "-" : `${returnedImages} (${humanBytes(returnedBytes ?? 0n)})`;

const IMAGES: Columns<FleetImage> = [
  column("IMAGE", ({ name }) => clean(name), NAME),
  column("SIZE", ({ sizeBytes }) => humanBytes(sizeBytes), RIGHT),
  column("NODES", ({ nodes }) => `${nodes}`, RIGHT),
  column("USED ON", ({ usedOn }) => `${usedOn}`, RIGHT),
  column("ONLY ON", ({ onlyOn }) => clean(onlyOn ?? "-"), { minimumWidth: 8, optional: true }),
];

export function fleetTable({ nodes, selected, ...fleet }: FleetDocument, screen: Screen): string {
  const images = [...fleet.images];
  const printer = new Printer(screen);
  const groupOf = (copies: number) => `on ${counted(copies, "node")}`;
  if (!selected) printer.table(NODES, nodes, { groupOf: () => "nodes" });
  printer.gap();
  printer.table(IMAGES, images, { groupOf: (image) => groupOf(image.nodes) });
  printer.gap();
  const sum = images.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0n);
  printer.line(
    `${counted(nodes.length, "node")}, ${counted(images.length, "image")}${selected ? " selected" : ""} (${humanBytes(sum)} as reported).`,
  );
  return printer.text();
}
