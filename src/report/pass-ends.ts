/** How a half of a pass ends, in one table: words, outcome, exit code, and whether it failed. */

import type { ContainerOutcome, ImageEnd } from "../model/pass.ts";

export type PassOutcome =
  | "done"
  | "idle"
  /** Ended before its target was reached. */
  | "short"
  | "futile"
  | "blocked"
  | "stopped"
  | "dry-run"
  | "failed";

interface EndFacts {
  readonly words: string;
  /** In metrics. */
  readonly outcome: PassOutcome;
  /** `plan`: the plan says whether something is missing. */
  readonly exit: 0 | 3 | 4 | "plan";
  /** Why the pass over images counts as failed, if its error says no more; absent: it has not failed. */
  readonly failure?: string;
  /** The disk of the images is no longer short of space. */
  readonly isRelieved?: true;
}

type End = ImageEnd | ContainerOutcome["end"];

export const PASS_ENDS: Readonly<Record<End, EndFacts>> = {
  done: { words: "done", outcome: "done", exit: 0 },
  "nothing-to-do": {
    words: "no threshold exceeded",
    outcome: "idle",
    exit: 0,
    isRelieved: true,
  },
  "target-reached": { words: "target reached", outcome: "done", exit: 0, isRelieved: true },
  estimated: {
    words:
      "about as much as was needed is removed, but the disk does not show it; the next pass judges anew",
    outcome: "short",
    exit: 4,
    isRelieved: true,
  },
  "candidates-exhausted": {
    words: "no candidates left, target not reached",
    outcome: "short",
    exit: "plan",
    failure: "cannot free enough space",
  },
  futile: {
    words: "the remaining candidates cannot reach the target, so they are kept",
    outcome: "futile",
    exit: 4,
  },
  blocked: { words: "removal is blocked", outcome: "blocked", exit: "plan" },
  "nothing-freed": {
    words: "removals give no space back",
    outcome: "futile",
    exit: 4,
    failure: "removals give no space back",
  },
  "no-room": {
    words: "the runtime has no room to record a removal",
    outcome: "short",
    exit: 4,
    failure: "the runtime has no room to record a removal",
  },
  "age-removal-errors": {
    words: "cannot remove images over the maximum age, so no space was freed",
    outcome: "short",
    exit: 0,
  },
  "invalid-capacity": {
    words: "invalid filesystem figures",
    outcome: "blocked",
    exit: 0,
    failure: "invalid figures of the image filesystem",
  },
  "observation-failed": {
    words: "a call or a measurement failed, so the pass stopped",
    outcome: "failed",
    exit: 3,
    failure: "a list or a measurement failed",
  },
  stopped: { words: "stopped on request", outcome: "stopped", exit: 4 },
  "dry-run": { words: "dry run, nothing removed", outcome: "dry-run", exit: "plan" },
};

/** An end of a later version is in the history, but not in the table. */
export const isEnd = (end: string): end is End => Object.hasOwn(PASS_ENDS, end);
