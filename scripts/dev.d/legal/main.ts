// Regenerates licence texts and bill of materials, after a dependency changed: scripts/dev legal

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { legalFiles } from "./generate.ts";

const top = join(import.meta.dir, "../../..");
for (const [path, text] of await legalFiles(top)) {
  writeFileSync(join(top, path), text);
  console.log(`wrote ${path}: ${text.length} characters`);
}
