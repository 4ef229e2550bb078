// Moves a broken state file aside under a new name, so that nothing is lost and the next start is a fresh one.

import type { StateFiles } from "../model/ports.ts";
import { type Instant, toRfc3339 } from "../model/time.ts";
import type { StatePaths } from "./connection.ts";

const brokenMax = 3;
const mark = ".broken-";

/** Returns the file's new path. Its log and index move with it, so that SQLite can still read them together. */
export function moveAside(paths: StatePaths, files: StateFiles, now: Instant): string {
  const name = `${paths.database.slice(paths.database.lastIndexOf("/") + 1)}${mark}`;
  const before = stemsIn(files.names(paths.directory), name);
  // Numbered, because the wall clock may be wrong and two files may break within a second; the time is for humans.
  const number = Math.max(0, ...before.map(numberOf)) + 1;
  const time = toRfc3339(now).replace(/\.\d+|[-:]/g, "");
  const aside = `${paths.database}${mark}${number}-${time}`;
  for (const suffix of ["", "-wal", "-shm"]) {
    const from = `${paths.database}${suffix}`;
    if (files.sizeBytes(from) !== null) files.rename(from, `${aside}${suffix}`);
  }
  const tooMany = before
    .toSorted((one, other) => numberOf(other) - numberOf(one) || (one < other ? 1 : -1))
    .slice(brokenMax - 1);
  for (const found of files.names(paths.directory))
    if (tooMany.some((stem) => stemOf(found) === `${name}${stem}`))
      files.remove(`${paths.directory}/${found}`);
  return aside;
}

/** The suffix of each file that was moved aside before, once for each with its log and index. */
const stemsIn = (names: readonly string[], name: string): readonly string[] => [
  ...new Set(names.filter((it) => it.startsWith(name)).map((it) => stemOf(it).slice(name.length))),
];

const stemOf = (name: string): string => name.replace(/-(?:wal|shm)$/, "");

/** 0 for files of earlier versions, which have only a time. */
const numberOf = (stem: string): number => Number(/^(\d+)-/.exec(stem)?.[1] ?? 0);
