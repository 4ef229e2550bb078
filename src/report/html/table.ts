/** Tables of the HTML report; with `isCards`, a narrow screen shows each row as a card with titles. */

import { type Html, html, type Part } from "./text.ts";

export interface HtmlColumns {
  readonly titles: readonly string[];
  readonly numbers: readonly number[];
}

export const htmlTable = (
  columns: HtmlColumns,
  rows: readonly Part[],
  { caption = null, isCards = false }: { readonly caption?: Part; readonly isCards?: boolean } = {},
): Html =>
  html`<table${isCards ? html` class="cards"` : null}>${
    caption === null
      ? null
      : html`<caption>
          ${caption}
        </caption>`
  }<thead><tr>${columns.titles.map((title, at) => html`<th scope="col" ${numbered(columns, at)}>${title}</th>`)}</tr></thead><tbody>${rows}</tbody></table>`;

export const htmlRow = (columns: HtmlColumns, cells: readonly Part[], style?: "behind"): Html =>
  html`<tr${style === undefined ? null : html` class="${style}"`}>${columns.titles.map((title, at) => html`<td${numbered(columns, at)} data-label="${title}">${cells[at] ?? null}</td>`)}</tr>`;

const numbered = ({ numbers }: HtmlColumns, at: number): Html | null =>
  numbers.includes(at) ? html` class="number"` : null;
