// Makes a real disk free its space late: what is open stays on the disk after it was removed.
import { closeSync, fstatSync, openSync, readdirSync } from "node:fs";

/**
 * Opens every regular file below `directory`. Whatever is removed of them takes its space until `release`, as with
 * a runtime that answers before it has freed anything.
 */
export function holdSpace(directory: string): { readonly release: () => void } {
  const open = [...openFilesBelow(directory)];
  return {
    release: () => {
      for (const file of open.splice(0)) closeSync(file);
    },
  };
}

/**
 * Each file below `directory` gives its space back `lateMs` after it was removed, one by one, as a runtime would that
 * cleans up behind its answers.
 */
export function delaySpace(directory: string, lateMs: number): { readonly stop: () => void } {
  const open = new Set(openFilesBelow(directory));
  const watching = setInterval(() => {
    for (const file of open) {
      if (fstatSync(file).nlink > 0) continue;
      open.delete(file);
      setTimeout(() => closeSync(file), lateMs);
    }
  }, 10);
  return {
    stop: () => {
      clearInterval(watching);
      for (const file of open) closeSync(file);
      open.clear();
    },
  };
}

const openFilesBelow = (directory: string): readonly number[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => openSync(`${entry.parentPath}/${entry.name}`, "r"));
