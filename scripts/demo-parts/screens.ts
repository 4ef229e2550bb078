// The screens of the README, of the demonstration: what plan and explain print, and a picture of the HTML report.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { openBrowser } from "../../test/e2e/observability/browser.ts";
import { demonstration } from "./demonstration.ts";

const top = join(import.meta.dir, "../..");
const START = "<!-- screens: scripts/screens writes them anew -->\n";
const END = "<!-- end of the screens -->";

await using demo = await demonstration();
await demo.output("gc", "--images");
await demo.grow();
demo.pullOneMore();
const plan = await screen("plan");
const explain = await screen("explain", "registry.example/shop/migrate:v7");
await demo.output("gc");
await picture("report.png");

const path = join(top, "README.md");
const page = readFileSync(path, "utf8");
const from = page.indexOf(START);
const to = page.indexOf(END);
if (from < 0 || to < from) throw new Error("README.md has no section of screens");
const screens = [plan, explain].map((text) => `\`\`\`\n${text}\`\`\`\n`).join("\n");
writeFileSync(
  path,
  `${page.slice(0, from)}${START}\n${screens}\n![The HTML report](docs/report.png)\n\n${page.slice(to)}`,
);

/** As on a node whose images are at the usual place. */
async function screen(...words: [string, ...string[]]): Promise<string> {
  const text = await demo.output(...words);
  return `$ crigc ${words.join(" ")}\n${text.replaceAll(demo.home, "/var/lib/containerd")}`;
}

async function picture(name: string): Promise<void> {
  const file = join(demo.home, "report.html");
  await demo.output("report", `--html=${file}`);
  writeFileSync(file, readFileSync(file, "utf8").replaceAll(demo.home, "/var/lib/containerd"));
  const browser = await openBrowser();
  try {
    const opened = await browser.open(file, { width: 1000, scheme: "light" });
    // What takes the disk, and the treemap: a demonstration of seconds has no week to draw.
    const [start, end] = JSON.parse(
      String(
        await opened.evaluate(
          `JSON.stringify([".stack", ".map"].map((it) => document.querySelector(it).closest("section").getBoundingClientRect()).map(({ top, bottom }, index) => index === 0 ? top : bottom))`,
        ),
      ),
    ) as [number, number];
    const drawn = await opened.screenshot({ top: start - 16, height: end - start + 32 });
    writeFileSync(join(top, "docs", name), drawn);
  } finally {
    await browser.close();
  }
}
