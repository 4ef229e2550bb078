// Images that are still listed after their removal: when the next attempt is due, and when there is none any more.
import { describe, expect, test } from "bun:test";

import { emptyLedger, type Ledger } from "../../../src/model/ledger.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import { type Duration, hours, instant, minutes, watched } from "../../../src/model/time.ts";
import { type GhostAttempt, remember, rememberGhost } from "../../../src/policy/remember.ts";
import { usageOf } from "../../../src/policy/image/usage.ts";
import { aGhost, aLedger, anImage, aRecord, aSnapshot, defaultLimits, NOW } from "../../support/build/values.ts";

const image = anImage("app");
const record = aRecord();
const { runtime } = aSnapshot();

/** One observation this much observed time after the first. */
function observed(ledger: Ledger, age: Duration, change: Partial<Snapshot> = {}): Ledger {
  const wall = instant(NOW + age);
  const snapshot = aSnapshot({
    clocks: { wall, uptime: (hours(48) + age) as Duration, bootId: "boot-1" },
    observedAt: wall,
    images: [image],
    ...change,
  });
  const next = remember({
    ledger,
    snapshot,
    usage: usageOf(snapshot),
    limits: defaultLimits.memory,
    pods: ledger.pods,
  });
  return { ...next, watched: watched(age) };
}

const tried = (ledger: Ledger, end: GhostAttempt["end"], instance = "1"): Ledger =>
  rememberGhost(ledger, { image, record, end, runtime: { ...runtime, instance } });
const ghostIn = (ledger: Ledger) => ledger.images.get(image.id)?.ghost ?? null;
const pauseIn = (ledger: Ledger): bigint => (ghostIn(ledger)?.retryWatched ?? 0n) - ledger.watched;

describe("the pause after each attempt", () => {
  const rows: readonly [string, readonly GhostAttempt["end"][], readonly Duration[]][] = [
    [
      "doubles from an hour to a day",
      ["unanswered", "unanswered", "unanswered", "unanswered", "unanswered", "unanswered"],
      [1, 2, 4, 8, 16, 24].map(hours),
    ],
    ["is none after the first cut-off", ["cut-off", "cut-off", "cut-off"], [0, 1, 2].map(hours)],
    ["is none after a cut-off that follows others", ["unanswered", "cut-off"], [1, 0].map(hours)],
    [
      "is an hour if a cut-off is followed by an answer",
      ["cut-off", "answered"],
      [0, 1].map(hours),
    ],
  ];
  test.each(rows)("%s", (_, ends, pauses) => {
    let ledger = observed(aLedger(), hours(0));
    for (const [index, end] of ends.entries()) {
      ledger = tried(ledger, end);
      expect(pauseIn(ledger)).toBe(pauses[index] ?? -1n);
    }
  });

  test("ends at once if the runtime was restarted, the first time", () => {
    let ledger = tried(observed(aLedger(), hours(0)), "unanswered");
    expect(pauseIn(observed(ledger, minutes(5)))).toBe(minutes(55));
    const restarted = { runtime: { ...runtime, instance: "2" } };
    ledger = observed(ledger, minutes(5), restarted);
    expect(pauseIn(ledger)).toBe(0n);
    ledger = observed(tried(ledger, "unanswered", "2"), minutes(6), {
      runtime: { ...runtime, instance: "3" },
    });
    expect(pauseIn(ledger)).toBe(minutes(59));
  });

  test("goes on if crigc cannot tell whether the runtime was restarted", () => {
    for (const instance of ["", "2"]) {
      const ledger = tried(observed(aLedger(), hours(0)), "unanswered", instance === "" ? "1" : "");
      const unknown = { runtime: { ...runtime, instance } };
      expect(pauseIn(observed(ledger, minutes(5), unknown))).toBe(minutes(55));
    }
  });
});

describe("an image whose removal was answered twice, an hour apart,", () => {
  const first = tried(observed(aLedger(), hours(0)), "answered");
  const final = tried(observed(first, hours(1)), "answered");
  const listedAs = (tag: string) => ({ images: [{ ...image, repoTags: [tag] }] });

  test("is kept for good, also after a restart of the runtime", () => {
    expect(ghostIn(final)).toMatchObject({ attempts: 2, isFinal: true });
    const restarted = { runtime: { ...runtime, instance: "2" } };
    expect(ghostIn(observed(final, hours(900), restarted))?.isFinal).toBe(true);
  });

  test("is removable once its names change, except those that the removal took", () => {
    const taken = observed(final, hours(1), listedAs("left:1"));
    expect(ghostIn(taken)?.isFinal).toBe(true);
    expect(ghostIn(observed(taken, hours(2), listedAs("left:1")))?.isFinal).toBe(true);
    expect(ghostIn(observed(taken, hours(2), listedAs("other:1")))).toBeNull();
  });

  test("is removable once the runtime has another version", () => {
    const upgraded = { runtime: { ...runtime, version: "2.1.9" } };
    expect(ghostIn(observed(final, hours(2), upgraded))).toBeNull();
  });

  test.each([
    ["answers less than an hour apart", tried(observed(first, minutes(59)), "answered")],
    ["one answer and one timeout", tried(observed(first, hours(2)), "unanswered")],
    ["one answer and one cut-off", tried(observed(first, hours(2)), "cut-off")],
  ])("needs both: %s do not count", (_, ledger) => {
    expect(ghostIn(ledger)?.isFinal).toBe(false);
  });
});

test("other names do not end a ghost that is tried again later: a removal often takes them", () => {
  const ledger = tried(observed(aLedger(), hours(0)), "answered");
  const untagged = { images: [{ ...image, repoTags: [] }] };
  expect(ghostIn(observed(ledger, minutes(5), untagged))).toEqual(ghostIn(ledger));
});

test("a ghost whose record ended with its removal gets its record back", () => {
  const before = aRecord({ lastUsedWatched: watched(7n), ghost: aGhost({ attempts: 3 }) });
  const seen = observed(aLedger(), hours(0), { images: [] });
  const ledger = rememberGhost(seen, { image, record: before, end: "unanswered", runtime });
  expect(ledger.images.get(image.id)).toMatchObject({
    lastUsedWatched: watched(7n),
    ghost: { since: NOW, attempts: 4 },
  });
});

test("a ledger without an observation records no ghost", () => {
  expect(tried(emptyLedger, "answered")).toBe(emptyLedger);
});
