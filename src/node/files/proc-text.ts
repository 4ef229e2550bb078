// Reads files of /proc, which vanish with their process and may be hidden.

import { readFileSync } from "node:fs";

/** "" if it cannot be read. */
export function procText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
