/** Reads the recorded decisions of the kubelet's own collectors; CRIGC_VECTORS names another directory with the same files. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

import { fromRfc3339, type Instant } from "../../src/model/time.ts";

const directory = process.env["CRIGC_VECTORS"] ?? join(import.meta.dir, "vectors");

export function timeOf(text: string): Instant {
  const at = fromRfc3339(text);
  if (at === null) throw new Error(`the vector has a time that is none: ${text}`);
  return at;
}

/** `NAME.jsonl` of the directory, or `NAME.jsonl.gz`: one JSON object a line, whose shape the caller knows. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function readVectors<Vector>(name: string): readonly Vector[] {
  const plain = join(directory, `${name}.jsonl`);
  const text = existsSync(plain)
    ? readFileSync(plain, "utf8")
    : gunzipSync(readFileSync(`${plain}.gz`)).toString("utf8");
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => JSON.parse(line) as Vector);
}

/** The histories of the chosen directory; none, with a message, if it has no such file. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function readHistories<History>(name: string): readonly History[] {
  const path = join(directory, `${name}.jsonl`);
  if (existsSync(path) || existsSync(`${path}.gz`)) return readVectors<History>(name);
  console.warn(`skipped: no ${name}.jsonl or ${name}.jsonl.gz in ${directory}`);
  return [];
}
