// Reads files embedded in the executable, by the paths of their imports.

import { readFileSync } from "node:fs";

export const readEmbedded = (path: string): string => readFileSync(path, "utf8");
