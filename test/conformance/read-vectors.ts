/** Reads the recorded decisions of the kubelet's own collectors. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

import { fromRfc3339, type Instant } from "../../src/model/time.ts";

export function timeOf(text: string): Instant {
  const at = fromRfc3339(text);
  if (at === null) throw new Error(`the vector has a time that is none: ${text}`);
  return at;
}

/** One JSON object a line, whose shape the caller knows. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function readVectors<Vector>(name: string): readonly Vector[] {
  const packed = readFileSync(join(import.meta.dir, `vectors/${name}.jsonl.gz`));
  const text = gunzipSync(packed).toString("utf8");
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => JSON.parse(line) as Vector);
}
