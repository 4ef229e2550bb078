/** Disk usage of images by repository: a treemap of the layers of each and of those that several share, and a table. */

import { compared } from "../../model/values.ts";
import { type ImageUsageJson, shareColumns, usageNotes } from "../disk-usage.ts";
import { counted, humanBytes } from "../words.ts";
import { type Html, html, htmlTable } from "./html.ts";

/** Beyond this the smallest share one tile, because a tile of a few pixels says nothing. */
const TILES_MAX = 60;
/** Width by height of the map on a desktop screen, approximately. */
const RATIO = 2.2;
const UNTAGGED = "(untagged)";

export function treemapSection(images: ImageUsageJson): Html | null {
  const { byRepository } = images;
  if (images.images === 0) return null;
  const repositories = counted(byRepository.length, "repository", "repositories");
  const largest = byRepository
    .slice(0, 3)
    .map((row) => `${row.name ?? UNTAGGED} ${humanBytes(row.uniqueBytes)}`);
  return html`<section aria-labelledby="repositories">
    <h2 id="repositories">Images by repository</h2>
    <p class="soft">
      ${counted(images.images, "image")}, ${humanBytes(images.uniqueBytes)} counting each layer
      once. A tile shows the layers of one repository only; the hatched one shows those that several
      repositories share.
    </p>
    <div
      class="map"
      role="img"
      aria-label="Treemap of ${repositories}; most take ${largest.join(", ")}. The table below has all figures."
    >
      ${divided(tilesOf(images), RATIO)}
    </div>
    <ul class="legend">
      <li><span class="key tile-kept"></span>in use or kept by a rule</li>
      <li><span class="key tile-partly"></span>some images removable</li>
      <li><span class="key tile-removable"></span>all images removable</li>
      <li><span class="key tile-shared"></span>layers shared by repositories</li>
    </ul>
    <p class="soft">
      Estimates in the runtime's sizes, as in crigc df. ${usageNotes(images).join(" ")}
    </p>
    <details>
      <summary>Figures of ${repositories}</summary>
      ${htmlTable(shareColumns("REPOSITORY", UNTAGGED), byRepository)}
    </details>
  </section>`;
}

interface Tile {
  readonly title: string;
  readonly label: string;
  readonly style: "kept" | "partly" | "removable" | "shared";
  readonly bytes: bigint;
}

function tilesOf({ byRepository, uniqueBytes }: ImageUsageJson): readonly Tile[] {
  const smallest = byRepository.slice(TILES_MAX);
  const rest = {
    name: counted(smallest.length, "more repository", "more repositories"),
    images: smallest.reduce((sum, { images }) => sum + images, 0),
    removable: smallest.reduce((sum, { removable }) => sum + removable, 0),
    uniqueBytes: sumOf(smallest.map((it) => it.uniqueBytes)),
  };
  const shared = uniqueBytes - sumOf(byRepository.map((it) => it.uniqueBytes));
  return [
    ...[...byRepository.slice(0, TILES_MAX), rest].map(repositoryTile),
    {
      title: `Layers that several repositories share: ${humanBytes(shared)}`,
      label: "shared",
      style: "shared",
      bytes: shared,
    },
  ];
}

type Repository = Pick<
  ImageUsageJson["byRepository"][number],
  "name" | "images" | "removable" | "uniqueBytes"
>;

function repositoryTile({ name: given, images, removable, uniqueBytes: bytes }: Repository): Tile {
  const name = given ?? UNTAGGED;
  return {
    title: `${name}: ${humanBytes(bytes)}, ${counted(images, "image")}, ${removable} removable`,
    label: name.slice(name.lastIndexOf("/") + 1),
    style: removable === 0 ? "kept" : removable === images ? "removable" : "partly",
    bytes,
  };
}

/** Divides an area by weights, the largest first, without those of no weight; `ratio`: width by height. */
function divided(tiles: readonly Tile[], ratio: number): Html | null {
  const sorted = tiles
    .filter(({ bytes }) => bytes > 0n)
    .toSorted((one, other) => compared(other.bytes, one.bytes));
  const total = sumOf(sorted.map(({ bytes }) => bytes));
  const [first, ...others] = sorted;
  if (first === undefined) return null;
  if (others.length === 0)
    return html`<div class="tile tile-${first.style}" title="${first.title}">
      <span>${first.label}<small>${humanBytes(first.bytes)}</small></span>
    </div>`;
  let count = 1;
  let head = first.bytes;
  // The next one still belongs to the first part if most of it lies before the middle.
  for (const { bytes } of others.slice(0, -1)) {
    if (2n * head + bytes > total) break;
    head += bytes;
    count += 1;
  }
  // Across the longer side.
  const isRow = ratio >= 1;
  const part = (own: readonly Tile[], share: number): Html =>
    html`<div style="flex:${(100 * share).toFixed(3)}">
      ${divided(own, isRow ? ratio * share : ratio / share)}
    </div>`;
  const share = Number(head) / Number(total);
  return html`<div class="${isRow ? "row" : "column"}">
    ${part(sorted.slice(0, count), share)}${part(sorted.slice(count), 1 - share)}
  </div>`;
}

const sumOf = (amounts: readonly bigint[]): bigint =>
  amounts.reduce((sum, amount) => sum + amount, 0n);
