// Sentences: each kind of them as a snapshot, and no control characters in any of them.

import { describe, expect, test } from "bun:test";

import { containerId, podUid, sandboxId } from "../../src/model/ids.ts";
import type { ImageBlock, ImageKeepReason, ImageUser } from "../../src/model/reason.ts";
import { hours, minutes, seconds } from "../../src/model/time.ts";
import {
  containerReasons,
  logReasons,
  podSourceWords,
  removalTitle,
  sandboxReasons,
} from "../../src/report/container-reasons.ts";
import { imageBlock, imageKeep, imageTrigger } from "../../src/report/image-reasons.ts";
import { imageName, shortId } from "../../src/report/names.ts";
import {
  breakdownWords,
  budgetShortfallWords,
  freeDiskSpaceFailedWords,
  imageResultWords,
  invalidDiskCapacityWords,
} from "../../src/report/pass-words.ts";
import { at, GIB, hex, image, MIB } from "./build.ts";

const user = (seed: number): ImageUser => ({
  kind: "container",
  id: containerId(hex(seed)),
  name: `web-${seed}`,
  podName: "shop-0",
  state: "running",
});
const since = at("2026-01-15T12:00:00Z");

const keeps: readonly ImageKeepReason[] = [
  { kind: "in-use", users: [user(1)] },
  { kind: "in-use", users: [1, 2, 3, 4, 5].map(user) },
  {
    kind: "in-use",
    users: [
      { kind: "image-volume", id: containerId(hex(1)), name: "web", podName: "" },
      { kind: "pod-spec", uid: podUid("u1") },
      { kind: "sandbox", id: sandboxId(hex(2)) },
    ],
  },
  { kind: "pinned" },
  { kind: "sandbox-image", by: "runtime", name: "pause:3.9" },
  { kind: "keep-rule", pattern: "nginx", source: "--keep", name: "docker.io/library/nginx:1" },
  { kind: "keep-per-repository", repository: "app", place: 2, limit: 3 },
  { kind: "ghost", since, attempts: 1, isFinal: false },
  { kind: "too-young", age: seconds(40), minimumAge: minutes(2) },
  { kind: "blocked", block: "futile" },
];

const blocks: readonly ImageBlock[] = [
  { kind: "on-hold", until: since, reason: "release night" },
  { kind: "on-hold", until: null, reason: "" },
  { kind: "boot-grace", because: "boot", remaining: minutes(3) },
  {
    kind: "keep-rules-invalid",
    problems: [
      { source: "a.list:3", message: "is no pattern" },
      { source: "b.list", message: "is empty" },
    ],
  },
  {
    kind: "pod-starting",
    containers: [
      { sandboxId: sandboxId(hex(1)), name: "web" },
      { sandboxId: sandboxId(hex(2)), name: "" },
    ],
    remaining: seconds(80),
    until: since,
  },
  { kind: "futile", filesystem: "/data", boundBytes: GIB, neededBytes: 3n * GIB },
];

test("every reason, block, trigger and event has the same sentence as before", () => {
  expect(keeps.map(imageKeep.text)).toMatchSnapshot("why an image is kept");
  expect(blocks.map(imageBlock.text)).toMatchSnapshot("what blocks removal");
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
  ]).toMatchSnapshot("the rest");
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
  ["image", "age", null, "maximum age"],
  ["image", "pressure", "nodefs.available", "disk pressure (nodefs.available)"],
  ["container", "pod-gone", null, "its pod was deleted"],
  ["image", "moon-full", null, "moon-full"],
  ["volume", "age", null, "age"],
] as const)(
  "a removal of kind %s with the code %s and signal %p is titled %s",
  (kind, reason, signal, title) => {
    expect(removalTitle({ kind, reason, signal })).toBe(title);
  },
);

describe("names of images", () => {
  test.each([
    ["its first tag", image(1), "registry.example/team/app-1:1.1"],
    [
      "a short digest where it has no tag",
      image(1, { repoTags: [] }),
      `registry.example/team/app-1@sha256:${hex(4097).slice(0, 12)}`,
    ],
    [
      "its short ID where it has no name",
      image(1, { repoTags: [], repoDigests: [] }),
      "sha256:000100010001",
    ],
    [
      "its digest where the tag is none",
      image(1, { repoTags: ["<none>:<none>"], repoDigests: ["a@b"] }),
      "a@b",
    ],
  ])("an image is called by %s", (_what, it, name) => {
    expect(imageName(it)).toBe(name);
  });
});
