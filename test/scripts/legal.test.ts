// What the executable says about others' licences is what the tree would generate now.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { licencesText } from "../../scripts/dev.d/legal/licences.ts";
import { bundledPackages } from "../../scripts/dev.d/legal/packages.ts";
import { partsIn, runtimeOf } from "../../scripts/dev.d/legal/runtime.ts";
import { sbomText } from "../../scripts/dev.d/legal/sbom.ts";

const top = join(import.meta.dir, "../..");
const about = { packages: await bundledPackages(top), runtime: runtimeOf(top) };
const licences = licencesText(top, about);
const sbom = sbomText(top, about);

test("the licence texts are up to date; otherwise run scripts/dev legal", () => {
  expect(readFileSync(join(top, "src/install/legal/licenses.txt"), "utf8")).toBe(licences);
  expect(licences).toContain("GNU LESSER GENERAL PUBLIC LICENSE");
});

test("every run-time dependency, and Bun, is in both with its version", () => {
  const manifest = JSON.parse(readFileSync(join(top, "package.json"), "utf8")) as {
    readonly dependencies: Readonly<Record<string, string>>;
    readonly devDependencies: Readonly<Record<string, string>>;
  };
  const { components } = JSON.parse(sbom) as {
    components: readonly { group?: string; name: string; version: string }[];
  };
  const listed = components.map(
    ({ group, name, version }) => `${group === undefined ? "" : `${group}/`}${name} ${version}`,
  );
  for (const [name, version] of Object.entries(manifest.dependencies)) {
    expect(listed).toContain(`${name} ${version}`);
    expect(licences).toContain(`${name} ${version} (`);
  }
  expect(listed).toContain(`bun ${manifest.devDependencies["bun"]}`);
});

test("the references of the bill of materials are unique and resolve", () => {
  const { metadata, components, dependencies } = JSON.parse(sbom) as {
    metadata: { component: { "bom-ref": string } };
    components: readonly Component[];
    dependencies: readonly { ref: string; dependsOn: readonly string[] }[];
  };
  const refs = [metadata.component["bom-ref"], ...refsOf(components)];
  expect(new Set(refs).size).toBe(refs.length);
  const used = dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]);
  expect(used.filter((ref) => !refs.includes(ref))).toEqual([]);
});

test("a licence page of another layout is refused instead of giving an empty list", () => {
  expect(() => partsIn("Bun itself is MIT-licensed.")).toThrow("laid out in another way");
});

type Component = { readonly "bom-ref": string; readonly components?: readonly Component[] };

function refsOf(components: readonly Component[]): readonly string[] {
  return components.flatMap((it) => [it["bom-ref"], ...refsOf(it.components ?? [])]);
}
