// Makes a real disk free its space late: what is open stays on the disk after it was removed.
import { closeSync, openSync, readdirSync } from "node:fs";

/**
 * Opens every regular file below `directory`. Whatever is removed of them takes its space until `release`, as with
 * a runtime that answers before it has freed anything.
 */
export function holdSpace(directory: string): { readonly release: () => void } {
  const open = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => openSync(`${entry.parentPath}/${entry.name}`, "r"));
  return {
    release: () => {
      for (const file of open.splice(0)) closeSync(file);
    },
  };
}
