/** The page of `crigc report`: what `plan`, `df` and `history` print, as HTML. Every value is cleaned and escaped. */

import type { History } from "../model/history.ts";
import type { Plan } from "../model/plan.ts";
import type { RuntimeInfo } from "../model/snapshot.ts";
import { type Instant, toRfc3339 } from "../model/time.ts";
import { imageUsageJson, type ImageUsageReport, shareColumns } from "./disk-usage.ts";
import { historyDocument, printHistory } from "./history.ts";
import { planBody, printPlan } from "./plan.ts";
import style from "./style.txt" with { type: "text" };
import {
  clean,
  type Colour,
  type Column,
  type Columns,
  Printer,
  shownColumns,
  type TableForm,
} from "./terminal.ts";
import { secondOf } from "./words.ts";

/** HTML made by `html`, distinct from a plain string. */
class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | null | undefined | readonly Part[];

/** `html\`<b>${name}</b>\``; `null` and `undefined` are empty. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(texts.reduce((whole, text, index) => whole + rendered(parts[index - 1]) + text));
}

function rendered(part: Part): string {
  if (part === null || part === undefined) return "";
  if (part instanceof Html) return part.text;
  if (typeof part === "object") return part.map(rendered).join("");
  return Bun.escapeHTML(clean(String(part)));
}

const ROWS_MAX = 500;

/** Prints paragraphs and tables. */
class HtmlPrinter extends Printer {
  readonly parts: Html[] = [];

  constructor() {
    super({ width: null, colour: false });
  }

  override line(line: string, colour?: Colour): void {
    this.parts.push(html`<p class="${colour}">${line}</p>`);
  }

  override gap(): void {}

  override table<Item>(columns: Columns<Item>, items: readonly Item[], form: TableForm = {}): void {
    if (items.length === 0) return;
    const shown = items.slice(0, ROWS_MAX);
    const used = shownColumns(columns, shown);
    const cell = ({ title, cell: textOf, align = "left" }: Column<Item>, item: Item): Html =>
      html`<td class="${align}" data-label="${title}">${textOf(item)}</td>`;
    const { stop } = form;
    const rows = shown.map((item, index) => [
      index === stop?.at
        ? html`<tr>
            <td class="cyan" colspan="${used.length}">${stop?.words}</td>
          </tr>`
        : null,
      html`<tr class="${stop !== undefined && index >= stop.at ? "dim" : null}">
        ${used.map((it) => cell(it, item))}
      </tr>`,
    ]);
    this.parts.push(
      html`<table>
        <thead>
          <tr>
            ${used.map(({ title, align = "left" }) => html`<th class="${align}">${title}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows}
        </tbody>
      </table>`,
    );
    const more = items.length - shown.length;
    if (more > 0) this.line(`and ${more} more`, "dim");
  }
}

const section = (title: string, print: (printer: Printer) => void): Html => {
  const printer = new HtmlPrinter();
  print(printer);
  return html`<section>
    <h2>${title}</h2>
    ${printer.parts}
  </section>`;
};

export interface HtmlReport {
  readonly period: { readonly from: Instant; readonly to: Instant };
  readonly node: string;
  readonly version: string;
  readonly history: History;
  readonly runtime: RuntimeInfo;
  /** The node as it is now. */
  readonly plan: Plan;
  readonly usage: ImageUsageReport;
}

/** A self-contained page, without network or scripts. */
export function htmlReport({ plan, runtime, usage, period, ...report }: HtmlReport): string {
  const [from, to] = [period.from, period.to].map((at) => secondOf(toRfc3339(at)));
  const software = `${runtime.name} ${runtime.version}`;
  const history = historyDocument(report.history);
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta
          http-equiv="Content-Security-Policy"
          content="default-src 'none'; style-src 'unsafe-inline'"
        />
        <title>crigc report of ${report.node}</title>
        <style>
          ${new Html(style)}
        </style>
      </head>
      <body>
        <h1>Garbage collection on ${report.node}</h1>
        <p class="dim">${from} to ${to}, ${software}, written by crigc ${report.version}</p>
        ${section("What a pass would remove now", (printer) => printPlan(printer, planBody(plan)))}
        ${section("Images by repository", (printer) => printer.table(shareColumns("REPOSITORY"), imageUsageJson(usage).byRepository))}
        ${section("What was removed, and why", (printer) => printHistory(printer, history))}
      </body>
    </html> `.text;
}
