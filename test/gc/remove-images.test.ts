// The measured walk: it ends where the disk says so, credits only what was seen, and never trusts an answer alone.
import { describe, expect, test } from "bun:test";

import { volatileMemory } from "../../src/gc/ports.ts";
import type { ImageExecution } from "../../src/gc/remove-images.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { ImageRecord } from "../../src/model/ledger.ts";
import type { HoldState } from "../../src/model/pass.ts";
import type { ImageBlock } from "../../src/model/reason.ts";
import type { Filesystem } from "../../src/model/snapshot.ts";
import { duration, watched } from "../../src/model/time.ts";
import {
  aFilesystem,
  aLedger,
  anImage,
  aRecord,
  aSnapshot,
  MIB,
  spaceTarget,
} from "../support/build/values.ts";
import { claimsOf, imagePass, type ImagePassSetting, STORE } from "../support/image-pass.ts";

const claims = (rows: Parameters<typeof claimsOf<ImagePassSetting>>[1]): void =>
  claimsOf(imagePass, rows);

const itemOf = (kind: string, more: object = {}) => ({ result: { kind, ...more } });
const kubelet = { accounting: "reported", compat: "kubelet" } as const;
const CRIO = { ...aSnapshot().runtime, name: "cri-o" };
const SOCKET = CRIO.endpoint.slice("unix://".length);
const CONTAINERS = aFilesystem({ path: "/containers", device: "8:2", roles: ["containerfs"] });
/** A pass on CRI-O with these disks, which read so at these paths and have room elsewhere. */
const onCrio = (
  readings: Readonly<Record<string, object>>,
  ...filesystems: readonly Filesystem[]
): ImagePassSetting => ({
  to: 1_350,
  of: "abc",
  node: () => ({ runtime: CRIO, filesystems: [STORE, ...filesystems] }),
  change: ({ disk }) => ({
    disk: {
      measure: async (path) => ({
        ...(await disk.measure(path)),
        freeBytes: 300n * MIB,
        ...readings[path],
      }),
    },
  }),
});
const isFull = { freeBytes: 0n };
const noRoom = (error: RegExp) => ({
  end: "nothing-freed" as const,
  error: expect.stringMatching(error),
  removals: "",
});
const held = { kind: "held", until: null, since: null, reason: "" } as const;
/** A hold that is there at that look only. */
const heldAt = (look: number) => () => {
  let asked = 0;
  return { hold: (): HoldState => ((asked += 1) === look ? held : { kind: "none" }) };
};
const goneAway = async (): Promise<never> => {
  throw new RuntimeError("unreachable", "the runtime went away");
};
const refusing =
  (kind: RuntimeError["kind"]) =>
  ({ writer }: Pick<ImageExecution, "writer">) => ({
    writer: {
      ...writer,
      removeImage: async () => Promise.reject(new RuntimeError(kind, "refused")),
    },
  });
/** A look or a status that a stop cuts off. */
const cutOff = (what: "look" | "imageStatus") => () => {
  const stop = new AbortController();
  const call = async (): Promise<never> => {
    stop.abort();
    throw new RuntimeError("cancelled", "the call was cancelled");
  };
  const { signal } = stop;
  return what === "look" ? { signal, look: call } : { signal, runtime: { imageStatus: call } };
};

describe("a measured pass", () => {
  claims([
    [
      "stops as soon as the target is reached, and not one image later",
      { to: 1_150, of: "abcd" },
      { end: "target-reached", removals: "ab", measuredFreedBytes: 200n * MIB },
    ],
    [
      "ends before a removal that CRI-O has no room to record",
      onCrio({ [STORE.path]: { freeBytes: 52_429n } }),
      noRoom(/ has less than 304\.0 KiB free, without which CRI-O loses/),
    ],
    [
      "ends before a removal that CRI-O has no room to record beside its containers, on another disk",
      onCrio({ [CONTAINERS.path]: isFull }, CONTAINERS),
      noRoom(/^\/containers has less than 304\.0 KiB/),
    ],
    [
      "ends before a removal that CRI-O has no room to record beside its socket",
      onCrio({ [SOCKET]: isFull }),
      noRoom(/^the filesystem of \/run\/\S+ has less than/),
    ],
    [
      "ends before a removal that CRI-O has no inode to record",
      onCrio({ [STORE.path]: { inodesFree: 1n } }),
      noRoom(/ has fewer than 16 inodes free, without which CRI-O/),
    ],
    [
      "goes on if the filesystem of CRI-O's socket has no limit, and so 0 of 0 bytes free",
      onCrio({ [SOCKET]: { capacityBytes: 0n, ...isFull } }),
      { removals: "abc" },
    ],
    [
      "goes on if CRI-O has no room on a disk of neither images nor containers",
      onCrio({ [CONTAINERS.path]: isFull }, { ...CONTAINERS, roles: ["nodefs"] }),
      { removals: "abc" },
    ],
    [
      "goes on with as little room as the kubelet does",
      { ...onCrio({ [STORE.path]: isFull }), limits: kubelet },
      { removals: "abc" },
    ],
    [
      "goes on with 0 bytes available if the rest is reserved for root",
      { ...onCrio({}), written: () => 1_000 },
      { removals: "abc" },
    ],
    [
      "does not credit an image that is still listed, and removes the next one instead",
      { to: 1_100, of: "abc", ghosts: "a" },
      {
        items: [itemOf("ghost"), itemOf("removed")],
        ghosts: [anImage("a")],
        reportedFreedBytes: 100n * MIB,
        removals: "ab",
      },
    ],
    [
      "does not credit space that appears after a ghost to the image before it",
      {
        to: 1_230,
        of: "agc",
        ghosts: "g",
        meanwhile: (now) => {
          if (now.removals().endsWith("g")) now.others -= 40;
        },
      },
      { removals: "agc", measuredFreedBytes: 200n * MIB },
    ],
    [
      "frees no space after a failed removal for age if the kubelet's rules count",
      { to: 1_050, of: "ob", aged: 1, fails: "o", limits: { compat: "kubelet" } },
      { end: "age-removal-errors", removals: "o" },
    ],
    [
      "removes nothing after a stop during the measurement before the first removal",
      {
        to: 1_150,
        of: "ab",
        change: ({ disk }) => {
          const stop = new AbortController();
          let measurements = 0;
          const measure = (path: string) => {
            measurements += 1;
            if (measurements > 1) stop.abort();
            return disk.measure(path);
          };
          return { disk: { measure }, signal: stop.signal };
        },
      },
      { end: "stopped", removals: "" },
    ],
    [
      "ends when a list fails, because the images in use are unknown",
      { to: 1_100, of: "a", change: () => ({ look: goneAway }) },
      { end: "observation-failed", error: "the runtime went away", items: [], removals: "" },
    ],
    [
      "is stopped, not failed, if a stop cancels a list",
      { to: 1_100, of: "a", change: cutOff("look") },
      { end: "stopped", error: null, items: [] },
    ],
    [
      "records a removal whose outcome is not waited for because of a stop, and is stopped",
      { to: 1_900, of: "ab", change: cutOff("imageStatus") },
      {
        end: "stopped",
        error: null,
        items: [itemOf("removed", { settled: "not-seen" })],
        removals: "a",
      },
    ],
    [
      "removes nothing on lists that became too old while the disk was measured",
      {
        to: 1_900,
        of: "a",
        change: ({ disk }, world) => {
          let measured = 0;
          const measure = async (path: string) => {
            if ((measured += 1) > 1) world.elapse(250);
            return disk.measure(path);
          };
          return { disk: { measure } };
        },
      },
      {
        end: "observation-failed",
        error: expect.stringContaining("3 attempts took too long"),
        removals: "",
      },
    ],
    [
      "skips what became protected after the plan, and never passes it to RemoveImage",
      {
        to: 1_100,
        of: "ab",
        node: () => ({ images: [anImage("a", { pinned: true }), anImage("b")] }),
      },
      { items: [itemOf("skipped", { reason: { kind: "pinned" } }), {}], removals: "b" },
    ],
    [
      // By the bound an image frees five times its 100 MiB: the last one alone no longer does.
      "ends as futile as soon as the remaining candidates cannot help",
      { to: 1_900, of: "abc", frees: () => 10, limits: { whenFutile: "keep" } },
      { end: "futile", removals: "ab" },
    ],
    [
      "ends after two that time out in a row, because the runtime may still be working on them",
      { to: 1_100, of: "abcd", silent: "abcd" },
      {
        end: "observation-failed",
        error: expect.stringContaining("2 removals in a row got no answer"),
        removals: "ab",
      },
    ],
    [
      "skips an image that somebody else is removing for long",
      { to: 1_100, of: "ab", change: refusing("busy") },
      { items: Array(2).fill(itemOf("skipped", { reason: { kind: "changed" } })) },
    ],
    [
      "ends with a failed item if what came of a refused removal cannot be read",
      {
        to: 1_100,
        of: "ab",
        change: (execution) => ({
          ...refusing("failed")(execution),
          runtime: { imageStatus: goneAway },
        }),
      },
      { end: "observation-failed", items: [itemOf("failed", { message: "refused" })] },
    ],
    [
      "tries every image after refused removals",
      { to: 1_100, of: "abcd", fails: "abc" },
      { end: "target-reached", removals: "abcd" },
    ],
    [
      "ends before the next removal if a hold begins",
      { to: 1_900, of: "abc", change: heldAt(2) },
      { end: "blocked", removals: "a", items: [itemOf("removed"), itemOf("skipped")] },
    ],
  ]);

  const recorded = (record: ImageRecord | null) =>
    aLedger({ images: new Map(record === null ? [] : [[anImage("a").id, record]]) });

  claims(
    (
      [
        ["is gone", null],
        ["is of one that came back", aRecord({ firstSeenWatched: watched(1n) })],
        ["says that its age began anew", aRecord({ ageRestartedWatched: watched(1n) })],
      ] as const
    ).map(([what, now]) => [
      `keeps an image whose record, by another process or loop, ${what} since the plan`,
      {
        to: 1_900,
        of: "a",
        facts: { ledger: recorded(aRecord()) },
        change: () => ({ memory: volatileMemory(recorded(now)) }),
      },
      { items: [itemOf("skipped", { reason: { kind: "changed" } })], removals: "" },
    ]),
  );
});

describe("reported accounting", () => {
  claims([
    [
      "sums reported sizes, whatever the disk shows",
      { to: 1_150, of: "abc", frees: () => 0, limits: kubelet },
      {
        end: "target-reached",
        reportedFreedBytes: 200n * MIB,
        measuredFreedBytes: 0n,
        items: [
          itemOf("removed", { settled: "not-waited" }),
          itemOf("removed", { settled: "not-waited" }),
        ],
        removals: "ab",
        waitedMs: 0,
      },
    ],
    [
      "credits what appears before the next removal to the one before it",
      { to: 1_250, of: "abc", lateMs: 500, lookMs: 600, limits: kubelet },
      {
        measuredFreedBytes: 200n * MIB,
        items: [{ lateBytes: 100n * MIB }, { lateBytes: 100n * MIB }, itemOf("removed")],
      },
    ],
    [
      "removes one eligible image even with a target of zero, as the kubelet does",
      { to: 1_000, of: "ab", limits: kubelet },
      { removals: "a" },
    ],
  ]);
});

describe("an image removed for its age before others are removed for space", () => {
  claims([
    [
      "does not count towards the targets with reported accounting",
      { to: 1_250, of: "obcde", aged: 1, frees: () => 0, limits: kubelet },
      { end: "target-reached", reportedFreedBytes: 400n * MIB, removals: "obcd" },
    ],
    [
      "makes the pass measure the disk again with reported accounting",
      { to: 1_100, of: "ob", aged: 1, limits: kubelet },
      { end: "target-reached", removals: "o" },
    ],
    [
      "alone makes the pass reach its target",
      { to: 1_000, of: "o", aged: 1, targets: [] },
      { end: "target-reached", removals: "o" },
    ],
    [
      "is all that a pass without targets removes",
      { to: 1_000, of: "b", targets: [] },
      { end: "nothing-to-do", removals: "" },
    ],
    [
      "alone does not make the pass reach its target if its removal fails",
      { to: 1_000, of: "o", aged: 1, fails: "o", targets: [] },
      { end: "candidates-exhausted", removals: "o" },
    ],
    [
      "is the only one removed if the figures of the disk are invalid, and the end says so",
      {
        to: 1_900,
        of: "ob",
        aged: 1,
        plan: {
          blocks: [
            { kind: "on-hold", until: null, reason: "" },
            { kind: "invalid-capacity", path: STORE.path, message: "no capacity" },
          ],
        },
      },
      { end: "invalid-capacity", removals: "o" },
    ],
    [
      "is the last one if a hold begins then, even if it is released a moment later",
      { to: 1_050, of: "ob", aged: 1, change: heldAt(1) },
      { end: "blocked", removals: "" },
    ],
  ]);
});

describe("a pass without candidates", () => {
  const change = () => ({ disk: { measure: () => Promise.reject(new Error("statfs failed")) } });
  const futile: ImageBlock = {
    kind: "futile",
    filesystem: STORE.path,
    boundBytes: 0n,
    neededBytes: 900n * MIB,
  };
  const paused: ImageBlock = {
    kind: "nothing-freed",
    filesystem: STORE.path,
    remaining: duration(1n),
  };
  const onHold: ImageBlock = { kind: "on-hold", until: null, reason: "" };

  claims([
    [
      "and without targets has nothing to do, although it cannot measure",
      { to: 1_000, of: "", targets: [], change },
      { end: "nothing-to-do" },
    ],
    [
      "that cannot measure has failed",
      { to: 1_100, of: "", change },
      { end: "observation-failed" },
    ],
    [
      "gives nothing back if its disks are paused or futile",
      { to: 1_900, of: "", plan: { blocks: [paused, futile] } },
      { end: "nothing-freed", removals: "" },
    ],
    [
      "is blocked if it is futile and on hold",
      { to: 1_900, of: "", plan: { blocks: [futile, onHold] } },
      { end: "blocked", removals: "" },
    ],
  ]);
});

describe("a pass under pressure that waits between two removals", () => {
  /** After the first removal, the lists take `ms` while another program writes 300 MiB. */
  const waiting = (ms: number, isOver = false): Omit<ImagePassSetting, "to" | "of"> => ({
    meanwhile: (now) => {
      if (now.removals() !== "a") return;
      now.elapse(ms);
      now.others += 300;
    },
    change: (_, world) => ({
      retarget: async () =>
        isOver ? [] : [spaceTarget(1_200n * MIB, 1_200n * MIB - world.availableBytes())],
    }),
  });

  claims([
    [
      "for a second takes the target of the disk as it is then",
      { to: 1_200, of: "abcdef", ...waiting(1_000) },
      { end: "target-reached", wantedBytes: 500n * MIB, removals: "abcde" },
    ],
    [
      "for a second ends if the pressure is over by then",
      { to: 1_200, of: "abcdef", ...waiting(1_000, true) },
      { end: "target-reached", wantedBytes: 200n * MIB, removals: "a" },
    ],
  ]);
});

describe("an image that others are built on", () => {
  /** The second candidate has no layer that the first one lacks. */
  const candidates: ImagePassSetting["candidates"] = (one, index) =>
    index === 1 ? { ...one, follows: [anImage("c").id] } : one;

  claims([
    [
      "is kept if the image that has all of its layers could not be removed",
      { to: 1_900, of: "cb", candidates, fails: "c" },
      {
        items: [itemOf("failed"), itemOf("skipped", { reason: { kind: "shares-all-layers" } })],
        removals: "c",
      },
    ],
    [
      "is removed after the image that has all of its layers, although the list is from before",
      { to: 1_900, of: "cb", candidates, node: () => ({ images: [anImage("c"), anImage("b")] }) },
      { removals: "cb" },
    ],
  ]);
});

describe("what a pass credits itself with", () => {
  test("does not include a file that another program deletes between two removals", async () => {
    const ended = await imagePass({
      to: 1_300,
      of: "abc",
      meanwhile: (now) => {
        if (now.removals() === "a") now.others -= 9_000;
      },
    });
    expect(ended).toMatchObject({ end: "target-reached", removals: "a" });
    // An image takes at most five times what is reported of it.
    expect(ended.measuredFreedBytes).toBeLessThanOrEqual(500n * MIB);
  });

  claims([
    [
      "is compared with its largest target",
      {
        to: 1_000,
        of: "abc",
        plan: {
          targets: [100n, 200n, 100n].map((mib) => spaceTarget((1_000n + mib) * MIB, mib * MIB)),
        },
      },
      { wantedBytes: 200n * MIB, measuredFreedBytes: 200n * MIB },
    ],
  ]);
});
