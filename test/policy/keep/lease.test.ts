// Leases: when they start, what ends them, and that no reading of a line keeps less than it says.

import { describe, expect, test } from "bun:test";

import type { Ledger } from "../../../src/model/ledger.ts";
import type { Container, Image, Snapshot } from "../../../src/model/snapshot.ts";
import { duration, hours, instant, minutes, watched } from "../../../src/model/time.ts";
import { newContainersOf } from "../../../src/policy/image/rank.ts";
import { usageOf } from "../../../src/policy/image/usage.ts";
import { parseKeepFile, parseLease } from "../../../src/policy/keep/keep.ts";
import { leaseState, rememberLeases, rulesInForce } from "../../../src/policy/keep/lease.ts";
import { aContainer, aLedger, anImage, aSnapshot, NOW } from "../../support/build/values.ts";
import { planOf, WATCHED } from "../judging.ts";

const LIST = "/etc/crigc/keep.d/crigc.list";
const staged = anImage("staged");
const [name = ""] = staged.repoTags;
const DAY = hours(24);

interface Seen {
  readonly text?: string;
  readonly list?: string;
  readonly images?: readonly Image[];
  readonly containers?: readonly Container[];
}

/** The ledger after another observation, `hoursLater` of observed time. */
function after(ledger: Ledger, hoursLater: number, seen: Seen = {}): Ledger {
  const { text = `${name} # crigc: until 7d\n`, images = [staged], containers = [] } = seen;
  const now = watched(ledger.watched + hours(hoursLater));
  const keep: Snapshot["keep"] = { directoriesRead: [], ...parseKeepFile(text, seen.list ?? LIST) };
  const wall = instant(NOW + now);
  const clocks = { ...aSnapshot().clocks, wall };
  const snapshot = aSnapshot({ images, containers, keep, clocks, observedAt: wall });
  const usage = usageOf(snapshot);
  const newContainers = newContainersOf(ledger, snapshot, usage);
  const leases = rememberLeases(ledger, { snapshot, newContainers }, now);
  const known = new Map(
    containers.map(({ id }) => [id, { imageVolumes: null, finishedAt: null }] as const),
  );
  return { ...ledger, watched: now, leases, containers: known };
}

const inForce = (ledger: Ledger, text = `${name} # crigc: until 7d\n`): readonly string[] =>
  rulesInForce(parseKeepFile(text, LIST).rules, ledger).map(({ pattern }) => pattern);

describe("the words of a lease", () => {
  test.each([
    ["until 7d", false, 7n * DAY],
    ["until 90s, added 2026-01-01T00:00:00Z", false, minutes(1) + minutes(1) / 2n],
    ["until 5m", false, minutes(5)],
    ["until used or 1000d", true, 1000n * DAY],
    ["until 36h", false, hours(36)],
    ["until 4w", false, 28n * DAY],
    ["until used", true, 90n * DAY],
    ["until used or 30d, added by-hand", true, 30n * DAY],
  ])("%s", (text, untilUsed, lasts) => {
    expect(parseLease(text)).toEqual({ text, untilUsed, lasts: duration(lasts) });
  });

  test.each(
    ["until", "until 0d", "until 7", "until 7y", "until used 7d", "until 7d please"].concat(
      "until 12345d",
      "until 7d or used",
      "until until 7d",
      "until used or",
    ),
  )("%s is invalid, so the file is, and no image is removed", (text) => {
    expect(parseLease(text)).toBeNull();
    const { rules, problems } = parseKeepFile(`${name} # crigc: ${text}\n`, LIST);
    expect(rules).toEqual([]);
    expect(problems).toMatchObject([{ source: `${LIST}:1` }]);
    expect(problems[0]?.message).toContain("invalid lease");
  });

  test.each(["#crigc:until 7d", "# crigc: until 7d", "#\t crigc:  until 7d"])(
    "may follow blanks or none: %s",
    (comment) => {
      const [rule] = parseKeepFile(`${name} ${comment}\n`, LIST).rules;
      expect(rule?.lease?.text).toBe("until 7d");
    },
  );

  test("any other comment changes nothing: the rule has no end", () => {
    const comments =
      "# x # crigc: until 7d|# until 7d|# crigc until 7d|# crigc: untill 7d|#crigc|# x";
    for (const comment of [...comments.split("|"), "# crigc: pinned"]) {
      const { rules, problems } = parseKeepFile(`${name} ${comment}\n`, LIST);
      expect(problems).toEqual([]);
      expect(rules[0]).not.toHaveProperty("lease");
    }
  });
});

describe("a lease", () => {
  test("starts when its line is first read, and ends after its time", () => {
    const first = after(aLedger({ watched: watched(0n) }), 100);
    const [rule] = parseKeepFile(`${name} # crigc: until 7d\n`, LIST).rules;
    if (rule === undefined) throw new Error("no rule");
    expect(leaseState(rule, aLedger())).toBeNull();
    expect(inForce(aLedger())).toEqual([name]);
    const start = { startedAt: instant(NOW + hours(100)), usedAt: null };
    expect(leaseState(rule, first)).toEqual({ ...start, remaining: duration(7n * DAY) });
    const almost = after(first, 7 * 24 - 1);
    expect(leaseState(rule, almost)).toEqual({ ...start, remaining: hours(1) });
    expect(inForce(almost)).toEqual([name]);
    const ended = after(almost, 1);
    expect(leaseState(rule, ended)).toEqual({ ...start, remaining: duration(0n) });
    expect(inForce(ended)).toEqual([]);
    expect(leaseState(rule, after(ended, 1))?.remaining).toBe(duration(0n));
    expect(after(ended, 1).leases).toBe(ended.leases);
  });

  test("keeps running if its line moves, and starts anew with other words or after it was gone", () => {
    const first = after(aLedger(), 1);
    const moved = after(first, 24, { text: `redis\n${name} # crigc: until 7d\n` });
    expect(moved.leases).toBe(first.leases);
    const renewed = after(first, 24, { text: `${name} # crigc: until 7d, added today\n` });
    expect([...renewed.leases.values()]).toMatchObject([{ startedWatched: renewed.watched }]);
    const gone = after(first, 24, { text: "redis\n" });
    expect(gone.leases.size).toBe(0);
    expect([...after(gone, 1).leases.values()]).toMatchObject([
      { startedWatched: gone.watched + hours(1) },
    ]);
  });

  test("is recorded under its list and words, wherever its line is", () => {
    const [list, comments] = ["/etc/crigc:1/crigc.list", "#\n".repeat(11)];
    const { leases } = after(aLedger(), 1, {
      list,
      text: `${comments}${name} # crigc: until 7d\n`,
    });
    expect([...leases.keys()]).toEqual([`${list} ${name} until 7d`]);
  });

  test("keeps running while a keep file cannot be read", () => {
    const first = after(aLedger(), 1);
    expect(after(first, 1, { text: "a b\n" }).leases).toBe(first.leases);
  });
});

describe("a lease until the first use", () => {
  const text = `${name} # crigc: until used\nregistry.example/other # crigc: until used\n`;
  const uses = (id: string, image: Image = staged) =>
    aContainer(id, { imageName: image.repoTags[0] ?? "" });

  test("ends with a container that was first seen after its start, and stays so", () => {
    const first = after(aLedger(), 1, { text });
    const used = after(first, 1, { text, containers: [uses("new")] });
    expect(inForce(used, text)).toEqual(["registry.example/other"]);
    expect([...used.leases.values()].map(({ usedAt }) => usedAt)).toEqual([
      instant(NOW + used.watched),
      null,
    ]);
    expect(inForce(after(used, 1, { text }), text)).toEqual(["registry.example/other"]);
    expect(after(used, 1, { text, containers: [uses("newer")] }).leases).toBe(used.leases);
    const old = after(aLedger(), 1, { text: "redis\n", containers: [uses("old")] });
    const begun = after(old, 1, { text, containers: [uses("old")] });
    expect(inForce(begun, text)).toHaveLength(2);
    expect(
      inForce(after(begun, 1, { text, containers: [uses("old"), uses("new")] }), text),
    ).toEqual(inForce(used, text));
  });

  test("ends after 90 days in any case", () => {
    const first = after(aLedger(), 1, { text });
    expect(inForce(after(first, 24 * 90 - 1, { text }), text)).toHaveLength(2);
    expect(inForce(after(first, 24 * 90, { text }), text)).toEqual([]);
  });

  test("a lease with a time alone does not end with a use", () => {
    const first = after(aLedger(), 1);
    expect(inForce(after(first, 1, { containers: [uses("new")] }))).toEqual([name]);
  });
});

describe("the plan of a node with a lease", () => {
  const text = `${name} # crigc: until 7d\n`;
  const keep: Snapshot["keep"] = { directoriesRead: [], ...parseKeepFile(text, LIST) };
  const plan = (ledger: Partial<Ledger>) =>
    planOf({
      images: [staged],
      snapshot: { keep },
      ledger,
      facts: { purpose: { kind: "all-unused" } },
    });

  test("keeps an image that a rule without an end keeps too by that rule", () => {
    const both = { directoriesRead: [], ...parseKeepFile(`${text}${name}\n`, LIST) };
    const { kept } = planOf({ images: [staged], snapshot: { keep: both } });
    expect(kept.map(({ reason }) => reason)).toEqual([
      { kind: "keep-rule", pattern: name, source: `${LIST}:2`, name },
    ]);
  });

  test("keeps the image, with start and end, and removes it afterwards", () => {
    const unread = plan({}).kept.map(({ reason }) => reason);
    expect(unread).toMatchObject([{ kind: "keep-rule", remaining: 7n * DAY, untilUsed: false }]);
    const first = after(aLedger({ watched: WATCHED }), 0);
    const later = { leases: first.leases, watched: watched(WATCHED + DAY) };
    expect(plan(later).kept.map(({ reason }) => reason)).toMatchObject([
      { kind: "keep-rule", since: instant(NOW + WATCHED), remaining: 6n * DAY },
    ]);
    const ended = plan({ leases: first.leases, watched: watched(WATCHED + 7n * DAY) });
    expect(ended.kept).toEqual([]);
    expect(ended.candidates).toHaveLength(1);
    expect(ended.blocks).toEqual([]);
  });
});
