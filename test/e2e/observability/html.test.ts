// The HTML report in a real browser: on a desk and on a phone, light and dark, and with hostile names in it.

import { expect, test } from "bun:test";

import { htmlReport } from "../../../src/report/html.ts";
import { hostileReport, weekReport } from "../../report/html-report.ts";
import { put, scratch } from "../../support/scratch.ts";

const directory = scratch();

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

test.each([
  ["a week", "desk", "light", weekReport],
  ["a week", "desk", "dark", weekReport],
  ["a week", "phone", "light", weekReport],
  ["a week", "phone", "dark", weekReport],
  ["hostile names", "phone", "light", hostileReport],
] as const)(
  "the page of %s on a %s in %s colours fits its width, is readable, runs nothing and requests nothing",
  async (_, device, scheme, report) => {
    const width = device === "desk" ? 1100 : 360;
    using page = await openPage(put(directory, "page.html", htmlReport(report())), width, scheme);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    expect(await page.evaluate(LEAST_CONTRAST)).toBeGreaterThanOrEqual(4.5);
    expect(await page.evaluate(SMALLEST_FONT)).toBeGreaterThanOrEqual(12);
    expect(await page.evaluate("document.querySelectorAll('script, img').length")).toBe(0);
    expect(await page.evaluate("document.title")).toStartWith("crigc report of ");
    const red = "Number(/\\d+/.exec(getComputedStyle(document.body).backgroundColor)[0])";
    expect(await page.evaluate(`${red} > 128`)).toBe(scheme === "light");
    expect(page.requests).toHaveLength(1);
    expect(page.complaints).toEqual([]);
  },
);

// oxlint-disable-next-line typescript/no-explicit-any -- an event of the debugging protocol
type Data = any;

/** Opens a file in Chromium without a window. */
async function openPage(file: string, width: number, scheme: "light" | "dark") {
  const view = new Bun.WebView({
    width,
    height: 800,
    backend: {
      type: "chrome",
      url: false,
      argv: ["--no-sandbox", "--hide-scrollbars", "--disable-dev-shm-usage"],
    },
  });
  const [requests, complaints]: [string[], string[]] = [[], []];
  // Before it has been anywhere it takes no commands.
  await view.navigate("about:blank");
  view.addEventListener<Data>("Network.requestWillBeSent", ({ data }) =>
    requests.push(data.request.url),
  );
  view.addEventListener<Data>("Log.entryAdded", ({ data }) => complaints.push(data.entry.text));
  for (const domain of ["Network", "Log"]) await view.cdp(`${domain}.enable`);
  const metrics = { width, height: 800, deviceScaleFactor: 1, mobile: width < 600 };
  await view.cdp("Emulation.setDeviceMetricsOverride", metrics);
  const features = [{ name: "prefers-color-scheme", value: scheme }];
  await view.cdp("Emulation.setEmulatedMedia", { features });
  await view.navigate(`file://${file}`);
  return {
    /** What it asked the network for. */
    requests,
    /** Messages of the console, refusals of the content policy among them. */
    complaints,
    evaluate: (expression: string): Promise<unknown> => view.evaluate(expression),
    [Symbol.dispose]: () => view.close(),
  };
}
