// The processes that write a state directory: each locks its own file and removes it once everything is written.
// An unlocked file shows that its process ended before that.

import { closeSync, constants, openSync, renameSync, rmSync } from "node:fs";
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
      const { alive, dead } = writersIn(directory, stateDirectory, path);
      for (const other of dead) removeIfPossible(other);
      return { isOneAlive: alive.length > 0, isOneDead: dead.length > 0 };
    },
    end: (isComplete) => {
      if (!isOpen) return;
      isOpen = false;
      if (isComplete) removeIfPossible(path);
      unlockFlock(opened.fd);
      closeSync(opened.fd);
    },
  };
}

/** For a reader, which removes nothing. */
export function otherWriters(stateDirectory: string, places: LockPlaces): OtherWriters {
  const found = [join(places.systemRun, "crigc"), places.runDirectory].map((directory) =>
    writersIn(join(directory, "locks"), stateDirectory),
  );
  return {
    isOneAlive: found.some(({ alive }) => alive.length > 0),
    isOneDead: found.some(({ dead }) => dead.length > 0),
  };
}

const fileOf = (id: string, stateDirectory: string): string =>
  `writer-${id}-${endpointHash(stateDirectory)}.lock`;

/** Their files. */
function writersIn(directory: string, stateDirectory: string, own?: string) {
  const [prefix = "", suffix = ""] = fileOf("/", stateDirectory).split("/");
  const files = namesIn(directory)
    .filter((name) => name.startsWith(prefix) && name.endsWith(suffix))
    .map((name) => join(directory, name))
    .filter((path) => path !== own);
  const { alive = [], dead = [] } = Object.groupBy(files, (path) =>
    isHeld(path) ? "alive" : "dead",
  );
  return { alive, dead };
}

/** One that cannot be opened has ended, or is another user's. */
function isHeld(path: string): boolean {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return true;
  }
  try {
    return tryFlock(fd, "shared").kind !== "locked";
  } finally {
    closeSync(fd);
  }
}

function removeIfPossible(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // Another process will find it.
  }
}
