// Prints the provenance of a release folder, in-toto statement v1 with the SLSA v1 predicate: commit, toolchain, commands.
//
// It has no time and no name of a machine: `scripts/release --verify` rebuilds the same file.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import packaged from "../package.json" with { type: "json" };

const top = join(import.meta.dir, "..");
const NAME = "crigc.provenance.json";

const sha256 = (path: string): string =>
  new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex");

/** `commands`: what was run in the folder of the sources, one line each. */
function provenance(folder: string, commit: string, commands: readonly string[]) {
  const { homepage, version, devDependencies } = packaged;
  const runtimes = join(top, ".cache/runtimes", devDependencies.bun);
  const isWhole = /^[0-9a-f]{40}$/.test(commit);
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: readdirSync(folder)
      .filter((name) => name !== NAME && !name.startsWith("SHA256SUMS"))
      .toSorted()
      .map((name) => ({ name, digest: { sha256: sha256(join(folder, name)) } })),
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: `${homepage}/scripts/release`,
        externalParameters: { source: homepage, version, commit },
        internalParameters: { commands },
        resolvedDependencies: [
          // A tree that git does not know by a commit has no digest.
          { name: "sources", uri: homepage, ...(isWhole ? { digest: { gitCommit: commit } } : {}) },
          ...["bun.lock", "package.json", "scripts/setup.d/c-library"].map((name) => ({
            name,
            digest: { sha256: sha256(join(top, name)) },
          })),
          ...readdirSync(runtimes)
            .toSorted()
            .map((name) => ({
              name,
              uri: `pkg:npm/%40oven/${name}@${devDependencies.bun}`,
              digest: { sha256: sha256(join(runtimes, name)) },
            })),
        ],
      },
      runDetails: {
        builder: { id: `${homepage}/scripts/release`, version: { bun: devDependencies.bun } },
      },
    },
  };
}

const [folder = "", commit = "", ...commands] = process.argv.slice(2);
process.stdout.write(`${JSON.stringify(provenance(folder, commit, commands), null, 2)}\n`);
