// Mutants that the compiler refuses never reach a machine: scripts/verify is part of every commit.

import { rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import type { Mutant } from "./mutants.ts";

const marker = ".mutant-";

/** Each mutant is compiled as one more file beside its source, all of them at once. */
export async function refusedByCompiler(
  mutants: readonly Mutant[],
  tree: string,
): Promise<readonly Mutant[]> {
  if (mutants.length === 0) return [];
  rmSync(tree, { recursive: true, force: true });
  for (const path of ["src", "proto", "tsconfig.json", "package.json"])
    Bun.spawnSync(["cp", "-a", "--parents", path, ensured(tree)]);
  Bun.spawnSync(["ln", "-s", join(process.cwd(), "node_modules"), join(tree, "node_modules")]);
  for (const mutant of mutants) {
    const name = `${basename(mutant.file, ".ts")}${marker}${mutant.id}.ts`;
    writeFileSync(join(tree, dirname(mutant.file), name), mutant.text);
  }
  writeFileSync(
    join(tree, "tsconfig.mutants.json"),
    JSON.stringify({
      extends: "./tsconfig.json",
      // That a name is no longer used says nothing about what the code does.
      compilerOptions: {
        noUnusedLocals: false,
        noUnusedParameters: false,
        allowUnreachableCode: true,
      },
      include: ["src"],
    }),
  );
  const child = Bun.spawnSync(["node_modules/.bin/tsc", "-p", "tsconfig.mutants.json"], {
    cwd: tree,
  });
  const text = child.stdout.toString();
  const refused = new Set([...text.matchAll(/\.mutant-(\d+)\.ts[:(]/g)].map((match) => match[1]));
  return mutants.filter(({ id }) => refused.has(id));
}

function ensured(directory: string): string {
  Bun.spawnSync(["mkdir", "-p", directory]);
  return directory;
}
