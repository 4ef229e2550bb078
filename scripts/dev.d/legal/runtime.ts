// What Bun's own executable is made of, from the licence page that its types package carries.

import { readFileSync } from "node:fs";
import { join } from "node:path";

export type RuntimePart = {
  readonly name: string;
  readonly url: string;
  /** In the words of the page: "dual-licensed under the BSD License or GPLv2 license". */
  readonly licence: string;
};

export type Runtime = {
  readonly version: string;
  readonly parts: readonly RuntimePart[];
};

export function runtimeOf(top: string): Runtime {
  const manifest = JSON.parse(readFileSync(join(top, "package.json"), "utf8")) as {
    readonly devDependencies: Readonly<Record<string, string>>;
  };
  const page = readFileSync(join(top, "node_modules/bun-types/docs/project/license.mdx"), "utf8");
  return { version: manifest.devDependencies["bun"] ?? "", parts: partsIn(page) };
}

/** The rows of both tables (linked libraries, embedded packages), without what is for other systems, and WebKit. */
export function partsIn(page: string): readonly RuntimePart[] {
  const rows = [...page.matchAll(/^\|([^|]*\]\([^|]*)\|([^|]*)\|$/gm)]
    .map(([, library = "", licence = ""]) => ({ library: library.trim(), licence: licence.trim() }))
    .filter(({ library }) => !/\(on Windows\)|windows\.zig/.test(library))
    .map(({ library, licence }) => ({
      name: (/\[`?([^\]`]+)`?\]/.exec(library)?.[1] ?? "").toLowerCase(),
      url: /\]\(([^)]+)\)/.exec(library)?.[1] ?? "",
      licence: licence.replace(/\[([^\]]+)\]\(([^)]+)\)/g, "$1, $2"),
    }));
  if (rows.length < 10) throw new Error("Bun's licence page is laid out in another way than known");
  return [webkit, ...rows];
}

/** The page names it in prose. */
const webkit: RuntimePart = {
  name: "webkit (JavaScriptCore)",
  url: "https://github.com/oven-sh/WebKit",
  licence: "LGPL-2",
};
