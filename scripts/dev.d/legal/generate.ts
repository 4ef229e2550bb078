// Makes the two files that the executable carries: the licence texts and the bill of materials.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { licencesText } from "./licences.ts";
import { bundledPackages } from "./packages.ts";
import { runtimeOf } from "./runtime.ts";
import { sbomText } from "./sbom.ts";

/** Paths relative to the top of the project, and what belongs into them. */
export async function legalFiles(top: string): Promise<ReadonlyMap<string, string>> {
  const product = JSON.parse(readFileSync(join(top, "package.json"), "utf8")) as {
    readonly name: string;
    readonly version: string;
    readonly license: string;
  };
  const about = { packages: await bundledPackages(top), runtime: runtimeOf(top) };
  return new Map([
    ["src/install/legal/licenses.txt", licencesText(top, about)],
    ["src/install/legal/sbom.txt", sbomText({ ...product, licence: product.license }, about)],
  ]);
}
