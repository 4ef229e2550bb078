/** Safe HTML templates: every value is cleaned and escaped, unless it is HTML made by crigc. */

import { clean } from "../terminal.ts";

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
  return escaped(String(part));
}

const escaped = (text: string): string => Bun.escapeHTML(clean(text));

/** A long name with line breaks allowed at slashes. */
export const breakable = (name: string): Html =>
  html`${name.split(/(?<=\/)/).map((part, index) => (index === 0 ? part : html`<wbr />${part}`))}`;

/** The whole ID, so that it can be selected and copied; the style shortens it. */
export const idOf = (id: string): Html => html`<code class="id" title="${id}">${id}</code>`;
