// Regenerates licence texts and bill of materials: run scripts/bun scripts/legal.ts after a dependency changed.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { legalFiles } from "./legal/generate.ts";

const top = join(import.meta.dir, "..");
for (const [path, text] of await legalFiles(top)) {
  writeFileSync(join(top, path), text);
  console.log(`wrote ${path}: ${text.length} characters`);
}
