/** Disk usage of images by repository: a treemap with shared layers, and a table of the same figures. */

import type { FamilyUsage, RepositoryUsage } from "../../model/disk-usage.ts";
import { compared } from "../../model/values.ts";
import { counted, humanBytes } from "../bytes.ts";
import { imageUsageJson, type ImageUsageReport, shareColumns, usageNotes } from "../disk-usage.ts";
import { type Html, html, htmlTable } from "./html.ts";

/** Beyond this the smallest share one tile, because a tile of a few pixels says nothing. */
const TILES_MAX = 16;
/** Width by height of the map on a desktop screen, approximately. */
const RATIO = 2.2;
const UNTAGGED = "(untagged)";

export function treemapSection(usage: ImageUsageReport): Html | null {
  const images = imageUsageJson(usage);
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
      once. A tile shows layers of one repository only; a hatched tile shows layers that
      repositories on the same base share,
      ${humanBytes(sumOf(usage.families.map((it) => it.sharedBytes)))} in total.
    </p>
    <div
      class="map"
      role="img"
      aria-label="Treemap of ${repositories}; most take ${largest.join(", ")}. The table below has all figures."
    >
      ${divided(limited(usage.families, smallFamilies), RATIO, familyTiles)}
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

/** The first ones, and the rest as one. */
const limited = <Item>(
  items: readonly Item[],
  together: (rest: readonly Item[]) => Item,
): readonly Item[] =>
  items.length <= TILES_MAX
    ? items
    : [...items.slice(0, TILES_MAX), together(items.slice(TILES_MAX))];

const smallFamilies = (rest: readonly FamilyUsage[]): FamilyUsage => ({
  name: `${rest.length} smaller bases`,
  bytes: sumOf(rest.map(({ bytes }) => bytes)),
  sharedBytes: sumOf(rest.map(({ sharedBytes }) => sharedBytes)),
  repositories: rest
    .flatMap(({ repositories }) => repositories)
    .toSorted((one, other) => compared(other.uniqueBytes, one.uniqueBytes)),
});

const smallRepositories = (rest: readonly RepositoryUsage[]): RepositoryUsage => ({
  name: `${rest.length} more repositories`,
  images: rest.reduce((sum, { images }) => sum + images, 0),
  removable: rest.reduce((sum, { removable }) => sum + removable, 0),
  uniqueBytes: sumOf(rest.map(({ uniqueBytes }) => uniqueBytes)),
});

function familyTiles(family: FamilyUsage, ratio: number): Html {
  const { name, bytes, sharedBytes, repositories } = family;
  const tiles = [
    ...limited(repositories, smallRepositories).map(repositoryTile),
    {
      title: `Layers that repositories on ${name ?? "the same base"} share: ${humanBytes(sharedBytes)}`,
      label: "shared",
      style: "shared",
      bytes: sharedBytes,
    },
  ];
  const title = `Base ${name ?? "layers not known"}: ${humanBytes(bytes)}`;
  return html`<div class="family" title="${title}">
    ${divided(
      tiles,
      ratio,
      (tile) =>
        html`<div class="tile tile-${tile.style}" title="${tile.title}">
          <span>${tile.label}<small>${humanBytes(tile.bytes)}</small></span>
        </div>`,
    )}
  </div>`;
}

function repositoryTile({ name: given, images, removable, uniqueBytes: bytes }: RepositoryUsage) {
  const name = given ?? UNTAGGED;
  return {
    title: `${name}: ${humanBytes(bytes)}, ${counted(images, "image")}, ${removable} removable`,
    label: name.slice(name.lastIndexOf("/") + 1),
    style: removable === 0 ? "kept" : removable === images ? "removable" : "partly",
    bytes,
  };
}

/** Divides an area by weights, the largest first, without those of no weight; `ratio`: width by height. */
const divided = <Item extends { readonly bytes: bigint }>(
  items: readonly Item[],
  ratio: number,
  draw: (item: Item, ratio: number) => Html,
): Html | null => {
  const sorted = items
    .filter(({ bytes }) => bytes > 0n)
    .toSorted((one, other) => compared(other.bytes, one.bytes));
  const total = sumOf(sorted.map(({ bytes }) => bytes));
  const [first, ...others] = sorted;
  if (first === undefined) return null;
  if (others.length === 0) return draw(first, ratio);
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
  const part = (own: readonly Item[], share: number): Html =>
    html`<div style="flex:${(100 * share).toFixed(3)}">
      ${divided(own, isRow ? ratio * share : ratio / share, draw)}
    </div>`;
  const share = Number(head) / Number(total);
  return html`<div class="${isRow ? "row" : "column"}">
    ${part(sorted.slice(0, count), share)}${part(sorted.slice(count), 1 - share)}
  </div>`;
};

const sumOf = (amounts: readonly bigint[]): bigint =>
  amounts.reduce((sum, amount) => sum + amount, 0n);
