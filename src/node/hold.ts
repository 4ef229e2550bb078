/** The hold: `hold.json` in the state directory, in force also if it cannot be understood. */

import { readFileSync, statSync, unlinkSync } from "node:fs";
import { join } from "node:path";

import * as v from "valibot";

import { time } from "../model/codec.ts";
import type { HoldState } from "../model/pass.ts";
import { type Duration, type Instant, plus, toRfc3339 } from "../model/time.ts";
import { parsedJson } from "../model/values.ts";
import { readClocks } from "./clock.ts";
import { hostError, isAbsent, mayExist, reasonOf, writeWholeFile } from "./files.ts";
import { stateDirectory } from "./lock.ts";

export interface HoldRequest {
  readonly length: Duration;
  readonly reason: string;
  /** Who put it there, for humans: `root, crigc hold`. */
  readonly by: string;
}

const HoldFile = v.object({
  since: time.schema,
  until: time.schema,
  reason: v.string(),
  bootId: v.string(),
  untilUptimeMs: v.pipe(v.number(), v.safeInteger()),
});

const pathIn = (stateDir: string): string => join(stateDir, "hold.json");

/** Replaces any hold; returns its end. Throws `HostError` `write`. */
export function writeHold(
  stateDir: string,
  { length, reason, by }: HoldRequest,
  { wall, uptime, bootId } = readClocks(),
): Instant {
  const until = plus(wall, length);
  const hold = {
    apiVersion: "crigc/v1",
    kind: "Hold",
    since: toRfc3339(wall),
    until: toRfc3339(until),
    reason,
    by,
    bootId,
    untilUptimeMs: Number((uptime + length) / 1_000_000n),
  };
  // What it cannot create cannot be written to either.
  stateDirectory(stateDir);
  writeWholeFile(pathIn(stateDir), `${JSON.stringify(hold, null, 2)}\n`);
  return until;
}

/** Returns whether there was one. Throws `HostError` `write` if it stays. */
export function releaseHold(stateDir: string): boolean {
  const path = pathIn(stateDir);
  // A directory that is mounted read-only refuses to delete also what is not there.
  if (!mayExist(path)) return false;
  try {
    unlinkSync(path);
    return true;
  } catch (error) {
    if (isAbsent(error)) return false;
    throw hostError("write", error, `cannot release the hold ${path}`, "; remove the file");
  }
}

/** Never throws: an unreadable or invalid file counts as a hold until it is removed. */
export function readHold(stateDir: string): HoldState {
  const path = pathIn(stateDir);
  // Called before each removal, so absence must be cheap to detect. A dangling link counts as a hold: somebody put it
  // there.
  if (!mayExist(path)) return { kind: "none" };
  try {
    // Reading a pipe without a writer would never end.
    if (!statSync(path).isFile()) return unclear(path, "cannot be read: it is not a regular file");
    return judgeHold(readFileSync(path, "utf8"), path);
  } catch (error) {
    if (isAbsent(error) && !mayExist(path)) return { kind: "none" };
    return unclear(path, `cannot be read: ${reasonOf(error)}`);
  }
}

const unclear = (path: string, what: string): HoldState => ({
  kind: "held",
  until: null,
  since: null,
  reason: `the hold ${path} ${what}`,
});

/** A hold ends by the time since the boot in which it was written or by the wall clock, whichever is first. */
export function judgeHold(text: string, path: string, now = readClocks()): HoldState {
  const file = v.safeParse(HoldFile, parsedJson(text));
  if (!file.success) return unclear(path, "is invalid");
  const { since, until, reason, bootId, untilUptimeMs } = file.output;
  const isSameBoot = bootId !== "" && now.bootId === bootId;
  const isOver =
    now.wall >= until || (isSameBoot && Number(now.uptime / 1_000_000n) >= untilUptimeMs);
  return isOver ? { kind: "none" } : { kind: "held", until, since, reason };
}
