// Puts a broken state file aside under a name of its own, so that nothing is lost and the next start is a fresh one.

import { type Instant, toRfc3339 } from "../model/time.ts";
import type { StatePaths } from "./connection.ts";
import type { StateFiles } from "./ports.ts";

const brokenMax = 3;
const mark = ".broken-";

/** Returns where the file is now. Its log and index go with it, so that SQLite can still read them together. */
export function moveAside(paths: StatePaths, files: StateFiles, now: Instant): string {
  const time = toRfc3339(now).replace(/\.\d+|[-:]/g, "");
  const aside = `${paths.database}${mark}${time}`;
  for (const suffix of ["", "-wal", "-shm"]) {
    const from = `${paths.database}${suffix}`;
    if (files.sizeBytes(from) !== null) files.rename(from, `${aside}${suffix}`);
  }
  dropOldest(paths, files);
  return aside;
}

/** Names end in a time, so that their order is that of their age. */
function dropOldest(paths: StatePaths, files: StateFiles): void {
  const prefix = `${paths.database.slice(paths.database.lastIndexOf("/") + 1)}${mark}`;
  const found = files.names(paths.directory).filter((name) => name.startsWith(prefix));
  const stems = [...new Set(found.map((name) => name.replace(/-(?:wal|shm)$/, "")))].toSorted();
  const dropped = new Set(stems.slice(0, Math.max(0, stems.length - brokenMax)));
  for (const name of found)
    if (dropped.has(name.replace(/-(?:wal|shm)$/, ""))) files.remove(`${paths.directory}/${name}`);
}
