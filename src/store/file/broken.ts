// Puts a broken state file aside under a name of its own, so that nothing is lost and the next start is a fresh one.

import { type Instant, toRfc3339 } from "../../model/time.ts";
import type { StateFiles } from "../ports.ts";
import type { StatePaths } from "./connection.ts";

const brokenMax = 3;
const mark = ".broken-";

/** Returns where the file is now. Its log and index go with it, so that SQLite can still read them together. */
export function moveAside(paths: StatePaths, files: StateFiles, now: Instant): string {
  const name = `${paths.database.slice(paths.database.lastIndexOf("/") + 1)}${mark}`;
  const before = stemsIn(files.names(paths.directory), name);
  // Numbered, because the wall clock may be wrong and two files may break within one second; the time is for people.
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

/** What follows the name of each file that was put aside before, once for each with its log and index. */
const stemsIn = (names: readonly string[], name: string): readonly string[] => [
  ...new Set(names.filter((it) => it.startsWith(name)).map((it) => stemOf(it).slice(name.length))),
];

const stemOf = (name: string): string => name.replace(/-(?:wal|shm)$/, "");

/** 0 for those of earlier versions, which had a time alone. */
const numberOf = (stem: string): number => Number(/^(\d+)-/.exec(stem)?.[1] ?? 0);
