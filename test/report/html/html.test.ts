// The HTML report as text: what it says, what it leaves out, and that nothing breaks out of it.

import { expect, test } from "bun:test";

import fc from "fast-check";

import { html } from "../../../src/report/html/html.ts";
import { htmlReport } from "../../../src/report/html/page.ts";
import { imagePlan } from "../build.ts";
import { largeReport, weekReport } from "./html-report.ts";

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
});

test("a page is made of the history alone if the node cannot be read, and says so if there is none", () => {
  const unread = { plan: null, runtime: null, usage: null, planError: "no socket" };
  const text = htmlReport(weekReport(unread));
  expect(text).toContain("<strong>Cannot read the node:</strong> no socket.");
  expect(text).not.toContain("What a pass would remove now");
  const history = { passes: [], removals: [], events: [], returned: [] };
  const empty = htmlReport(weekReport({ ...unread, history }));
  expect(empty).toContain("Nothing was removed in this period.");
});

test("the page starts with what blocks removal", () => {
  const blocks = [{ kind: "usage-unknown", unknown: [] }] as const;
  const text = planned(imagePlan({ candidates: [], blocks }));
  expect(text.indexOf("No image is removed now:")).toBeLessThan(text.indexOf(">Disk usage<"));
  expect(text.indexOf("No image is removed now:")).toBeGreaterThan(0);
});

test("the page of 5,000 removals has bounded lists", () => {
  const text = htmlReport(largeReport());
  expect(text).toContain("and 4500 more.");
  expect(text.length).toBeLessThan(900_000);
});

test("the page shows each disk with its thresholds, and the images by repository", () => {
  const disk = page.slice(page.indexOf(">Disk usage<"));
  expect(disk).toContain("/var/lib/containerd");
  expect(disk).toContain("low 80%, high 85%");
  expect(disk).toContain("Images by repository");
});
