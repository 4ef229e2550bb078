// The processes that write a state directory: each locks its own file and removes it once everything is written.
// An unlocked file shows that its process ended before that.

import { closeSync, constants, openSync, readdirSync, renameSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";

import type { OtherWriters, WriterPresence } from "../model/ports.ts";
import { tryFlock, unlockFlock } from "./libc.ts";
import { endpointHash, type LockPlaces, openLockFile } from "./lock.ts";

/** Throws `HostError` if no lock can be taken. */
export function enterWriters(stateDirectory: string, places: LockPlaces): WriterPresence {
  const id = crypto.randomUUID();
  const opened = openLockFile({ name: `entering-${id}`, endpoint: stateDirectory }, places);
  const path = join(dirname(opened.path), fileOf(id, stateDirectory));
  tryFlock(opened.fd);
  // Others see the file only once it is locked.
  renameSync(opened.path, path);
  let isOpen = true;
  return {
    id,
    others: () => othersIn(dirname(path), { stateDirectory, own: id, tidies: true }),
    end: (isComplete) => {
      if (!isOpen) return;
      isOpen = false;
      if (isComplete) unlinkIfPossible(path);
      unlockFlock(opened.fd);
      closeSync(opened.fd);
    },
  };
}

/** For a reader, which removes nothing. */
export function otherWriters(stateDirectory: string, places: LockPlaces): OtherWriters {
  const found = [join(places.systemRun, "crigc"), places.runDirectory].map((directory) =>
    othersIn(join(directory, "locks"), { stateDirectory, own: null, tidies: false }),
  );
  return {
    alive: found.flatMap(({ alive }) => alive),
    isOneDead: found.some(({ isOneDead }) => isOneDead),
  };
}

interface Looking {
  readonly stateDirectory: string;
  readonly own: string | null;
  readonly tidies: boolean;
}

function othersIn(directory: string, { stateDirectory, own, tidies }: Looking): OtherWriters {
  const alive: string[] = [];
  let isOneDead = false;
  const suffix = fileOf("", stateDirectory).slice(PREFIX.length);
  for (const name of namesIn(directory)) {
    if (!name.startsWith(PREFIX) || !name.endsWith(suffix)) continue;
    const id = name.slice(PREFIX.length, -suffix.length);
    if (id === own) continue;
    const path = join(directory, name);
    if (isHeld(path)) alive.push(id);
    else {
      isOneDead = true;
      if (tidies) unlinkIfPossible(path);
    }
  }
  return { alive, isOneDead };
}

const PREFIX = "writer-";
const fileOf = (id: string, stateDirectory: string): string =>
  `${PREFIX}${id}-${endpointHash(stateDirectory)}.lock`;

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** One that cannot be opened ended meanwhile, or is another user's. */
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

function unlinkIfPossible(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Another process removed it, or will find it.
  }
}
