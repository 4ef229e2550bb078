// The npm packages that end up in the executable, as the bundler sees them, with their licence texts.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type BundledPackage = {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly licence: string;
  readonly licenceText: string;
  /** SHA-512 of the archive in the registry, in hex, as the lock file holds it. */
  readonly sha512: string;
  /** Names of the bundled packages that it needs. */
  readonly dependencies: readonly string[];
};

/** What the run-time dependencies bring into a bundle; parts that no import reaches are left out. */
export async function bundledPackages(top: string): Promise<readonly BundledPackage[]> {
  const { dependencies } = readJson(join(top, "package.json"));
  const result = await Bun.build({
    entrypoints: Object.keys(dependencies ?? {}).map((name) => Bun.resolveSync(name, top)),
    target: "bun",
    metafile: true,
    root: top,
  });
  const inputs = Object.keys(result.metafile?.inputs ?? {});
  const names = [...new Set(inputs.map(packageOf).filter((name) => name !== undefined))];
  const lock = readFileSync(join(top, "bun.lock"), "utf8");
  return names
    .toSorted()
    .map((name) => describePackage({ folder: join(top, "node_modules", name), lock, names }));
}

/** `node_modules/@grpc/grpc-js/build/src/index.js` belongs to `@grpc/grpc-js`. */
function packageOf(path: string): string | undefined {
  return /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];
}

function describePackage(about: {
  readonly folder: string;
  readonly lock: string;
  readonly names: readonly string[];
}): BundledPackage {
  const { name, version, license, dependencies } = readJson(join(about.folder, "package.json"));
  if (name === undefined || version === undefined || license === undefined)
    throw new Error(`${about.folder}/package.json says no name, version or licence`);
  return {
    name,
    version,
    licence: license,
    licenceText: licenceText(about.folder),
    sha512: lockedHash(about.lock, `${name}@${version}`),
    dependencies: Object.keys(dependencies ?? {}).filter((it) => about.names.includes(it)),
  };
}

function licenceText(folder: string): string {
  const files = existsSync(folder) ? readdirSync(folder) : [];
  const texts = files
    .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    .toSorted()
    .map((file) => readFileSync(join(folder, file), "utf8").trim());
  if (texts.length === 0) throw new Error(`${folder} has no licence text: add its text by hand`);
  return texts.join("\n\n");
}

function lockedHash(lock: string, key: string): string {
  const line = lock.split("\n").find((it) => it.includes(`["${key}"`));
  const hash = line === undefined ? undefined : /"sha512-([^"]+)"/.exec(line)?.[1];
  if (hash === undefined) throw new Error(`bun.lock has no hash of ${key}`);
  return Buffer.from(hash, "base64").toString("hex");
}

type PackageJson = {
  readonly name?: string;
  readonly version?: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
};

function readJson(path: string): PackageJson {
  return JSON.parse(readFileSync(path, "utf8")) as PackageJson;
}
