/** Safe HTML templates and tables: every value is cleaned and escaped, unless it is HTML made by crigc. */

import type { Column, Columns } from "../printer.ts";
import { clean } from "../terminal.ts";
import style from "./style.txt" with { type: "text" };

/** HTML made by `html`, distinct from a plain string. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Part = Html | string | number | bigint | null | readonly Part[];

/** `html\`<b>${name}</b>\``; `null` is empty. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(
    texts.reduce((whole, text, index) => whole + rendered(parts[index - 1] ?? null) + text),
  );
}

function rendered(part: Part): string {
  if (part === null) return "";
  if (part instanceof Html) return part.text;
  if (typeof part === "object") return part.map(rendered).join("");
  return Bun.escapeHTML(clean(String(part)));
}

/** Of a document; to the minute, in UTC. */
export const moment = (at: string): Html =>
  html`<time datetime="${at}">${at.slice(0, 16).replace("T", " ")}</time>`;

interface Page {
  readonly title: string;
  readonly header: Part;
  readonly main: Part;
  readonly footer: string;
}

/** A self-contained page, without network or scripts. */
export const htmlPage = ({ title, header, main, footer }: Page): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta
          http-equiv="Content-Security-Policy"
          content="default-src 'none'; style-src 'unsafe-inline'"
        />
        <title>${title}</title>
        <style>
          ${new Html(style)}
        </style>
      </head>
      <body>
        <header>${header}</header>
        <main>${main}</main>
        <footer>${footer}</footer>
      </body>
    </html> `.text;

interface TableExtras<Item> {
  readonly caption?: string;
  /** Rows shown in a softer colour. */
  readonly isSoft?: (item: Item) => boolean;
  readonly most?: number;
}

const ROWS_MAX = 100;

/** The table of a terminal, up to `most` rows; nothing without items. On a narrow screen each row is a card with titles. */
export function htmlTable<Item>(
  all: Columns<Item>,
  items: readonly Item[],
  { caption = "", isSoft = () => false, most = ROWS_MAX }: TableExtras<Item> = {},
): Html | null {
  if (items.length === 0) return null;
  const shown = items.slice(0, most);
  const columns = all.filter(
    ({ optional, cell }) => optional !== true || shown.some((item) => cell(item) !== "-"),
  );
  // The whole ID can be selected and copied; the style shortens it.
  const cell = ({ title, cell: textOf }: Column<Item>, item: Item): Html =>
    title === "ID"
      ? html`<code class="id" title="${textOf(item)}">${textOf(item)}</code>`
      : html`<span>${textOf(item)}</span>`;
  const row = (item: Item): Html =>
    html`<tr${isSoft(item) ? html` class="soft"` : null}>${columns.map((it) => html`<td${classOf(it)} data-label="${it.title}">${cell(it, item)}</td>`)}</tr>`;
  return html`<table>
      <caption>
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map((it) => html`<th scope="col" ${classOf(it)}>${it.title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${shown.map(row)}
      </tbody>
    </table>
    ${items.length > most ? html`<p class="soft">and ${items.length - most} more.</p>` : null}`;
}

const classOf = ({ align }: Column<never>): Html | null =>
  align === "right" ? html` class="number"` : null;
