// Whether a pass goes on: it waits for space that comes late, and ends if removals give nothing back.
import { describe, expect, test } from "bun:test";

import type { ImageTarget } from "../../src/model/plan.ts";
import {
  aFilesystem,
  aSnapshot,
  budgetTarget,
  inodeTarget,
  MIB,
  spaceTarget,
} from "../support/build/values.ts";
import { claimsOf, imagePass, type ImagePassSetting, STORE } from "../support/image-pass.ts";

const TWENTY = "abcdefghijklmnopqrst";
const PATH = aFilesystem().path;

/** 300 MiB more are wanted. */
const passOver = (setting: Partial<ImagePassSetting>) =>
  imagePass({ to: 1_300, of: TWENTY, callMs: 10, lookMs: 20, retargets: true, ...setting });

const claims = (rows: Parameters<typeof claimsOf<Partial<ImagePassSetting>>>[1]): void =>
  claimsOf(passOver, rows);

const inodesTarget = (wanted: bigint): ImageTarget => ({
  ...inodeTarget((aFilesystem().inodesFree ?? 0n) + wanted - 1n, wanted),
  relievedInodes: wanted,
});
/** Of a second disk; it has what the first one has. */
const OTHER = { device: "8:2", path: "/other" } as const;
const space = spaceTarget(1_300n * MIB, 300n * MIB);
const budget = budgetTarget(1_000n * MIB, 1_000n * MIB);
const everything: ImageTarget = { kind: "everything", trigger: { kind: "all-unused" } };
const everySecondLate = { frees: (_: string, at: number) => (at % 2 === 0 ? 0 : 100), lateMs: 10 };
const settledAs = (...kinds: readonly string[]) =>
  kinds.map((settled) => ({ result: { settled } }));

describe("space that appears late", () => {
  claims([
    [
      "is waited for once the estimates reach the target, so that no image is removed for nothing",
      { lateMs: 400 },
      {
        end: "target-reached",
        count: 3,
        commits: 0,
        waitedMs: 400,
        items: settledAs("not-waited", "not-waited", "afterwards"),
      },
    ],
    [
      "counts for the removal that was waited for, with what it freed at once",
      { lateMs: 25 },
      { items: [{}, {}, { result: { settled: "afterwards", measuredBytes: 200n * MIB } }] },
    ],
    [
      "is not waited for again if a wait ended at the end of that minute because available space fell",
      // Three removals of 30 ms each come before it.
      { frees: () => 0, written: (ms) => -ms / 500 + (ms >= 60_090 ? 50 : 0) },
      { end: "nothing-freed", waitedMs: 60_000 },
    ],
    [
      "is waited for once the estimates reach the only target that is not met yet",
      { lateMs: 400, targets: [inodesTarget(1n), spaceTarget(1_300n * MIB, 300n * MIB)] },
      { end: "target-reached", count: 3 },
    ],
    [
      "is not waited for any longer once available space falls",
      { frees: () => 50, written: (ms) => ms / 5 },
      { end: "own-gain-reached", count: 7, waitedMs: 300 },
    ],
    [
      "is waited for after removals for age, if these should have been enough",
      { lateMs: 400, aged: 3 },
      { end: "target-reached", count: 3 },
    ],
    [
      "is not waited for after a removal for age that could not have been enough",
      { aged: 1 },
      { end: "target-reached", count: 3, waitedMs: 0 },
    ],
    [
      "is not waited for while images go for their age, and once they went not longer than it takes",
      { lateMs: 400, aged: 5, of: "abcde" },
      { waitedMs: 400, count: 5, items: settledAs(...Array<string>(5).fill("not-waited")) },
    ],
    [
      "is waited for again although nothing comes on another disk",
      {
        lateMs: 400,
        frees: () => 60,
        targets: [space, { ...spaceTarget(1n, 1n), ...OTHER }],
        change: ({ disk }) => {
          const still = disk.measure("/");
          return {
            disk: { measure: (path) => (path === OTHER.path ? still : disk.measure(path)) },
          };
        },
      },
      { end: "target-reached", count: 5 },
    ],
    [
      "is waited for a minute in all, not in each wait",
      {
        to: 1_900,
        frees: () => 0,
        written: (ms) => -(ms < 30_000 ? ms : ms < 31_000 ? 30_000 : ms - 1_000) / 100,
      },
      { end: "settle-exhausted", waitedMs: 60_000 },
    ],
    [
      "is not waited for while inodes are short as well",
      { lateMs: 400, of: "abcd", targets: [space, inodesTarget(400n)] },
      { end: "candidates-exhausted", waitedMs: 0 },
    ],
    [
      "is not waited for in a pass for a number of images",
      { ...everySecondLate, targets: [budget] },
      { count: 10, waitedMs: 0 },
    ],
  ]);
});

describe("on a filesystem that frees in the background", () => {
  const measured = (...mebibytes: readonly number[]) =>
    mebibytes.map((it) => ({ result: { measuredBytes: BigInt(it) * MIB } }));
  claims([
    [
      "what appears within milliseconds counts for its removal, not for the next one, and not for none",
      { inBackground: true, lateMs: 8, lookMs: 0, of: "abc", ghosts: "b", to: 1_900 },
      { items: [...measured(100), { result: { kind: "ghost" } }, ...measured(100)] },
    ],
    [
      "a removal that frees nothing takes one look more, one that frees all of it none",
      { inBackground: true, frees: (name) => (name === "b" ? 0 : 100), of: "abc", to: 1_900 },
      { items: measured(100, 0, 100), waitedMs: 10 },
    ],
    [
      "reported sizes need no look",
      { inBackground: true, lateMs: 8, limits: { accounting: "reported" } },
      { count: 3, waitedMs: 0 },
    ],
  ]);
});

describe("what a removal freed at once", () => {
  const part = (percent: number) => ({
    to: 9_000,
    of: "ab",
    frees: (_: string, at: number) => (at === 0 ? percent : percent - 1),
  });

  claims([
    [
      "is all if it is half of the reported size",
      part(50),
      { items: settledAs("at-once", "not-waited") },
    ],
    [
      "is all if it is three quarters of the least that its layers free",
      { ...part(75), known: true },
      { items: settledAs("at-once", "not-waited") },
    ],
    [
      "is all if a wait brought nothing more",
      { frees: () => 0, known: true },
      { items: settledAs("not-waited", "not-waited", "at-once") },
    ],
    [
      "is not told where reported sizes count",
      { to: 1_200, limits: { accounting: "reported" } },
      { items: settledAs("not-waited", "not-waited") },
    ],
  ]);
});

test.each([
  ["", {}],
  [", which does not show that its removals give nothing back", { known: true }],
])("a stop ends the wait for space, and the pass%s", async (_, setting) => {
  const stop = new AbortController();
  const done = await passOver({
    ...setting,
    lateMs: 10_000,
    change: ({ timer }) => ({
      signal: stop.signal,
      timer: {
        ...timer,
        sleep: (ms, signal) => {
          stop.abort();
          return timer.sleep(ms, signal);
        },
      },
    }),
  });
  expect(done).toMatchObject({ end: "stopped", count: 3, waitedMs: 0 });
});

describe("on a filesystem that frees space with its next commit", () => {
  claims([
    [
      // Until then nothing shows what each of them freed.
      "a pass asks for the commit once the estimates reach the target, and stops at the right image",
      { onCommit: "works" },
      {
        end: "target-reached",
        count: 3,
        commits: 1,
        waitedMs: 0,
        measuredFreedBytes: 300n * MIB,
        items: settledAs("not-seen", "not-seen", "afterwards"),
      },
    ],
    [
      "a pass whose target is met by another program asks for no commit",
      { onCommit: "works", written: (clockMs) => (clockMs > 20 ? -300 : 0) },
      { end: "target-reached", count: 1, commits: 0 },
    ],
    [
      "known removals do not end a pass whose space a commit shows",
      { onCommit: "works", known: true, to: 1_900 },
      { end: "target-reached", count: 9, commits: 3 },
    ],
    [
      "commits that hang cost five and a half seconds each, and the pass goes on",
      { onCommit: "hangs", of: "abcdefghi" },
      { end: "candidates-exhausted", count: 9, commits: 3, waitedMs: 16_500 },
    ],
  ]);
});

describe("removals that give nothing back", () => {
  const nothing = { frees: () => 0 };
  const inVain = { ...nothing, known: true };
  const bursts = (ms: number): number => 20 * Math.floor(ms / 200);

  test.each([
    ["three with known sharers", true, 3],
    ["ten with unknown ones", false, 10],
  ] as const)("end a pass after %s", async (_, known, removals) => {
    const pass = await passOver({ ...nothing, known });
    expect(pass).toMatchObject({
      end: "nothing-freed",
      count: removals,
      waitedMs: known ? 500 : 1_000,
      nothingFreed: {
        filesystem: PATH,
        removals,
        estimatedBytes: BigInt(removals) * 100n * MIB,
        gainedBytes: 0n,
        isNew: true,
      },
    });
    expect(pass.ledger.nothingFreed.get(PATH)).toMatchObject({ removals, pauses: 1 });
  });

  claims([
    [
      "do not end a pass if their space comes half a second later",
      { known: true, to: 1_900, lateMs: 400, callMs: 1 },
      { end: "target-reached", count: 9 },
    ],
    [
      "end a pass although another program writes meanwhile",
      { ...inVain, written: (ms) => ms / 20 },
      { end: "nothing-freed", count: 3 },
    ],
    [
      "are told from those before which another program deleted a file in an instant",
      { to: 1_600, known: true, callMs: 130, written: (clockMs) => (clockMs >= 10 ? -50 : 0) },
      { end: "target-reached", count: 6 },
    ],
    [
      "are told from long ones during which another program wrote more than just before",
      { known: true, of: "abcdefgh", callMs: 2_000, written: bursts },
      { end: "candidates-exhausted", count: 8 },
    ],
    [
      "end a pass although each takes long and another program writes in bursts",
      { ...inVain, callMs: 2_000, written: bursts },
      { end: "nothing-freed", count: 3 },
    ],
    [
      // It writes for the first three removals, which free something, and what it wrote is forgotten a second later.
      "end a pass by what other programs wrote in the last second, not before",
      {
        ...inVain,
        to: 2_900,
        callMs: 1_000,
        lookMs: 600,
        frees: (_, at) => (at < 3 ? 100 : 0),
        written: (ms) => Math.min(ms, 4_800) / 10,
      },
      { end: "nothing-freed", count: 7 },
    ],
    [
      "are told from those that free inodes, in a pass for inodes",
      { ...inVain, inodes: 1n, targets: [inodesTarget(6n)] },
      { end: "target-reached" },
    ],
    [
      "end a pass for inodes after ten that free none",
      { ...nothing, targets: [inodesTarget(400n)] },
      { end: "nothing-freed", count: 10 },
    ],
    [
      "end no pass for inodes that gained as many as it wanted while another program took them",
      { ...nothing, inodes: 100n, targets: [inodesTarget(400n)], inodesTaken: 100n },
      { end: "own-gain-reached", count: 4 },
    ],
    [
      "end no pass for inodes of one disk and bytes of another while one of them gains",
      {
        ...inVain,
        inodes: 1n,
        of: "abcdef",
        targets: [space, { ...inodesTarget(400n), ...OTHER }],
      },
      { end: "candidates-exhausted" },
    ],
    [
      "end a pass for bytes although they free inodes of a disk that has enough",
      { ...inVain, inodes: 1n, targets: [space, { ...inodesTarget(1n), ...OTHER }] },
      { end: "nothing-freed" },
    ],
    [
      "end a pass for another disk than the store's by that disk alone",
      { ...inVain, inodes: 1n, targets: [inodesTarget(1n), { ...space, ...OTHER }] },
      { end: "nothing-freed" },
    ],
    [
      "end no pass for the inodes of another disk than the store's while that one gains",
      { ...inVain, inodes: 1n, of: "abcdef", targets: [{ ...inodesTarget(400n), ...OTHER }] },
      { end: "candidates-exhausted" },
    ],
    [
      "end a pass for everything by the disks of images alone",
      {
        ...inVain,
        targets: [everything],
        facts: {
          purpose: { kind: "all-unused" },
          snapshot: aSnapshot({
            filesystems: [STORE, aFilesystem({ ...OTHER, roles: ["nodefs"] })],
          }),
        },
      },
      { end: "nothing-freed", count: 3 },
    ],
    [
      "end no pass that adds up reported sizes",
      { ...inVain, limits: { accounting: "reported" }, to: 2_500 },
      { end: "target-reached", count: 15, waitedMs: 0 },
    ],
  ]);

  describe("in passes one after the other", () => {
    /** A pass with the memory of the one before. */
    const next = async (
      before: Promise<Awaited<ReturnType<typeof imagePass>>>,
      setting: Partial<ImagePassSetting> = {},
    ) => passOver({ known: true, facts: { ledger: (await before).ledger }, ...setting });

    test("are counted across passes, and each pass after the pause removes one", async () => {
      const first = passOver({ ...inVain, of: "ab" });
      expect((await first).end).toBe("candidates-exhausted");
      const second = next(first, nothing);
      expect(await second).toMatchObject({ end: "nothing-freed", count: 1 });
      const third = next(second, nothing);
      expect(await third).toMatchObject({
        end: "nothing-freed",
        count: 1,
        nothingFreed: { removals: 4, isNew: false },
      });
      const freeing = await next(third);
      expect(freeing).toMatchObject({ end: "target-reached", count: 3 });
      expect(freeing.ledger.nothingFreed.size).toBe(0);
    });

    test.each<[string, Partial<ImagePassSetting>]>([
      ["fail", { fails: TWENTY }],
      ["are counted by reported sizes", { limits: { accounting: "reported" } }],
    ])("are remembered as they are by removals that %s", async (_, setting) => {
      const first = passOver({ ...inVain, of: "ab" });
      const { nothingFreed } = (await first).ledger;
      const second = await next(first, { ...nothing, written: () => 10, ...setting });
      expect(second.ledger.nothingFreed).toEqual(nothingFreed);
    });

    test("pause a filesystem once more with each pass that they end, and anew after one that gave something back", async () => {
      const second = next(passOver(inVain), nothing);
      expect((await second).ledger.nothingFreed.get(PATH)?.pauses).toBe(2);
      const third = await next(second, { frees: (_, at) => (at === 0 ? 100 : 0) });
      expect(third).toMatchObject({ end: "nothing-freed", count: 4 });
      expect(third.ledger.nothingFreed.get(PATH)).toMatchObject({ removals: 3, pauses: 1 });
    });

    test("end a removal by hand by its own count alone", async () => {
      const { ledger } = await passOver(inVain);
      const facts = { ledger, purpose: { kind: "all-unused" } } as const;
      expect((await passOver({ ...inVain, facts, targets: [everything] })).count).toBe(3);
    });
  });
});
