// The hold as a file: written where possible, read in both places, and in force if it cannot be understood.

import { mkdirSync, readFileSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";

import { HostError } from "../model/errors.ts";
import type { HoldState } from "../model/hold.ts";
import type { Clocks } from "../model/snapshot.ts";
import { type Duration, fromRfc3339, type Instant, plus, toRfc3339 } from "../model/time.ts";
import { isMap, parsedJson } from "../model/values.ts";
import { readClocks } from "./clock.ts";
import { asRoot, codeOf, mayExist, reasonOf, writeWholeFile } from "./files.ts";

export interface HoldPlaces {
  readonly stateDir: string;
  /** Used if the state directory cannot be written. */
  readonly runDir: string;
}

export interface HoldRequest {
  readonly length: Duration;
  readonly reason: string;
  /** Who put it there, for humans: `root, crigc hold`. */
  readonly by: string;
}

/**
 * Replaces any hold that can be removed; returns its file and its end. Throws `HostError` `write` if neither directory
 * can be written.
 */
export function writeHold(
  places: HoldPlaces,
  request: HoldRequest,
  clocks: Clocks = readClocks(),
): { readonly path: string; readonly until: Instant } {
  const until = plus(clocks.wall, request.length);
  const text = `${JSON.stringify(
    {
      apiVersion: "crigc/v1",
      kind: "Hold",
      since: toRfc3339(clocks.wall),
      until: toRfc3339(until),
      reason: request.reason,
      by: request.by,
      bootId: clocks.bootId,
      untilUptimeMs: Number((clocks.uptime + request.length) / 1_000_000n),
    },
    null,
    2,
  )}\n`;
  const [first, second] = pathsOf(places);
  let path = first;
  try {
    write(first, text);
  } catch (error) {
    if (first === second) throw error;
    path = second;
    write(second, text);
  }
  if (first !== second) removeIfPossible(path === first ? second : first);
  return { path, until };
}

/** The longer of two holds is in force, so the caller sees one that could not be removed. */
function removeIfPossible(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It is absent, or in a place where nothing can be written.
  }
}

/** The hold in force, if any. Never throws: an unreadable or invalid file counts as a hold until it is removed. */
export function readHold(places: HoldPlaces, now: Instant): HoldState {
  const clocks = (): Clocks => ({ ...readClocks(), wall: now });
  const states = pathsOf(places).map((path) => stateOf(path, clocks));
  return states.reduce(longer);
}

/** Removes the hold from both directories, even if one refuses; returns whether there was one. Throws `HostError` `write` if one stays. */
export function releaseHold(places: HoldPlaces): boolean {
  let found = false;
  let failure: HostError | null = null;
  for (const path of new Set(pathsOf(places))) {
    // A directory that is mounted read-only refuses to delete also what is not there.
    if (!mayExist(path)) continue;
    try {
      unlinkSync(path);
      found = true;
    } catch (error) {
      if (isAbsent(error)) continue;
      failure ??= new HostError(
        "write",
        `cannot release the hold ${path}: ${reasonOf(error)}${asRoot(error) || "; remove the file"}`,
        { cause: error },
      );
    }
  }
  if (failure !== null) throw failure;
  return found;
}

const pathsOf = (places: HoldPlaces): readonly [string, string] => [
  join(places.stateDir, "hold.json"),
  join(places.runDir, "hold.json"),
];

function write(path: string, text: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new HostError(
      "write",
      `cannot write the hold ${path}: ${reasonOf(error)}${asRoot(error) || "; set another directory with --state-dir or --run-dir"}`,
      { cause: error },
    );
  }
  writeWholeFile(path, text);
}

/** If part of the path is not a directory, there is no hold. */
const isAbsent = (error: unknown): boolean => ["ENOENT", "ENOTDIR"].includes(codeOf(error));

function stateOf(path: string, clocks: () => Clocks): HoldState {
  // Called before each removal, so absence must be cheap to detect. A dangling link counts as a hold: somebody put it
  // there.
  if (!mayExist(path)) return { kind: "none" };
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (isAbsent(error) && !mayExist(path)) return { kind: "none" };
    return unclear(path, `cannot be read: ${reasonOf(error)}`);
  }
  return judgeHold(text, path, clocks());
}

const unclear = (path: string, what: string): HoldState => ({
  kind: "held",
  until: null,
  since: null,
  reason: `the hold ${path} ${what}; it stays in force until crigc release`,
});

/** Whether the hold in the file is still in force. */
export function judgeHold(text: string, path: string, clocks: Clocks): HoldState {
  const file = parsed(text);
  if (file === null) return unclear(path, "is invalid");
  return isOver(file, clocks)
    ? { kind: "none" }
    : { kind: "held", until: file.until, since: file.since, reason: file.reason };
}

interface HoldFile {
  readonly since: Instant;
  readonly until: Instant;
  readonly reason: string;
  readonly bootId: string;
  readonly untilUptimeMs: number;
}

/**
 * During the boot in which it was written, a hold ends by the time since the boot, which changes of the wall clock do
 * not affect. After a reboot only the wall clock is left; if it was set back, the hold lasts longer.
 */
function isOver(file: HoldFile, clocks: Clocks): boolean {
  if (file.bootId !== "" && file.bootId === clocks.bootId)
    return Number(clocks.uptime / 1_000_000n) >= file.untilUptimeMs;
  return clocks.wall >= file.until;
}

function parsed(text: string): HoldFile | null {
  const value = parsedJson(text);
  if (!isMap(value)) return null;
  const [since, until] = [timeOf(value["since"]), timeOf(value["until"])];
  const { reason = "", bootId = "", untilUptimeMs = 0 } = value;
  if (since === null || until === null || typeof reason !== "string") return null;
  if (typeof bootId !== "string" || !Number.isSafeInteger(untilUptimeMs)) return null;
  return { since, until, reason, bootId, untilUptimeMs: Number(untilUptimeMs) };
}

const timeOf = (value: unknown): Instant | null =>
  typeof value === "string" ? fromRfc3339(value) : null;

/** The hold that lasts longer; one without an end lasts longest. */
function longer(one: HoldState, other: HoldState): HoldState {
  if (one.kind === "none") return other;
  if (other.kind === "none") return one;
  if (one.until === null || other.until === null) return one.until === null ? one : other;
  return one.until >= other.until ? one : other;
}
