/** Disk usage of images by repository: a treemap with shared layers, and a table of the same figures. */

import type { FamilyUsage, ImageShare, RepositoryUsage } from "../../model/disk-usage.ts";
import { counted, dayOf, humanBytes } from "../bytes.ts";
import type { ImageUsageReport } from "../table/disk-usage.ts";
import { present } from "../terminal.ts";
import { more } from "./plan.ts";
import { type Rectangle, squarified } from "./squarify.ts";
import { type HtmlColumns, htmlRow, htmlTable } from "./table.ts";
import { breakable, type Html, html } from "./text.ts";

/** Beyond this the smallest share one tile, because a tile of a few pixels says nothing. */
const FAMILIES_MAX = 16;
const REPOSITORIES_MAX = 16;
const ROWS_MAX = 100;
/** Width by height of the map on a desktop screen, approximately. */
const AREA: Rectangle = { x: 0, y: 0, width: 220, height: 100 };

export function treemapSection(usage: ImageUsageReport): Html | null {
  const { images, families } = usage;
  if (images.total.images === 0) return null;
  const tiles = tilesOf(families);
  const shared = families.reduce((sum, { sharedBytes }) => sum + sharedBytes, 0n);
  return html`<section aria-labelledby="repositories">
    <h2 id="repositories">Images by repository</h2>
    <p class="soft">
      ${counted(images.total.images, "image")}, ${humanBytes(images.total.unique.estimateBytes)}
      counting each layer once. A tile shows layers of one repository only; a hatched tile shows
      layers that repositories on the same base share, ${humanBytes(shared)} in total.
    </p>
    <div class="map" role="img" aria-label="${mapWords(usage)}">${tiles}</div>
    <ul class="legend">
      <li><span class="key tile-kept"></span>in use or kept by a rule</li>
      <li><span class="key tile-partly"></span>some images removable</li>
      <li><span class="key tile-removable"></span>all images removable</li>
      <li><span class="key tile-shared"></span>layers shared by repositories</li>
    </ul>
    <p class="soft">${notes(usage)}</p>
    ${table(images.byRepository)}
  </section>`;
}

/** Text alternative of the map. */
function mapWords({ images }: ImageUsageReport): string {
  const largest = images.byRepository
    .slice(0, 3)
    .map((row) => `${row.name ?? UNTAGGED} ${humanBytes(row.unique.estimateBytes)}`);
  return `Treemap of ${counted(images.byRepository.length, "repository", "repositories")}; most take ${largest.join(", ")}. The table below has all figures.`;
}

const UNTAGGED = "(untagged)";

function notes({ measuredPerEstimated, imagesWithoutLayers }: ImageUsageReport): string {
  const words = present([
    "Estimates in the runtime's sizes, as in crigc df",
    measuredPerEstimated !== null &&
      `on this node a removal frees ${measuredPerEstimated.toFixed(2)} times its estimate`,
    imagesWithoutLayers > 0 &&
      `the layers of ${counted(imagesWithoutLayers, "image")} are unknown; each counts as if it shared nothing`,
  ]);
  return `${words.join("; ")}.`;
}

interface Tile {
  readonly title: string;
  readonly label: string;
  readonly style: "kept" | "partly" | "removable" | "shared";
  readonly bytes: bigint;
}

function tilesOf(families: readonly FamilyUsage[]): readonly Html[] {
  const shown = withoutSmallest(families);
  return squarified(
    shown.map(({ bytes }) => Number(bytes)),
    AREA,
  ).map((place, index) => {
    const family = shown[index];
    if (family === undefined) return html``;
    const tiles = familyTiles(family);
    const places = squarified(
      tiles.map(({ bytes }) => Number(bytes)),
      place,
    );
    const base = family.name ?? "layers not known";
    return html`<div
      class="family"
      style="${within(place, AREA)}"
      title="Base ${base}: ${humanBytes(family.bytes)}"
    >
      ${tiles.map((tile, at) => tileOf(tile, within(places[at] ?? place, place)))}
    </div>`;
  });
}

const tileOf = ({ title, label, style, bytes }: Tile, place: string): Html =>
  html`<div class="tile tile-${style}" style="${place}" title="${title}">
    <span>${label}<small>${humanBytes(bytes)}</small></span>
  </div>`;

/** The remaining families as one, with no layers shared between them. */
function withoutSmallest(families: readonly FamilyUsage[]): readonly FamilyUsage[] {
  const taking = families.filter(({ bytes }) => bytes > 0n);
  const rest = taking.slice(FAMILIES_MAX);
  if (rest.length === 0) return taking;
  const together: FamilyUsage = {
    name: `${rest.length} smaller bases`,
    bytes: rest.reduce((sum, { bytes }) => sum + bytes, 0n),
    sharedBytes: rest.reduce((sum, { sharedBytes }) => sum + sharedBytes, 0n),
    repositories: rest.flatMap(({ repositories }) => repositories).toSorted(byBytes),
  };
  return [...taking.slice(0, FAMILIES_MAX), together].toSorted((one, other) =>
    Number(other.bytes - one.bytes),
  );
}

function familyTiles({ name, sharedBytes, repositories }: FamilyUsage): readonly Tile[] {
  const rest = repositories.slice(REPOSITORIES_MAX);
  const tiles = [
    ...repositories.slice(0, REPOSITORIES_MAX).map(repositoryTile),
    ...(rest.length === 0 ? [] : [restTile(rest)]),
    {
      title: `Layers that repositories on ${name ?? "the same base"} share: ${humanBytes(sharedBytes)}`,
      label: "shared",
      style: "shared" as const,
      bytes: sharedBytes,
    },
  ];
  return tiles
    .filter(({ bytes }) => bytes > 0n)
    .toSorted((one, other) => Number(other.bytes - one.bytes));
}

const repositoryTile = (repository: RepositoryUsage): Tile => {
  const name = repository.name ?? UNTAGGED;
  return {
    title: `${name}: ${humanBytes(repository.uniqueBytes)}, ${counted(repository.images, "image")}, ${repository.removable} removable`,
    label: name.slice(name.lastIndexOf("/") + 1),
    style: styleOf(repository),
    bytes: repository.uniqueBytes,
  };
};

function restTile(rest: readonly RepositoryUsage[]): Tile {
  const sum = rest.reduce((one, other) => ({
    name: null,
    images: one.images + other.images,
    removable: one.removable + other.removable,
    uniqueBytes: one.uniqueBytes + other.uniqueBytes,
  }));
  const label = `${rest.length} more`;
  return {
    ...repositoryTile(sum),
    title: `${label} repositories: ${humanBytes(sum.uniqueBytes)}`,
    label,
  };
}

const styleOf = ({ images, removable }: RepositoryUsage): Tile["style"] =>
  removable === 0 ? "kept" : removable === images ? "removable" : "partly";

const byBytes = (one: RepositoryUsage, other: RepositoryUsage): number =>
  Number(other.uniqueBytes - one.uniqueBytes);

/** A rectangle in percent of its container, for a style. */
function within(place: Rectangle, outer: Rectangle): string {
  const share = (part: number, whole: number): string =>
    `${whole > 0 ? ((100 * part) / whole).toFixed(3) : "0"}%`;
  return `left:${share(place.x - outer.x, outer.width)};top:${share(place.y - outer.y, outer.height)};width:${share(place.width, outer.width)};height:${share(place.height, outer.height)}`;
}

const COLUMNS: HtmlColumns = {
  titles: ["Repository", "Images", "Unique", "Shared", "Reported", "Last used"],
  numbers: [1, 2, 3, 4, 5],
};

const table = (rows: readonly ImageShare[]): Html =>
  html`<details>
    <summary>All figures of ${counted(rows.length, "repository", "repositories")}</summary>
    ${htmlTable(COLUMNS, rows.slice(0, ROWS_MAX).map(tableRow), { isCards: true })}
    ${more(rows.length - ROWS_MAX)}
  </details>`;

const tableRow = (row: ImageShare): Html =>
  htmlRow(COLUMNS, [
    html`<span>${breakable(row.name ?? UNTAGGED)}</span>`,
    row.images,
    ...[row.unique.estimateBytes, row.shared.estimateBytes, row.reportedBytes].map(humanBytes),
    row.lastUsedAt === null ? "never" : dayOf(row.lastUsedAt),
  ]);
