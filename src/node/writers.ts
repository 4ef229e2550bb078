// The processes that write a state directory: each locks its own file and removes it once everything is written.
// An unlocked file shows that its process ended before that, one with content that it cannot write.

import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";

import type { OtherWriters, WriterPresence } from "../model/ports.ts";
import { namesIn } from "./files.ts";
import { tryFlock, unlockFlock } from "./libc.ts";
import { endpointHash, type LockPlaces, openLockFile } from "./lock.ts";

/** Throws `HostError` if no lock can be taken. */
export function enterWriters(stateDirectory: string, places: LockPlaces): WriterPresence {
  const id = crypto.randomUUID();
  const opened = openLockFile({ name: `entering-${id}`, endpoint: stateDirectory }, places);
  const directory = dirname(opened.path);
  const path = join(directory, fileOf(id, stateDirectory));
  tryFlock(opened.fd);
  // Others see the file only once it is locked.
  renameSync(opened.path, path);
  let isOpen = true;
  return {
    others: () => {
      // Its own file may be unlocked already: it ended before everything was written.
      const found = writersIn([directory], stateDirectory, path);
      found.dead?.forEach(remove);
      return othersOf(found);
    },
    // Needs no room on the disk.
    behind: (isBehind) =>
      void (isOpen && ifPossible(() => ftruncateSync(opened.fd, Number(isBehind)))),
    end: (isComplete) => {
      if (!isOpen) return;
      isOpen = false;
      if (isComplete) remove(path);
      unlockFlock(opened.fd);
      closeSync(opened.fd);
    },
  };
}

/** For a reader, which removes nothing. */
export function otherWriters(stateDirectory: string, places: LockPlaces): OtherWriters {
  const directories = [join(places.systemRun, "crigc"), places.runDirectory];
  const locks = directories.map((directory) => join(directory, "locks"));
  return othersOf(writersIn(locks, stateDirectory));
}

const othersOf = ({ current, behind, dead }: ReturnType<typeof writersIn>): OtherWriters => ({
  isOneAlive: (current ?? behind) !== undefined,
  isOneBehind: (behind ?? dead) !== undefined,
});

const fileOf = (id: string, stateDirectory: string): string =>
  `writer-${id}-${endpointHash(stateDirectory)}.lock`;

/** Their files. */
function writersIn(directories: readonly string[], stateDirectory: string, own?: string) {
  const [prefix = "", suffix = ""] = fileOf("/", stateDirectory).split("/");
  const files = directories.flatMap((directory) =>
    namesIn(directory)
      .filter((name) => name.startsWith(prefix) && name.endsWith(suffix))
      .map((name) => join(directory, name))
      .filter((path) => path !== own),
  );
  return Object.groupBy(files, stateOf);
}

/** One that cannot be opened has ended, or is another user's. */
function stateOf(path: string): "current" | "behind" | "dead" {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return "current";
  }
  try {
    if (tryFlock(fd, "shared").kind === "locked") return "dead";
    return fstatSync(fd).size > 0 ? "behind" : "current";
  } finally {
    closeSync(fd);
  }
}

/** Or another process will find it. */
const remove = (path: string): void => ifPossible(() => rmSync(path, { force: true }));

function ifPossible(change: () => void): void {
  try {
    change();
  } catch {}
}
