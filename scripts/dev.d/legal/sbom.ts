// The bill of materials as a CycloneDX 1.5 document; the same inputs give the same bytes, so it has no time in it.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { BundledPackage } from "./packages.ts";
import type { Runtime } from "./runtime.ts";

type Product = { readonly name: string; readonly version: string; readonly license: string };

export function sbomText(
  top: string,
  about: { readonly packages: readonly BundledPackage[]; readonly runtime: Runtime },
): string {
  const { packages, runtime } = about;
  const product = JSON.parse(readFileSync(join(top, "package.json"), "utf8")) as Product;
  const self = `pkg:generic/${product.name}@${product.version}`;
  const bun = `pkg:github/oven-sh/bun@bun-v${runtime.version}`;
  const refOf = new Map(packages.map((it) => [it.name, packageUrl(it)]));
  const needed = new Set(packages.flatMap((it) => it.dependencies));
  const body = {
    metadata: {
      component: {
        type: "application",
        "bom-ref": self,
        name: product.name,
        version: product.version,
        licenses: [{ license: { id: product.license } }],
      },
    },
    components: [...packages.map(packageComponent), runtimeComponent(bun, runtime)],
    dependencies: [
      {
        ref: self,
        dependsOn: [...packages.filter((it) => !needed.has(it.name)).map(packageUrl), bun],
      },
      ...packages.map((it) => ({
        ref: packageUrl(it),
        dependsOn: it.dependencies
          .map((name) => refOf.get(name))
          .filter((ref) => ref !== undefined),
      })),
      { ref: bun, dependsOn: [] },
    ],
  };
  const head = {
    $schema: "http://cyclonedx.org/schema/bom-1.5.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify(body))}`,
    version: 1,
  };
  return `${JSON.stringify({ ...head, ...body }, null, 2)}\n`;
}

function packageUrl(it: BundledPackage): string {
  return `pkg:npm/${it.name.replace("@", "%40")}@${it.version}`;
}

function packageComponent(it: BundledPackage) {
  const [group, name] = it.name.startsWith("@") ? it.name.split("/") : [undefined, it.name];
  return {
    type: "library",
    "bom-ref": packageUrl(it),
    ...(group !== undefined && { group }),
    name,
    version: it.version,
    hashes: [{ alg: "SHA-512", content: it.sha512 }],
    licenses: [{ license: { id: it.licence } }],
    purl: packageUrl(it),
  };
}

/** Bun does not say which versions it links, so its parts have none. */
function runtimeComponent(purl: string, runtime: Runtime) {
  return {
    type: "platform",
    "bom-ref": purl,
    name: "bun",
    version: runtime.version,
    licenses: [{ license: { id: "MIT" } }],
    purl,
    components: runtime.parts.map((part) => ({
      type: "library",
      "bom-ref": `${purl}#${part.name.replace(/[^a-z0-9_.-]+/gi, "-")}`,
      name: part.name,
      licenses: [{ license: { name: part.licence } }],
      externalReferences: [{ type: "website", url: part.url }],
    })),
  };
}

/** A name-based UUID (version 8) of the content. */
function uuidOf(text: string): string {
  const hex = new Bun.CryptoHasher("sha256").update(text).digest("hex");
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `a${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join("-");
}
