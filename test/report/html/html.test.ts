// The HTML report as text: what it says, what it leaves out, and that nothing breaks out of it.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import type { DiskSample } from "../../../src/model/history.ts";
import { hours, minutes, plus, seconds } from "../../../src/model/time.ts";
import { diskSeries } from "../../../src/report/html/chart.ts";
import { html } from "../../../src/report/html/html.ts";
import { htmlReport } from "../../../src/report/html/page.ts";
import { filesystem, GIB, imagePlan, kept, NOW } from "../build.ts";
import { hostileReport, largeReport, weekReport } from "./html-report.ts";

describe("escaping", () => {
  test("the HTML template escapes every character that HTML gives a meaning", () => {
    expect(html`<b title="${`"'<>&`}">${"<i>"}</b>`.text).toBe(
      '<b title="&quot;&#x27;&lt;&gt;&amp;">&lt;i&gt;</b>',
    );
  });

  test("the HTML template leaves parts that are HTML alone, in lists too, and drops null", () => {
    expect(html`<b>${[html`<i>1</i>`, null, "<2>"]}</b>`.text).toBe("<b><i>1</i>&lt;2&gt;</b>");
  });

  test("no text in the HTML template can add a tag or end an attribute", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const inside = html`<a href="${text}">${text}</a>`.text;
        expect(inside.match(/[<>]/g)).toHaveLength(4);
        expect(inside.match(/"/g)).toHaveLength(2);
      }),
    );
  });
});

describe("the page", () => {
  const page = htmlReport(weekReport());

  test("the page has no script, no link and no address", () => {
    expect(page).not.toMatch(/<script|<link|<img|@import|url\(|https?:|src=/);
    expect(page).toContain("default-src 'none'; style-src 'unsafe-inline'");
  });

  test("the page says what was removed for which reason, and what that freed", () => {
    expect(page).toContain("image: disk usage");
    expect(page).toContain("container: over the limit per container name");
    expect(page).toContain("107 removals, 57.3 GiB freed as measured.");
  });

  test("the page shows the candidates with the estimated stop, and what is kept by which rule", () => {
    expect(page).toMatch(
      /A pass is expected to remove \d+ and to stop there; the disk is measured after each/,
    );
    expect(page).toContain("<strong>keep rule</strong>: 5 images");
    expect(page).toContain("/etc/crigc/keep.d/base.list:3");
  });

  test("a hostile node name appears in the page only as text", () => {
    const hostile = htmlReport(hostileReport());
    expect(hostile).not.toMatch(/<script|<img/);
    expect(hostile).not.toMatch(/[\u202e\u001b]/);
  });

  test("a page is made of the history alone if the node cannot be read", () => {
    const text = htmlReport(weekReport({ plan: null, runtime: null, planError: "no socket" }));
    expect(text).toContain("<strong>Cannot read the node:</strong> no socket.");
    expect(text).not.toContain("What a pass would remove now");
  });

  test("a page without history and node says so", () => {
    const text = htmlReport(
      weekReport({
        plan: null,
        samples: [],
        history: { passes: [], removals: [], events: [], regrets: [] },
      }),
    );
    expect(text).toContain("Nothing was removed in this period.");
    expect(text).toContain("No disk usage was recorded in this period");
  });

  test("the page starts with what blocks removal", () => {
    const blocked = imagePlan({
      candidates: [],
      blocks: [{ kind: "pods-unknown", message: "status 500" }],
    });
    const text = htmlReport(weekReport({ plan: { images: blocked, containers: null } }));
    expect(text.indexOf("No image is removed now:")).toBeLessThan(text.indexOf("At a glance"));
    expect(text).toContain("removal is blocked");
  });

  test("a page of a full node of young images says when they become removable, and nowhere that no threshold is exceeded", () => {
    const young = imagePlan({
      candidates: [],
      kept: [kept(1, { kind: "too-young", age: seconds(12), minimumAge: minutes(2) })],
    });
    const text = htmlReport(weekReport({ plan: { images: young, containers: null } }));
    expect(text).toContain("free 4.0 GiB on /var/lib/containerd");
    expect(text).toContain("<small>1 image (117.0 MiB) becomes removable in 1m48s</small>");
    expect(text).not.toContain("no threshold exceeded");
  });

  test("the chart of a new node begins where something was recorded, and ends with the disk as it is now", () => {
    const week = weekReport();
    const recent = week.samples.filter(({ at }) => at > NOW - minutes(45));
    expect(recent).not.toBeEmpty();
    const text = htmlReport({
      ...week,
      samples: recent,
      history: { ...week.history, removals: [] },
    });
    const drawn = [...text.matchAll(/<path class="used" d="M([\d.]+)[^"]*?([\d.]+) [\d.]+"/g)];
    expect(Number(drawn[0]?.[1])).toBeLessThan(10);
    expect(Number(drawn.at(-1)?.[2])).toBe(1000);
  });

  test("a threshold is drawn at its own height for the time in which it was in force", () => {
    const high = page.match(/<path class="high" d="([^"]+)"/)?.[1] ?? "";
    // 90 and then 85 percent, on a scale from 50 to 100.
    expect(high.match(/M[\d.]+ [\d.]+/g)?.map((it) => it.split(" ")[1])).toEqual([
      "20.00",
      "30.00",
    ]);
  });

  test("the page says of each filesystem when it reaches its threshold and is full, where that is foreseen", () => {
    const foreseen = page.match(/<strong class="forecast"\s*>([^<]+)<\/strong\s*>/g) ?? [];
    expect(foreseen).toHaveLength(1);
    expect(foreseen[0]).toContain(
      "Reaches 85% in 6h, full in 21h if nothing is removed, at 1.0 GiB/h (measured over 18h).",
    );
    expect(htmlReport(weekReport({ forecasts: new Map() }))).not.toContain("measured over");
  });

  test("every header of a table has a scope", () => {
    expect(page.match(/<th\b/g)?.length).toBeGreaterThan(10);
    expect(page.match(/<th (?!scope="col")/g)).toBeNull();
  });

  test("the page of 5,000 removals has bounded lists", () => {
    const text = htmlReport(largeReport());
    expect(text).toContain("and 4500 more.");
    expect(text.length).toBeLessThan(700_000);
  });
});

describe("samples of a disk", () => {
  const { mountpoint, roles } = filesystem();
  const sample = (minute: number, percent: number, device = "8:1"): DiskSample => ({
    at: plus(NOW, minutes(minute)),
    device,
    path: mountpoint,
    inodes: 0n,
    inodesFree: 0n,
    freedBytes: null,
    mountpoint,
    roles: device === "8:1" ? roles : ["nodefs"],
    capacityBytes: 100n * GIB,
    availableBytes: BigInt(100 - percent) * GIB,
    highPercent: null,
    lowPercent: null,
  });
  const period = { from: NOW, to: plus(NOW, hours(10)) };

  test("samples of a disk have their place in the period, whatever their order", () => {
    const [series] = diskSeries(
      [{ ...sample(600, 20), highPercent: 85, lowPercent: 80 }, sample(0, 10)],
      period,
    );
    expect(series?.pieces.flat()).toEqual([
      { place: 0, usedPercent: 10, thresholds: null },
      { place: 1, usedPercent: 20, thresholds: { highPercent: 85, lowPercent: 80 } },
    ]);
    expect(series?.last.availableBytes).toBe(80n * GIB);
  });

  test("samples outside of the period or without a capacity are left out", () => {
    const strange = { ...sample(5, 10), capacityBytes: 0n };
    expect(diskSeries([sample(-1, 10), sample(601, 10), strange], period)).toEqual([]);
  });

  test("samples are one series per device, the image filesystem first", () => {
    const all = diskSeries([sample(0, 10, "8:2"), sample(0, 10)], period);
    expect(all.map((series) => series.last.device)).toEqual(["8:1", "8:2"]);
  });

  test("a series of samples is broken if nobody looked for long", () => {
    const minutesSampled = [0, 5, 10, 15, 20, 200, 205, 210];
    const [series] = diskSeries(
      minutesSampled.map((minute) => sample(minute, 50)),
      period,
    );
    expect(series?.pieces.map((piece) => piece.length)).toEqual([5, 3]);
  });

  test("samples are thinned without losing a peak", () => {
    const samples = Array.from({ length: 6000 }, (_, index) =>
      sample(index / 10, index === 4321 ? 99 : index === 1234 ? 1 : 50),
    );
    const [series] = diskSeries(samples, period);
    const percents = series?.pieces.flat().map((point) => point.usedPercent) ?? [];
    expect(percents.length).toBeLessThanOrEqual(480);
    expect([Math.max(...percents), Math.min(...percents)]).toEqual([99, 1]);
  });
});
