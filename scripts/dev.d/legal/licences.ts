// The text of `crigc version --licenses`: what is in the executable, under which terms, with their full texts.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { BundledPackage } from "./packages.ts";
import type { Runtime } from "./runtime.ts";

export function licencesText(
  top: string,
  about: { readonly packages: readonly BundledPackage[]; readonly runtime: Runtime },
): string {
  const { packages, runtime } = about;
  const before = readFileSync(join(top, "src/install/legal/licenses.txt"), "utf8");
  const texts = packages.map((it): Section => ({
    title: `${it.name} ${it.version} (${it.licence})`,
    body: it.licenceText,
  }));
  return (
    [
      opening,
      list(
        "Packages in the executable",
        packages.map((it) => `${it.name} ${it.version}: ${it.licence}`),
      ),
      `The executable stands on Bun ${runtime.version} (MIT, https://github.com/oven-sh/bun), unchanged, which is made of:`,
      list(
        "",
        runtime.parts.map((it) => `${it.name}: ${it.licence}; ${it.url}`),
      ),
      relinking(runtime.version),
      ...merged(texts).map(section),
    ].join("\n\n") +
    "\n\n" +
    before.slice(before.indexOf(STANDARD_TEXTS))
  );
}

/** From here on the file is kept as it is: no package delivers these texts. */
const STANDARD_TEXTS = "What follows are the texts of the licences that parts of Bun name.";

const opening = `crigc is licensed under the Apache License 2.0; its text is in the file LICENSE and below.
This file names what others wrote and the executable contains, with the terms of each.`;

/** LGPL section 6 and 5: whoever receives the program can put a changed JavaScriptCore under it. */
function relinking(version: string): string {
  return `JavaScriptCore and TinyCC are under the GNU Lesser General Public License. To run crigc on changed versions of them, build Bun from
https://github.com/oven-sh/bun (tag bun-v${version}) with the change, as its documentation says, and give the result to crigc's own build:
scripts/build --runtime PATH-OF-BUN. Every source of crigc that this needs is public, and no other part of the executable stands in the way.`;
}

type Section = { readonly title: string; readonly body: string };

function section({ title, body }: Section): string {
  return `${"-".repeat(100)}\n${title}\n\n${body}`;
}

function list(title: string, lines: readonly string[]): string {
  const text = lines.map((line) => `  ${line}`).join("\n");
  return title === "" ? text : `${title}:\n${text}`;
}

/** Packages with the very same text share it. */
function merged(sections: readonly Section[]): readonly Section[] {
  const titles = new Map<string, string[]>();
  for (const { title, body } of sections) titles.set(body, [...(titles.get(body) ?? []), title]);
  return [...titles].map(([body, names]) => ({ title: names.join("\n"), body }));
}
