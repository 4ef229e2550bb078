// Amounts and sentences: each kind of them as a snapshot, and no control characters in any of them.

import { expect, test } from "bun:test";

import fc from "fast-check";

import type { History } from "../../src/model/history.ts";
import { containerId } from "../../src/model/ids.ts";
import type { ImageEnd, PassKind } from "../../src/model/pass.ts";
import { duration, durationFromMs, seconds } from "../../src/model/time.ts";
import { breakdownWords } from "../../src/report/disk-usage.ts";
import { historyDocument, historyTable, removalTitle } from "../../src/report/history.ts";
import {
  budgetShortfallWords,
  freeDiskSpaceFailedWords,
  imagePassWords,
  imageResultWords,
  invalidDiskCapacityWords,
  passSummary,
} from "../../src/report/pass-words.ts";
import {
  imageBlock,
  imageKeep,
  imageTrigger,
  podReasons,
  podSourceWords,
} from "../../src/report/reasons.ts";
import {
  humanBytes,
  humanDuration,
  imageName,
  shortId,
  usedPercent,
} from "../../src/report/words.ts";
import {
  GIB,
  image,
  imageOutcome,
  MIB,
  pass,
  passRow,
  plainScreen,
  removedImage,
} from "./build.ts";

test("the sentences of reasons, triggers and events match the snapshot", () => {
  const shortfall = {
    capacityBytes: 10n * GIB,
    availableAfter: (10n * GIB) / 20n,
    wantedBytes: 1_610_612_736n,
    measuredFreedBytes: 500n * MIB,
  };
  expect([
    imageTrigger.text({ kind: "pressure", signal: "imagefs.available" }),
    podReasons.text({ kind: "over-total-limit", limit: 1 }),
    podReasons.text({ kind: "has-containers", containers: [containerId("a")] }),
    podSourceWords({ kind: "not-ready", source: "kubelet-dir", why: "status 401" }),
    // 9.1-19
    freeDiskSpaceFailedWords(shortfall, ""),
    freeDiskSpaceFailedWords(shortfall, "3 images (1.0 GiB) become removable within 1m40s"),
    budgetShortfallWords({ maximumBytes: 10n * GIB, wantedBytes: GIB }, shortfall),
    invalidDiskCapacityWords("the runtime names no image filesystem"),
    breakdownWords({
      capacityBytes: 10n * GIB,
      availableBytes: GIB,
      usedBytes: 9n * GIB,
      imagesBytes: 2n * GIB,
      containersBytes: null,
      otherBytes: 6n * GIB,
    }),
    breakdownWords({
      capacityBytes: 10n * GIB,
      availableBytes: GIB,
      usedBytes: 9n * GIB,
      imagesBytes: 2n * GIB,
      containersBytes: null,
      otherBytes: 6n * GIB,
    }),
  ]).toMatchSnapshot();
});

test("text of the runtime cannot bring control characters into a sentence", () => {
  const evil = "x\u001b[2J\u202e\u009b";
  const sentences = [
    imageKeep.text({ kind: "keep-rule", pattern: evil, source: evil, name: evil }),
    imageKeep.text({ kind: "changed", what: evil }),
    imageBlock.text({ kind: "usage-unknown", unknown: [{ subject: evil, message: evil }] }),
    podReasons.text({ kind: "in-use", what: evil }),
    imageResultWords({ kind: "failed", message: evil, code: "failed" }),
    invalidDiskCapacityWords(evil),
    passSummary(pass({ containers: null, images: null, error: evil })),
    removalTitle({ kind: "image", reason: evil, signal: null }),
    imageName(image(1, { repoTags: [evil] })),
    shortId(evil),
  ];
  expect(sentences.join("")).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
});

test("the words of removals, images and passes match the snapshot", () => {
  const reason = { reason: "age", signal: null };
  const all = { purpose: "all-unused", imagesEnd: "candidates-exhausted" } as const;
  const idle = { removed: 0 } as const;
  const later = { kind: "layer-gc" as PassKind, imagesEnd: "moon-full" as ImageEnd };
  const words = (report: Partial<History>): string =>
    historyTable(
      historyDocument({ removals: [], events: [], returned: [], passes: [], ...report }),
      plainScreen,
    );
  expect({
    removals: [
      removalTitle({ kind: "image", reason: "pressure", signal: "nodefs.available" }),
      removalTitle({ kind: "container", reason: "pod-gone", signal: null }),
      removalTitle({ kind: "image", reason: "moon-full", signal: null }),
      removalTitle({ ...reason, kind: "volume" }),
    ],
    // By tag, else by digest, else by ID.
    images: [
      {},
      { repoTags: [] },
      { repoTags: [], repoDigests: [] },
      { repoTags: ["<none>:<none>"], repoDigests: ["a@b"] },
    ].map((names) => imageName(image(1, names))),
    gc: [
      imagePassWords(pass({ images: imageOutcome({ end: "nothing-to-do", items: [] }) })),
      ...[[], [removedImage(1)]].map((items) =>
        imagePassWords(
          pass({
            purpose: { kind: "all-unused" },
            images: imageOutcome({ end: "candidates-exhausted", items }),
          }),
        ),
      ),
    ],
    history: [
      words({}),
      words({
        passes: [
          passRow(all),
          passRow({ ...all, ...idle, purpose: "pressure" }),
          passRow({ ...idle, kind: "gc", imagesEnd: null, containersEnd: "done" }),
          passRow({ measuredFreedBytes: 0n }),
          passRow({ ...idle, imagesEnd: null, containersEnd: "blocked" }),
          passRow({ ...idle, imagesEnd: "stopped", containersEnd: "stopped" }),
          passRow(later),
        ],
      }),
    ],
  }).toMatchSnapshot();
});

test("sizes, durations and shares match the snapshot", () => {
  const sizes = [0n, 1023n, 1024n, 1280n, 1792n, 1_048_575n, 1_048_576n, 524_288_000n, -2048n]
    .concat(10_737_418_240n, 1_099_511_627_776n, 5_629_499_534_213_120n)
    .map((bytes) => `${bytes}: ${humanBytes(bytes)}`);
  const small = [duration(0n), duration(500n), durationFromMs(40), durationFromMs(1850)];
  const large = [2, 59, 120, 150, 5400, 86_400, 88_200, 273_600, -150].map(seconds);
  const spans = [...small, ...large].map((span) => `${span} ns: ${humanDuration(span)}`);
  const disks = [
    [1000n, 600n],
    [1000n, 50n],
    [1000n, 159n],
    [1000n, 1000n],
    [0n, 0n],
    [10_737_418_240n, 536_870_912n],
  ] as const;
  const used = disks.map(([of, free]) => `${free} of ${of} free: ${usedPercent(of, free)} % used`);
  expect([...sizes, ...spans, ...used].join("\n")).toMatchSnapshot();
});

test("bytes are rounded to the nearest tenth", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1024n, max: (1n << 20n) - 1n }), (bytes) => {
      const shown = Number.parseFloat(humanBytes(bytes));
      expect(Math.abs(shown * 1024 - Number(bytes))).toBeLessThanOrEqual(52);
    }),
  );
});
