// The HTML report as text: what it says, what it leaves out, and that nothing breaks out of it.

import { expect, test } from "bun:test";

import fc from "fast-check";

import { html, htmlReport } from "../../src/report/html.ts";
import { imagePlan } from "./build.ts";
import { weekReport } from "./html-report.ts";

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

test("the page has no script, no link and no address", () => {
  expect(page).not.toMatch(/<script|<link|<img|@import|url\(|https?:|src=/);
  expect(page).toContain("default-src 'none'; style-src 'unsafe-inline'");
});

test("the page says what was removed and why, the candidates with their stop, what is kept and why, disks and repositories", () => {
  const cells = page.replaceAll(/\s*<[^>]+>\s*/g, "|");
  expect(cells).toMatch(/\|1 removed, 2.0 GiB freed|checkout-3:1.3.0\|+1.0 GiB\|+2.0 GiB/);
  expect(cells).toMatch(/app-2:1\.2\|[^]*\|estimated stop; the disk[^|]*\|+3\|/);
  expect(cells).toMatch(/app-50:1.50\|+[^|]+\|+pinned in the runtime\|/);
  expect(cells).toContain("low 80%, high 85%");
  expect(cells).toContain("|shop/web|");
});

test("a page without a history says so", () => {
  const history = { passes: [], removals: [], events: [], returned: [] };
  expect(htmlReport(weekReport({ history }))).toContain("No records found.");
});

test("the page starts with what blocks removal", () => {
  const images = imagePlan({ candidates: [], blocks: [{ kind: "usage-unknown", unknown: [] }] });
  const text = htmlReport(weekReport({ plan: { images, containers: null } }));
  const at = text.indexOf("No image is removed now:");
  expect(at).toBeWithin(1, text.indexOf("low 80%"));
});

test("the page of 5,000 removals has bounded tables", () => {
  const text = htmlReport(weekReport({}, 5000));
  expect(text).toContain("and 4500 more");
  expect(text.length).toBeLessThan(900_000);
});
