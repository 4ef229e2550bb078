// The HTML report in a real browser: on a desk and on a phone, light and dark, and with hostile names in it.

import { beforeAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { inflateSync } from "node:zlib";

import { htmlReport } from "../../../src/report/html/page.ts";
import { hostileReport, largeReport, weekReport } from "../../report/html/html-report.ts";
import { type Look, openPage } from "./browser.ts";

// Kept, so that a person can look at them.
const directory = join(import.meta.dir, "../../../.cache/observability");
const looks: readonly (readonly [string, Look])[] = [
  ["desk-light", { width: 1100, scheme: "light" }],
  ["desk-dark", { width: 1100, scheme: "dark" }],
  ["phone-light", { width: 360, scheme: "light" }],
  ["phone-dark", { width: 360, scheme: "dark" }],
];

beforeAll(async () => {
  mkdirSync(directory, { recursive: true });
  const reports = { report: weekReport(), large: largeReport(), hostile: hostileReport() };
  for (const [name, report] of Object.entries(reports))
    await Bun.write(join(directory, `${name}.html`), htmlReport(report));
});

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

const SMALLEST_FONT =
  "Math.min(...[...document.querySelectorAll('body *')].map((it) => parseFloat(getComputedStyle(it).fontSize)))";

test.each(looks)(
  "on a %s the page fits its width, is readable, and asks for nothing beyond its file",
  async (name, look) => {
    using page = await opened(look);
    await Bun.write(join(directory, `${name}.png`), await page.screenshot());
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(look.width);
    expect(await page.evaluate(LEAST_CONTRAST)).toBeGreaterThanOrEqual(4.5);
    expect(await page.evaluate(SMALLEST_FONT)).toBeGreaterThanOrEqual(12);
    expect(page.requests).toHaveLength(1);
    expect(page.complaints).toEqual([]);
  },
);

/** The report of a week, as a reader opens it. */
const opened = (look: Look = { width: 1100, scheme: "light" }) =>
  openPage(join(directory, "report.html"), look);

test("the light and dark pages differ", async () => {
  const background = "getComputedStyle(document.body).backgroundColor";
  using light = await opened();
  using dark = await opened({ width: 1100, scheme: "dark" });
  expect(await dark.evaluate(background)).not.toBe(await light.evaluate(background));
});

test("an ID is shown shortened and selected in full", async () => {
  using page = await opened();
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
    using page = await openPage(file, { width: 1100, scheme: "dark" });
    const pdf = await page.pdf();
    const texts = textsOfPages(pdf);
    expect(texts).toHaveLength(pdf.toString("latin1").match(/\/Type\s*\/Page\b/g)?.length ?? 0);
    expect(texts.length).toBeWithin(2, 4);
    expect(Math.min(...texts)).toBeGreaterThan(5);
  },
);

test("names from the runtime are shown as text, whatever they contain", async () => {
  using page = await openPage(join(directory, "hostile.html"), { width: 360, scheme: "light" });
  expect(await page.evaluate("document.querySelectorAll('script, img').length")).toBe(0);
  expect(await page.evaluate("document.title")).toStartWith("crigc report of <script>");
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
  expect(page.requests).toHaveLength(1);
});
