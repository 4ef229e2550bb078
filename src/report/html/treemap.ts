/** Disk usage of images by repository: a treemap with shared layers, and a table of the same figures. */

import type { FamilyUsage, ImageShare, RepositoryUsage } from "../../model/disk-usage.ts";
import { compared } from "../../model/values.ts";
import { counted, dayCell, humanBytes } from "../bytes.ts";
import { type ImageUsageReport, usageNotes } from "../disk-usage.ts";
import { column, type ItemColumn, RIGHT } from "../table.ts";
import { breakable, type Html, html, htmlTable, more, type Part } from "./html.ts";

/** Beyond this the smallest share one tile, because a tile of a few pixels says nothing. */
const FAMILIES_MAX = 16;
const REPOSITORIES_MAX = 16;
const ROWS_MAX = 100;
/** Width by height of the map on a desktop screen, approximately. */
const AREA: Rectangle = { x: 0, y: 0, width: 220, height: 100 };
const UNTAGGED = "(untagged)";

const COLUMNS: readonly ItemColumn<ImageShare, Part>[] = [
  column("Repository", ({ name }) => breakable(name ?? UNTAGGED)),
  column("Images", ({ images }) => images, RIGHT),
  column("Unique", ({ unique }) => humanBytes(unique.estimateBytes), RIGHT),
  column("Shared", ({ shared }) => humanBytes(shared.estimateBytes), RIGHT),
  column("Reported", ({ reportedBytes }) => humanBytes(reportedBytes), RIGHT),
  column("Last used", ({ lastUsedAt }) => dayCell(lastUsedAt), RIGHT),
];

export function treemapSection(usage: ImageUsageReport): Html | null {
  const { total, byRepository } = usage.images;
  if (total.images === 0) return null;
  const repositories = counted(byRepository.length, "repository", "repositories");
  const shared = usage.families.reduce((sum, { sharedBytes }) => sum + sharedBytes, 0n);
  const largest = byRepository
    .slice(0, 3)
    .map((row) => `${row.name ?? UNTAGGED} ${humanBytes(row.unique.estimateBytes)}`);
  return html`<section aria-labelledby="repositories">
    <h2 id="repositories">Images by repository</h2>
    <p class="soft">
      ${counted(total.images, "image")}, ${humanBytes(total.unique.estimateBytes)} counting each
      layer once. A tile shows layers of one repository only; a hatched tile shows layers that
      repositories on the same base share, ${humanBytes(shared)} in total.
    </p>
    <div
      class="map"
      role="img"
      aria-label="Treemap of ${repositories}; most take ${largest.join(", ")}. The table below has all figures."
    >
      ${familiesOf(usage.families)}
    </div>
    <ul class="legend">
      <li><span class="key tile-kept"></span>in use or kept by a rule</li>
      <li><span class="key tile-partly"></span>some images removable</li>
      <li><span class="key tile-removable"></span>all images removable</li>
      <li><span class="key tile-shared"></span>layers shared by repositories</li>
    </ul>
    <p class="soft">
      Estimates in the runtime's sizes, as in crigc df. ${usageNotes(usage).join(" ")}
    </p>
    <details>
      <summary>All figures of ${repositories}</summary>
      ${htmlTable(COLUMNS, byRepository.slice(0, ROWS_MAX))} ${more(byRepository.length - ROWS_MAX)}
    </details>
  </section>`;
}

function familiesOf(families: readonly FamilyUsage[]): readonly Html[] {
  const shown = withoutSmallest(families);
  return squarified(shown, AREA).map(({ item: family, place }) => {
    const title = `Base ${family.name ?? "layers not known"}: ${humanBytes(family.bytes)}`;
    return html`<div class="family" style="${within(place, AREA)}" title="${title}">
      ${squarified(tilesOf(family), place).map(
        ({ item: tile, place: inner }) =>
          html`<div
            class="tile tile-${tile.style}"
            style="${within(inner, place)}"
            title="${tile.title}"
          >
            <span>${tile.label}<small>${humanBytes(tile.bytes)}</small></span>
          </div>`,
      )}
    </div>`;
  });
}

/** The remaining families as one, with no layers shared between them. */
function withoutSmallest(families: readonly FamilyUsage[]): readonly FamilyUsage[] {
  const rest = families.slice(FAMILIES_MAX);
  if (rest.length === 0) return families;
  const together: FamilyUsage = {
    name: `${rest.length} smaller bases`,
    bytes: rest.reduce((sum, { bytes }) => sum + bytes, 0n),
    sharedBytes: rest.reduce((sum, { sharedBytes }) => sum + sharedBytes, 0n),
    repositories: rest
      .flatMap(({ repositories }) => repositories)
      .toSorted((one, other) => compared(other.uniqueBytes, one.uniqueBytes)),
  };
  return [...families.slice(0, FAMILIES_MAX), together];
}

interface Tile {
  readonly title: string;
  readonly label: string;
  readonly style: "kept" | "partly" | "removable" | "shared";
  readonly bytes: bigint;
}

function tilesOf({ name, sharedBytes, repositories }: FamilyUsage): readonly Tile[] {
  const rest = repositories.slice(REPOSITORIES_MAX);
  return [
    ...repositories.slice(0, REPOSITORIES_MAX).map((it) => repositoryTile(it, it.name ?? UNTAGGED)),
    ...(rest.length === 0
      ? []
      : [repositoryTile(summed(rest), `${rest.length} more repositories`)]),
    {
      title: `Layers that repositories on ${name ?? "the same base"} share: ${humanBytes(sharedBytes)}`,
      label: "shared",
      style: "shared",
      bytes: sharedBytes,
    },
  ];
}

const repositoryTile = (
  { images, removable, uniqueBytes }: Omit<RepositoryUsage, "name">,
  name: string,
): Tile => ({
  title: `${name}: ${humanBytes(uniqueBytes)}, ${counted(images, "image")}, ${removable} removable`,
  label: name.slice(name.lastIndexOf("/") + 1),
  style: removable === 0 ? "kept" : removable === images ? "removable" : "partly",
  bytes: uniqueBytes,
});

const summed = (repositories: readonly RepositoryUsage[]): Omit<RepositoryUsage, "name"> =>
  repositories.reduce((one, other) => ({
    name: null,
    images: one.images + other.images,
    removable: one.removable + other.removable,
    uniqueBytes: one.uniqueBytes + other.uniqueBytes,
  }));

export interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A rectangle in percent of its container, for a style. */
function within(place: Rectangle, outer: Rectangle): string {
  const share = (part: number, whole: number): string =>
    `${whole > 0 ? ((100 * part) / whole).toFixed(3) : "0"}%`;
  return `left:${share(place.x - outer.x, outer.width)};top:${share(place.y - outer.y, outer.height)};width:${share(place.width, outer.width)};height:${share(place.height, outer.height)}`;
}

interface Weighed {
  readonly bytes: bigint;
}

interface PlacedItem<Item> {
  readonly item: Item;
  readonly place: Rectangle;
}

/**
 * Squarified treemap: divides a rectangle by weights into near-squares, the largest first, without those of no weight
 * (Bruls, Huizing and van Wijk, 2000).
 */
export function squarified<Item extends Weighed>(
  items: readonly Item[],
  area: Rectangle,
): readonly PlacedItem<Item>[] {
  const sorted = items
    .filter(({ bytes }) => bytes > 0n)
    .toSorted((one, other) => compared(other.bytes, one.bytes));
  const scale = (area.width * area.height) / sumOf(sorted.map(({ bytes }) => Number(bytes)));
  const places: PlacedItem<Item>[] = [];
  let rest = area;
  let row: { readonly item: Item; readonly size: number }[] = [];
  const layRow = (): void => {
    const sum = sumOf(row.map(({ size }) => size));
    const isUpright = rest.width >= rest.height;
    const side = isUpright ? rest.height : rest.width;
    const depth = Math.min(sum / side, isUpright ? rest.width : rest.height);
    let along = isUpright ? rest.y : rest.x;
    for (const { item, size } of row) {
      const length = (size / sum) * side;
      const place = isUpright
        ? { x: rest.x, y: along, width: depth, height: length }
        : { x: along, y: rest.y, width: length, height: depth };
      places.push({ item, place });
      along += length;
    }
    rest = isUpright
      ? { ...rest, x: rest.x + depth, width: rest.width - depth }
      : { ...rest, y: rest.y + depth, height: rest.height - depth };
    row = [];
  };
  for (const item of sorted) {
    const size = Number(item.bytes) * scale;
    const sizes = row.map((it) => it.size);
    const side = Math.min(rest.width, rest.height);
    if (row.length > 0 && worstRatio([...sizes, size], side) > worstRatio(sizes, side)) layRow();
    row.push({ item, size });
  }
  if (row.length > 0) layRow();
  return places;
}

/** The worst aspect ratio in a row; 1 is a square. */
function worstRatio(row: readonly number[], side: number): number {
  const squared = (sumOf(row) / side) ** 2;
  return Math.max(Math.max(...row) / squared, squared / Math.min(...row));
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0);
