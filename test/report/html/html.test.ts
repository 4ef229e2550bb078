// The HTML report as text: what it says, what it leaves out, and that nothing breaks out of it.

import { expect, test } from "bun:test";

import fc from "fast-check";

import type { ImageShare } from "../../../src/model/reports.ts";
import { hours, minutes, plus } from "../../../src/model/time.ts";
import { imageUsageJson, type ImageUsageReport } from "../../../src/report/disk-usage.ts";
import { diskSeries } from "../../../src/report/html/chart.ts";
import { html } from "../../../src/report/html/html.ts";
import { htmlReport } from "../../../src/report/html/page.ts";
import { treemapSection } from "../../../src/report/html/treemap.ts";
import { imagePlan, MIB, NOW } from "../build.ts";
import { largeReport, sample, usageOf, weekReport } from "./html-report.ts";

test("the HTML template leaves parts that are HTML alone, in lists too, and drops null", () => {
  expect(html`<b>${[html`<i>1</i>`, null, "<2>"]}</b>`.text).toBe("<b><i>1</i>&lt;2&gt;</b>");
});

test("no text in the HTML template can add a tag or end an attribute", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const inside = html`<a href="${text}">${text}</a>`.text;
      expect(inside.match(/[<>]/g)).toHaveLength(4);
      expect(inside.match(/"/g)).toHaveLength(2);
      expect(inside).not.toContain("&lt;>");
    }),
  );
});

const page = htmlReport(weekReport());
const planned = (images: ReturnType<typeof imagePlan>): string =>
  htmlReport(weekReport({ plan: { images, containers: null } }));

test("the page has no script, no link and no address", () => {
  expect(page).not.toMatch(/<script|<link|<img|@import|url\(|https?:|src=/);
  expect(page).toContain("default-src 'none'; style-src 'unsafe-inline'");
});

test("the page says what was removed and why, the candidates with their stop, and what is kept by which rule", () => {
  expect(page).toContain("image: disk usage");
  const cells = page.replaceAll(/\s*<[^>]+>\s*/g, "|");
  expect(cells).toMatch(/\|container: over the limit per container name\|+\d+\|+-\|/);
  expect(page).toContain("107 removals, 45.9 GiB freed as measured.");
  expect(page).toMatch(/A pass is expected to remove \d+ and to stop there; the disk is measured/);
  expect(page).toContain("<summary>keep rule: 5 images");
  expect(page).toContain("/etc/crigc/keep.d/base.list:3");
  expect(page).toContain("Reaches 85% in 6h, full in 21h if nothing is removed, at 1.0 GiB/h");
});

test("a page is made of the history alone if the node cannot be read, and says so if there is none", () => {
  const unread = { plan: null, runtime: null, usage: null, planError: "no socket" };
  const text = htmlReport(weekReport(unread));
  expect(text).toContain("<strong>Cannot read the node:</strong> no socket.");
  expect(text).not.toContain("What a pass would remove now");
  const history = { passes: [], removals: [], events: [], regrets: [] };
  const empty = htmlReport(weekReport({ ...unread, samples: [], history }));
  expect(empty).toContain("Nothing was removed in this period.");
  expect(empty).toContain("No disk usage was recorded in this period");
});

test("the page starts with what blocks removal", () => {
  const blocks = [{ kind: "usage-unknown", unknown: [] }] as const;
  const text = planned(imagePlan({ candidates: [], blocks }));
  expect(text.indexOf("No image is removed now:")).toBeLessThan(text.indexOf("Disk usage over"));
  expect(text.indexOf("No image is removed now:")).toBeGreaterThan(0);
});

test("the chart of a new node begins where something was recorded, and ends with the disk as it is now", () => {
  const week = weekReport();
  const samples = week.samples.filter(({ at }) => at > NOW - minutes(45));
  const text = htmlReport({ ...week, samples, history: { ...week.history, removals: [] } });
  const drawn = [...text.matchAll(/<path class="used" d="M([\d.]+)[^"]*?([\d.]+) [\d.]+"/g)];
  expect(Number(drawn[0]?.[1])).toBeLessThan(10);
  expect(Number(drawn.at(-1)?.[2])).toBe(1000);
});

test("the chart has a line at each threshold as of the newest sample", () => {
  // 85 and 80 percent, on a scale from 50 to 100.
  for (const [name, height] of [
    ["high", "30.00"],
    ["low", "40.00"],
  ] as const)
    expect(page).toContain(`<path class="${name}" d="M0 ${height}H1000"`);
});

test("the page of 5,000 removals has bounded lists", () => {
  const text = htmlReport(largeReport());
  expect(text).toContain("and 4500 more.");
  expect(text.length).toBeLessThan(900_000);
});

const period = { from: NOW, to: plus(NOW, hours(10)) };
const used = (minute: number, percent: number, device = "8:1") => ({
  ...sample(plus(NOW, minutes(minute)), percent),
  device,
  roles: [device === "8:1" ? ("imagefs" as const) : ("nodefs" as const)],
});

test("samples are one series per device, by place in the period, the image filesystem first", () => {
  const strange = { ...used(5, 10, "8:3"), capacityBytes: 0n };
  const outside = [used(-1, 10, "8:4"), used(601, 10, "8:5")];
  const samples = [used(0, 10, "8:2"), used(600, 20), used(0, 10), strange, ...outside];
  const all = diskSeries(samples, period);
  expect(all.map(({ last }) => last.device)).toEqual(["8:1", "8:2"]);
  expect(all[0]?.pieces.flat()).toEqual([
    { x: 0, usedPercent: 10 },
    { x: 1000, usedPercent: 20 },
  ]);
});

test("a series of samples is broken by a long pause", () => {
  const samples = [0, 5, 10, 15, 20, 200, 205, 210].map((minute) => used(minute, 50));
  const [series] = diskSeries(samples, period);
  expect(series?.pieces.map((piece) => piece.length)).toEqual([5, 3]);
});

test("samples are thinned without losing a peak", () => {
  const samples = Array.from({ length: 6000 }, (_, index) =>
    used(index / 10, index === 4321 ? 99 : index === 1234 ? 1 : 50),
  );
  const [series] = diskSeries(samples, period);
  const percents = series?.pieces.flat().map((point) => point.usedPercent) ?? [];
  expect(percents.length).toBeLessThanOrEqual(2002);
  expect([Math.max(...percents), Math.min(...percents)]).toEqual([99, 1]);
});

const sectionOf = (usage: ImageUsageReport): string =>
  treemapSection(imageUsageJson(usage))?.text ?? "";
const exactly = (bytes: bigint) => ({
  lowerBytes: bytes,
  estimateBytes: bytes,
  upperBytes: bytes,
});
const row = (name: string, removable: number): ImageShare => ({
  name: `registry.example/${name}`,
  images: 2,
  removable,
  reportedBytes: 20n * MIB,
  unique: exactly(10n * MIB),
  shared: exactly(7n * MIB),
  lastUsedAt: null,
});
const textOf = (byRepository: readonly ImageShare[]): string => {
  const { images, ...rest } = usageOf(imagePlan());
  const unique = exactly(BigInt(byRepository.length) * 10n * MIB + 7n * MIB);
  const total = { ...images.total, unique };
  return sectionOf({ ...rest, images: { ...images, total, byRepository } });
};
const tilesIn = (text: string): number => text.match(/class="tile /g)?.length ?? 0;

test("the treemap has a tile per repository, coloured by removability, and a hatched one for shared layers", () => {
  const text = textOf([row("app-0", 0), row("app-1", 1), row("app-2", 2)]);
  expect(tilesIn(text)).toBe(4);
  for (const style of ["kept", "partly", "removable", "shared"])
    expect(text).toContain(`class="tile tile-${style}"`);
  expect(text).toContain("registry.example/app-1: 10.0 MiB, 2 images, 1 removable");
  expect(text).toContain("Layers that several repositories share: 7.0 MiB");
});

test("the treemap of a thousand repositories is small, and complete", () => {
  const text = textOf(Array.from({ length: 1000 }, (_, at) => row(`app-${at}`, 1)));
  expect(tilesIn(text)).toBe(62);
  expect(text).toContain("940 more repositories: 9.2 GiB, 1880 images, 940 removable");
  const one = textOf(Array.from({ length: 61 }, (_, at) => row(`app-${at}`, 1)));
  expect(one).toContain("1 more repository: 10.0 MiB, 2 images, 1 removable");
});

test("the treemap is omitted without images, and has a text alternative", () => {
  expect(sectionOf(usageOf(imagePlan({ candidates: [], kept: [] })))).toBe("");
  const usage = usageOf(imagePlan());
  const words = `most take ${usage.images.byRepository[0]?.name}`;
  expect(sectionOf(usage)).toMatch(new RegExp(`role="img"\\s+aria-label="[^"]*${words}`));
});
