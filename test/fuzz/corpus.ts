// Inputs that once failed, one a file: they are tried first, in each run and by whoever changes a parser.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const top = join(import.meta.dir, "corpus");

export interface PastFailure {
  readonly name: string;
  readonly input: Uint8Array;
}

export function pastFailures(target: string): readonly PastFailure[] {
  const directory = join(top, target);
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .toSorted()
    .map((name) => ({ name, input: new Uint8Array(readFileSync(join(directory, name))) }));
}

/** Parsers that have a directory there. */
export const corpusNames = (): readonly string[] => readdirSync(top).toSorted();

/** The file in which the input now is. */
export function keepFailure(target: string, input: Uint8Array): string {
  const directory = join(top, target);
  mkdirSync(directory, { recursive: true });
  const digest = new Bun.CryptoHasher("sha256").update(input).digest("hex");
  const path = join(directory, `found-${digest.slice(0, 12)}`);
  writeFileSync(path, input);
  return path;
}
