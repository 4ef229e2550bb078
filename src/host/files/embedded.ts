// Reads files that the build put into the executable, by the paths that their imports give.

import { readFileSync } from "node:fs";

export const readEmbedded = (path: string): string => readFileSync(path, "utf8");
