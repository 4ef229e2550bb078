// The treemap: tiles as large as what they stand for, and the same figures in a table beside it.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import type { FamilyUsage } from "../../../src/model/disk-usage.ts";
import { humanBytes } from "../../../src/report/bytes.ts";
import { divided, treemapSection } from "../../../src/report/html/treemap.ts";
import { imagePlan, MIB } from "../build.ts";
import { usageOf, weekReport } from "./html-report.ts";

const AREA = { x: 3, y: 5, width: 200, height: 90 };

const weighed = (all: readonly number[]) => all.map((bytes) => ({ bytes: BigInt(bytes) }));

describe("a divided rectangle", () => {
  test("gives each weight its share of the area, without overlap", () => {
    const weights = fc
      .array(fc.integer({ min: 1, max: 1_000_000 }), { minLength: 1, maxLength: 40 })
      .map((all) => all.toSorted((one, other) => other - one));
    fc.assert(
      fc.property(weights, (all) => {
        const total = all.reduce((sum, one) => sum + one, 0);
        const places = divided(weighed(all), AREA).map(({ place }) => place);
        expect(places).toHaveLength(all.length);
        for (const [at, { x, y, width, height }] of places.entries()) {
          const share = ((all[at] ?? 0) / total) * AREA.width * AREA.height;
          expect(Math.abs(width * height - share)).toBeLessThan(1e-6 * AREA.width * AREA.height);
          expect(x).toBeGreaterThanOrEqual(AREA.x - 1e-6);
          expect(y).toBeGreaterThanOrEqual(AREA.y - 1e-6);
          expect(x + width).toBeLessThanOrEqual(AREA.x + AREA.width + 1e-6);
          expect(y + height).toBeLessThanOrEqual(AREA.y + AREA.height + 1e-6);
          for (const other of places.slice(at + 1)) {
            const apart =
              x + width <= other.x + 1e-6 ||
              other.x + other.width <= x + 1e-6 ||
              y + height <= other.y + 1e-6 ||
              other.y + other.height <= y + 1e-6;
            expect(apart).toBe(true);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test("of equal weights is made of rectangles that are not too long", () => {
    for (const { place } of divided(weighed(Array(18).fill(1)), AREA)) {
      const { width, height } = place;
      expect(Math.max(width / height, height / width)).toBeLessThan(3);
    }
  });
});

const family = (
  name: string,
  repositories: number,
  change: Partial<FamilyUsage> = {},
): FamilyUsage => ({
  name,
  bytes: BigInt(repositories) * 10n * MIB + 7n * MIB,
  sharedBytes: 7n * MIB,
  repositories: Array.from({ length: repositories }, (_, at) => ({
    name: `registry.example/${name}/app-${at}`,
    images: 2,
    removable: at % 3,
    uniqueBytes: 10n * MIB,
  })),
  ...change,
});

const textOf = (families: readonly FamilyUsage[]): string =>
  treemapSection({ ...usageOf(imagePlan()), families })?.text ?? "";
const tilesIn = (text: string): number => text.match(/class="tile /g)?.length ?? 0;

describe("the treemap of a node", () => {
  test("has a tile per repository, coloured by removability, and a hatched one for shared layers of a family", () => {
    const text = textOf([family("debian", 3)]);
    expect(tilesIn(text)).toBe(4);
    for (const style of ["kept", "partly", "removable", "shared"])
      expect(text).toContain(`class="tile tile-${style}"`);
    expect(text).toContain("registry.example/debian/app-1: 10.0 MiB, 2 images, 1 removable");
    expect(text).toContain("Layers that repositories on debian share: 7.0 MiB");
  });

  test("has no hatched tile if a family shares nothing", () => {
    expect(textOf([family("lone", 1, { sharedBytes: 0n })])).not.toContain(
      'class="tile tile-shared"',
    );
  });

  test("is small on a node of a hundred families with a hundred repositories each, and complete", () => {
    const families = Array.from({ length: 100 }, (_, at) => family(`base-${at}`, 100));
    const text = textOf(families);
    expect(tilesIn(text)).toBeLessThanOrEqual(17 * 18);
    expect(text).toContain("84 smaller bases");
    expect(text).toContain("84 more repositories");
    const areas = [
      ...text.matchAll(/class="family"\s+style="[^"]*width:([\d.]+)%;height:([\d.]+)%/g),
    ];
    const covered = areas.reduce(
      (sum, [, width, height]) => sum + Number(width) * Number(height),
      0,
    );
    expect(covered / 10_000).toBeWithin(0.999, 1.001);
  });

  test("is omitted without images", () => {
    const none = usageOf(imagePlan({ candidates: [], kept: [] }));
    expect(treemapSection(none)).toBeNull();
  });

  test("has a text alternative, and a table with all figures", () => {
    const { usage } = weekReport();
    if (usage === null) throw new Error("the week has no usage");
    const text = treemapSection(usage)?.text ?? "";
    const [largest] = usage.images.byRepository;
    expect(/role="img"\s+aria-label="([^"]+)"/.exec(text)?.[1]).toContain(
      `most take ${largest?.name} ${humanBytes(largest?.unique.estimateBytes ?? 0n)}`,
    );
    const rows = text.match(/<tr>\s*<td data-label="REPOSITORY"/g) ?? [];
    expect(rows).toHaveLength(usage.images.byRepository.length);
    expect(text).toContain("The layers of 6 images are unknown");
  });
});
