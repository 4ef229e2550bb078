// Whether a pass goes on: it waits for space that comes late, and ends if removals give nothing back.
import { describe, expect, test } from "bun:test";

import type { ImageTarget } from "../../src/model/plan.ts";
import {
  aFilesystem,
  countTarget,
  inodeTarget,
  MIB,
  spaceTarget,
} from "../support/build/values.ts";
import { claimsOf, imagePass, type ImagePassSetting } from "../support/image-pass.ts";

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
const count: ImageTarget = { ...countTarget(10), wantedImages: 10 };
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
      "is waited for a minute in all, and the rest is left to the next pass",
      { frees: () => 0, written: (ms) => -ms / 500 },
      { end: "settle-exhausted", count: 3, waitedMs: 60_000 },
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
      "is not waited for in a pass for a number of images",
      { ...everySecondLate, targets: [count] },
      { count: 10, waitedMs: 0 },
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
      "are told from those whose space another program fills at once",
      { known: true, of: "abcdefgh", callMs: 1_000, written: (ms) => ms / 10 },
      { end: "candidates-exhausted", count: 8 },
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
      "end a pass for bytes although they free inodes",
      { ...inVain, inodes: 1n },
      { end: "nothing-freed" },
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
