// Sentences: each kind of them as a snapshot, and no control characters in any of them.

import { expect, test } from "bun:test";

import { containerId } from "../../src/model/ids.ts";
import { hours, minutes } from "../../src/model/time.ts";
import {
  containerReasons,
  logReasons,
  podSourceWords,
  sandboxReasons,
} from "../../src/report/container-reasons.ts";
import { removalTitle } from "../../src/report/history.ts";
import { imageBlock, imageKeep, imageTrigger } from "../../src/report/image-reasons.ts";
import { baselineWords } from "../../src/report/keep.ts";
import { imageName, shortId } from "../../src/report/names.ts";
import {
  budgetShortfallWords,
  freeDiskSpaceFailedWords,
  imageResultWords,
  invalidDiskCapacityWords,
} from "../../src/report/pass-words.ts";
import { breakdownWords } from "../../src/report/plan-words.ts";
import { GIB, hex, image, MIB } from "./build.ts";

test("a reason, a trigger and an event have the same sentence as before", () => {
  const shortfall = {
    capacityBytes: 10n * GIB,
    availableBytes: (10n * GIB) / 20n,
    wantedBytes: 1_610_612_736n,
    freedBytes: 500n * MIB,
  };
  expect([
    imageTrigger.text({ kind: "pressure", signal: "imagefs.available" }),
    containerReasons.text({ kind: "over-total-limit", limit: 1 }),
    sandboxReasons.text({ kind: "has-containers", containers: [containerId("a")] }),
    podSourceWords({ kind: "not-ready", source: "kubelet-api", why: "status 401" }),
    // 9.1-19
    freeDiskSpaceFailedWords(shortfall, ""),
    freeDiskSpaceFailedWords(shortfall, "3 images (1.0 GiB) become removable within 1m40s"),
    budgetShortfallWords({ maximumBytes: 10n * GIB, wantedBytes: GIB, freedBytes: 500n * MIB }),
    invalidDiskCapacityWords("the runtime names no image filesystem"),
    breakdownWords({
      capacityBytes: 10n * GIB,
      availableBytes: GIB,
      imagesBytes: 2n * GIB,
      imagesAtLeastBytes: 0n,
      containersBytes: null,
      logsBytes: GIB,
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
    containerReasons.text({ kind: "end-unknown", message: evil }),
    logReasons.text({ kind: "in-use", what: evil }),
    imageResultWords({ kind: "failed", message: evil, code: "failed" }),
    invalidDiskCapacityWords(evil),
    removalTitle({ kind: "image", reason: evil, signal: null }),
    imageName(image(1, { repoTags: [evil] })),
    shortId(evil),
  ];
  expect(sentences.join("")).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
});

test("a reason in JSON has its code, its sentence and its data with units", () => {
  expect(
    containerReasons.json({ kind: "too-young", age: minutes(7), minimumAge: hours(1) }),
  ).toEqual({
    code: "too-young",
    text: "dead for 7m; the minimum age is 1h",
    ageMs: 420_000,
    minimumAgeMs: 3_600_000,
  });
});

test.each([
  ["image", "pressure", "nodefs.available", "disk pressure (nodefs.available)"],
  ["container", "pod-gone", null, "its pod was deleted"],
  ["image", "moon-full", null, "moon-full"],
  ["volume", "age", null, "age"],
] as const)("a %s removed for %s with signal %p is titled %s", (kind, reason, signal, title) => {
  expect(removalTitle({ kind, reason, signal })).toBe(title);
});

test.each([
  [{}, "registry.example/team/app-1:1.1"],
  [{ repoTags: [] }, `registry.example/team/app-1@sha256:${hex(4097).slice(0, 12)}`],
  [{ repoTags: [], repoDigests: [] }, "sha256:000100010001"],
  [{ repoTags: ["<none>:<none>"], repoDigests: ["a@b"] }, "a@b"],
])("an image with %j is called %s: by tag, else by digest, else by ID", (names, name) => {
  expect(imageName(image(1, names))).toBe(name);
});

test("a missing sandbox image is named also where no baseline names an image", () => {
  const name = "registry.k8s.io/pause:3.9";
  const gap = { kind: "sandbox-image", name, patterns: [name], source: "containerd" } as const;
  const words = baselineWords({ images: 0, present: 0, missing: 1, gaps: [gap] });
  expect(words).toBe(`1 sandbox image missing (${name})`);
});
