// The hold as a file: written where possible, read in both places, and in force if it cannot be understood.

import { mkdirSync, readFileSync, statSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";

import * as v from "valibot";

import { time } from "../model/codec.ts";
import type { HostError } from "../model/errors.ts";
import type { HoldState } from "../model/pass.ts";
import type { Clocks } from "../model/snapshot.ts";
import { type Duration, duration, type Instant, plus, toMs, toRfc3339 } from "../model/time.ts";
import { parsedJson } from "../model/values.ts";
import { readClocks } from "./clock.ts";
import { asRoot, hostError, isAbsent, mayExist, reasonOf, writeWholeFile } from "./files.ts";

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

const HoldFile = v.object({
  since: time.schema,
  until: time.schema,
  reason: v.optional(v.string(), ""),
  bootId: v.optional(v.string(), ""),
  untilUptimeMs: v.optional(v.pipe(v.number(), v.safeInteger())),
});

/**
 * Replaces any hold that can be removed; returns its file and its end. Throws `HostError` `write` if neither directory
 * can be written.
 */
export function writeHold(
  places: HoldPlaces,
  { length, reason, by }: HoldRequest,
  { wall, uptime, bootId }: Clocks = readClocks(),
): { readonly path: string; readonly until: Instant } {
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
  const text = `${JSON.stringify(hold, null, 2)}\n`;
  const [first, second] = pathsOf(places);
  let path = first;
  try {
    write(first, text);
  } catch (error) {
    if (first === second) throw error;
    path = second;
    write(second, text);
  }
  try {
    if (first !== second) unlinkSync(path === first ? second : first);
  } catch {
    // It is absent, or in a place where nothing can be written. The longer of two holds is in force, so the caller sees
    // one that could not be removed.
  }
  return { path, until };
}

function write(path: string, text: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch (error) {
    const advice = asRoot(error) || "; set another directory with --state-dir or --run-dir";
    throw hostError("write", error, (why) => `cannot write the hold ${path}: ${why}${advice}`);
  }
  writeWholeFile(path, text);
}

const pathsOf = (places: HoldPlaces): readonly [string, string] => [
  join(places.stateDir, "hold.json"),
  join(places.runDir, "hold.json"),
];

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
      const advice = asRoot(error) || "; remove the file";
      failure ??= hostError(
        "write",
        error,
        (why) => `cannot release the hold ${path}: ${why}${advice}`,
      );
    }
  }
  if (failure !== null) throw failure;
  return found;
}

/** The hold in force, if any. Never throws: an unreadable or invalid file counts as a hold until it is removed. */
export function readHold(places: HoldPlaces, now: Instant): HoldState {
  return pathsOf(places)
    .map((path) => stateOf(path, () => ({ ...readClocks(), wall: now })))
    .reduce(longer);
}

function stateOf(path: string, clocks: () => Clocks): HoldState {
  // Called before each removal, so absence must be cheap to detect. A dangling link counts as a hold: somebody put it
  // there.
  if (!mayExist(path)) return { kind: "none" };
  let text: string;
  try {
    // Reading a pipe without a writer would never end.
    if (!statSync(path).isFile()) return unclear(path, "cannot be read: it is not a regular file");
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
  reason: `the hold ${path} ${what}`,
});

/**
 * Whether the hold in the file is still in force. During the boot in which it was written, a hold ends by the time since
 * the boot, which changes of the wall clock do not affect. After a reboot only the wall clock is left; if it was set
 * back, the hold lasts longer. A container that restarts (LXC) keeps the boot ID, and its time since the boot is lower.
 */
export function judgeHold(text: string, path: string, clocks: Clocks): HoldState {
  const file = v.safeParse(HoldFile, parsedJson(text));
  if (!file.success) return unclear(path, "is invalid");
  const { since, until, reason, bootId, untilUptimeMs } = file.output;
  const uptimeMs = Number(clocks.uptime / 1_000_000n);
  const isOfBoot =
    bootId !== "" &&
    bootId === clocks.bootId &&
    untilUptimeMs !== undefined &&
    uptimeMs >= untilUptimeMs - toMs(duration(until - since));
  const isOver = isOfBoot ? uptimeMs >= untilUptimeMs : clocks.wall >= until;
  return isOver ? { kind: "none" } : { kind: "held", until, since, reason };
}

/** The hold that lasts longer; one without an end lasts longest. */
function longer(one: HoldState, other: HoldState): HoldState {
  if (one.kind === "none") return other;
  if (other.kind === "none") return one;
  if (one.until === null || other.until === null) return one.until === null ? one : other;
  return one.until >= other.until ? one : other;
}
