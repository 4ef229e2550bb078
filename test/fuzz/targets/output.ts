// Text of pods, images and runtimes on its way out: to terminals, logs, JSON, HTML and metrics.

import { logLine } from "../../../src/agent/log.ts";
import { MetricRegistry } from "../../../src/agent/metrics.ts";
import { html } from "../../../src/report/html/html.ts";
import { clean, cutFor, fitted } from "../../../src/report/terminal.ts";
import { NOW } from "../../support/build/values.ts";
import { textOf } from "../inputs.ts";
import { holds, same, type Target, textTarget } from "../target.ts";

/** C0, DEL, C1, separators and what turns the reading direction or has no width: a line of ours has none of them. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const OBEYED = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\u200b-\u200f\ufeff]/;

const output = textTarget(
  "output",
  textOf({
    words: [
      ..."\u001b[31m \u001b]0;x\u0007 \r\n \r \u009b2J \u2028 \u202e \u2066 <script> </td> & \" ' \\ } # {".split(
        " ",
      ),
      " ",
      "nginx:1",
      "名前",
      "e\u0301",
      "👩‍👩‍👧",
      "\ud83d",
    ],
    samples: [
      "registry.example/app:1",
      "\u001b]8;;http://x\u0007link\u001b]8;;\u0007",
      "a\nI0101 forged] line",
    ],
  }),
  (text) => {
    holds(!OBEYED.test(clean(text)), "clean text that a terminal obeys");
    same(clean(clean(text)), clean(text), "cleaned twice");
    const screen = { width: 40, colour: false, unicode: true };
    const short = fitted(clean(text), 12, cutFor(screen));
    holds(Bun.stringWidth(short) <= 12, `${JSON.stringify(short)} is too wide`);
    const entry = {
      at: NOW,
      severity: "warning",
      verbosity: null,
      component: "image-gc",
      message: text,
      fields: { image: text, count: 1 },
    } as const;
    const line = logLine(entry, "text");
    holds(!OBEYED.test(line), `a line of the log: ${JSON.stringify(line)}`);
    const document = JSON.parse(logLine(entry, "json")) as { msg: string; image: string };
    same(
      [document.msg, document.image],
      [wellFormed(text), wellFormed(text)],
      "JSON loses nothing",
    );
    holds(!OBEYED.test(logLine(entry, "json")), "a JSON line that a terminal obeys");
    const page = html`<b title="${text}">${text}</b>`.text;
    const inside = page.slice('<b title="'.length, -"</b>".length);
    holds((inside.match(/[<>"]/g) ?? []).join("") === '">', `HTML: ${page}`);
    const registry = new MetricRegistry();
    registry.set("crigc_runtime_info", 1, [text, text]);
    registry.set("crigc_runtime_info", 1, [`${text}\u0000`, text]);
    const series = registry
      .text()
      .split("\n")
      .filter((it) => /^[^#]/.test(it));
    holds(
      series.every((it) => /^\w+\{(?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)+\} 1$/.test(it)),
      series.join("\n"),
    );
    same(new Set(series).size, series.length, `series of metrics\n${series.join("\n")}`);
  },
);

const wellFormed = (text: string): string => text.toWellFormed();

export const outputTargets: readonly Target[] = [output];
