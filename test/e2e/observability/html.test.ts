// The HTML report in a real browser: on a desk and on a phone, light and dark, and with hostile names in it.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { inflateSync } from "node:zlib";

import { htmlReport } from "../../../src/report/html/page.ts";
import { hostileReport, largeReport, weekReport } from "../../report/html/html-report.ts";
import { type Browser, type Look, openBrowser } from "./browser.ts";

// Kept, so that a person can look at them.
const directory = join(import.meta.dir, "../../../.cache/observability");
const looks: readonly (readonly [string, Look])[] = [
  ["desk-light", { width: 1100, scheme: "light" }],
  ["desk-dark", { width: 1100, scheme: "dark" }],
  ["phone-light", { width: 360, scheme: "light" }],
  ["phone-dark", { width: 360, scheme: "dark" }],
];

let browser: Browser;

beforeAll(async () => {
  mkdirSync(directory, { recursive: true });
  const reports = { report: weekReport(), large: largeReport(), hostile: hostileReport() };
  for (const [name, report] of Object.entries(reports))
    await Bun.write(join(directory, `${name}.html`), htmlReport(report));
  browser = await openBrowser();
});

afterAll(() => browser.close());

/** Share of the contrast between text and what is behind it, as WCAG counts it, at its least in the page. */
const LEAST_CONTRAST = `(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  let least = 99;
  for (const element of document.querySelectorAll("body *")) {
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "")) continue;
    const [one, other] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    least = Math.min(least, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05));
  }
  return least;
})()`;

describe.each(looks)("%s", (name, look) => {
  test("fits its width, is readable, and asks for nothing beyond its file", async () => {
    const page = await opened(look);
    await Bun.write(join(directory, `${name}.png`), await page.screenshot());
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(look.width);
    expect(await page.evaluate(LEAST_CONTRAST)).toBeGreaterThanOrEqual(4.5);
    expect(
      await page.evaluate(
        "Math.min(...[...document.querySelectorAll('body *')].map((it) => parseFloat(getComputedStyle(it).fontSize)))",
      ),
    ).toBeGreaterThanOrEqual(12);
    expect(page.requests).toHaveLength(1);
    expect(page.complaints).toEqual([]);
  });
});

/** The report of a week, as a reader opens it. */
const opened = (look: Look = { width: 1100, scheme: "light" }) =>
  browser.open(join(directory, "report.html"), look);

test("the light and dark pages differ", async () => {
  const background = "getComputedStyle(document.body).backgroundColor";
  const light = await (await opened()).evaluate(background);
  const dark = await opened({ width: 1100, scheme: "dark" });
  expect(await dark.evaluate(background)).not.toBe(light);
});

test("the chart is drawn and has a text alternative", async () => {
  const page = await opened();
  const box = (await page.evaluate(
    "(({width, height}) => [width, height])(document.querySelector('path.used').getBoundingClientRect())",
  )) as readonly number[];
  expect(box[0]).toBeGreaterThan(300);
  expect(box[1]).toBeGreaterThan(5);
  expect(await page.evaluate("document.querySelector('svg').getAttribute('aria-label')")).toBe(
    "Used share of /var/lib/containerd over time: between 74% and 88%; GC starts at 85% and frees down to 80%",
  );
});

test.each([
  [1100, 6],
  [390, 3],
] as const)(
  "a chart of %d px has %d labels of its time, and none covers another",
  async (width, least) => {
    const page = await opened({ width, scheme: "light" });
    const edges = (await page.evaluate(
      "[...document.querySelector('.times').children].map((it) => it.getBoundingClientRect()).filter((it) => it.width > 0).flatMap((it) => [it.left, it.right])",
    )) as readonly number[];
    expect(edges.length / 2).toBeGreaterThanOrEqual(least);
    expect(edges.toSorted((one, other) => one - other)).toEqual([...edges]);
  },
);

test("an ID is shown shortened and selected in full", async () => {
  const page = await opened();
  const id = "document.querySelector('code.id')";
  expect(await page.evaluate(`getComputedStyle(${id}).userSelect`)).toBe("all");
  expect(await page.evaluate(`${id}.textContent`)).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(await page.evaluate(`${id}.offsetWidth < ${id}.scrollWidth`)).toBe(true);
});

/** How many texts each page of a PDF shows. */
function textsOfPages(pdf: Buffer): readonly number[] {
  const source = pdf.toString("latin1");
  const contents = /<<[^<]*\/Type \/Page\n[^]*?\/Contents (\d+) 0 R/g;
  return Array.from(source.matchAll(contents), ([, id]) => {
    const begin = source.indexOf("stream\n", source.indexOf(`\n${id} 0 obj`)) + "stream\n".length;
    const end = source.indexOf("\nendstream", begin);
    const drawing = inflateSync(pdf.subarray(begin, end)).toString("latin1");
    return drawing.match(/\bT[jJ]\b/g)?.length ?? 0;
  });
}

test.each(["report", "large"])(
  "the %s page is printed on three pages at most, none of them empty",
  async (name) => {
    const file = join(directory, `${name}.html`);
    const page = await browser.open(file, { width: 1100, scheme: "dark" });
    const pdf = Buffer.from(await page.pdf());
    const texts = textsOfPages(pdf);
    expect(texts).toHaveLength(pdf.toString("latin1").match(/\/Type\s*\/Page\b/g)?.length ?? 0);
    expect(texts.length).toBeWithin(2, 4);
    expect(Math.min(...texts)).toBeGreaterThan(5);
  },
);

test.each([
  ["a desk in light", { width: 1100, scheme: "light" }],
  ["a phone in the dark", { width: 390, scheme: "dark" }],
] as const)("the treemap on %s fills its area, and no tile is outside", async (_, look) => {
  const page = await opened(look);
  const [outside, covered, hatched] = (await page.evaluate(`(() => {
    const map = document.querySelector(".map").getBoundingClientRect();
    const tiles = [...document.querySelectorAll(".tile")].map((it) => it.getBoundingClientRect());
    const isOutside = (it) =>
      it.left < map.left - 1 || it.right > map.right + 1 || it.top < map.top - 1 || it.bottom > map.bottom + 1;
    const area = tiles.reduce((sum, it) => sum + it.width * it.height, 0);
    const shared = getComputedStyle(document.querySelector(".tile-shared")).backgroundImage;
    return [tiles.filter(isOutside).length, area / (map.width * map.height), shared];
  })()`)) as readonly [number, number, string];
  expect(outside).toBe(0);
  expect(covered).toBeWithin(0.9, 1.01);
  expect(hatched).toStartWith("repeating-linear-gradient");
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(look.width);
});

test("names from the runtime are shown as text, whatever they contain", async () => {
  const page = await browser.open(join(directory, "hostile.html"), { width: 360, scheme: "light" });
  expect(await page.evaluate("document.querySelectorAll('script, img').length")).toBe(0);
  expect(await page.evaluate("document.title")).toStartWith("crigc report of <script>");
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
  expect(page.requests).toHaveLength(1);
});
