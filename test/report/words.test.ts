// Sentences: one for each code, and no control characters in any of them.

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

const keeps: readonly (readonly [ImageKeepReason, string])[] = [
  [{ kind: "in-use", users: [user(1)] }, "in use by running container shop-0/web-1"],
  [
    { kind: "in-use", users: [1, 2, 3, 4, 5].map(user) },
    "in use by running container shop-0/web-1, running container shop-0/web-2, running container shop-0/web-3 and 2 more",
  ],
  [
    {
      kind: "in-use",
      users: [
        { kind: "image-volume", id: containerId(hex(1)), name: "web", podName: "" },
        { kind: "pod-spec", uid: podUid("u1") },
        { kind: "sandbox", id: sandboxId(hex(2)) },
      ],
    },
    "in use by container web (000100010001) as a volume, the spec of pod u1, sandbox 000200020002",
  ],
  [{ kind: "pinned" }, "pinned in the runtime"],
  [
    { kind: "sandbox-image", by: "runtime", name: "pause:3.9" },
    "sandbox image pause:3.9, as the runtime says",
  ],
  [
    { kind: "keep-rule", pattern: "nginx", source: "--keep", name: "docker.io/library/nginx:1" },
    "keep rule nginx (--keep) matches docker.io/library/nginx:1",
  ],
  [
    { kind: "keep-per-repository", repository: "app", place: 2, limit: 3 },
    "number 2 of the 3 most recently used images of app",
  ],
  [
    { kind: "ghost", since: at("2026-01-15T12:00:00Z"), attempts: 1, isFinal: false },
    "still listed after 1 removal since 2026-01-15T12:00:00Z; crigc tries again later",
  ],
  [
    { kind: "too-young", age: seconds(40), minimumAge: minutes(2) },
    "first seen 40s ago; the minimum age is 2m",
  ],
  [
    { kind: "blocked", block: "futile" },
    "unused; image removal is blocked: too little can be freed",
  ],
];

test.each(keeps.map(([reason, words]) => [words, reason] as const))("%s", (words, reason) => {
  expect(imageKeep.text(reason)).toBe(words);
});

const blocks: readonly (readonly [ImageBlock, string])[] = [
  [
    { kind: "on-hold", until: at("2026-01-15T12:00:00Z"), reason: "release night" },
    "garbage collection is on hold until 2026-01-15T12:00:00Z (release night); crigc release ends the hold",
  ],
  [
    { kind: "on-hold", until: null, reason: "" },
    "garbage collection is on hold until it is released; crigc release ends the hold",
  ],
  [
    { kind: "boot-grace", because: "boot", remaining: minutes(3) },
    "grace period (--boot-grace) for another 3m, because the node booted",
  ],
  [
    {
      kind: "keep-rules-invalid",
      problems: [
        { source: "a.list:3", message: "is no pattern" },
        { source: "b.list", message: "is empty" },
      ],
    },
    "invalid keep rules: a.list:3: is no pattern; and 1 more",
  ],
  [
    {
      kind: "pod-starting",
      containers: [
        { sandboxId: sandboxId(hex(1)), name: "web" },
        { sandboxId: sandboxId(hex(2)), name: "" },
      ],
      remaining: seconds(80),
      until: at("2026-01-01T00:00:00Z"),
    },
    "2 containers being created (web in sandbox 000100010001, and 1 more); no image is removed until then, or until 2026-01-01T00:00:00Z (1m20s)",
  ],
  [
    { kind: "futile", filesystem: "/data", boundBytes: GIB, neededBytes: 3n * GIB },
    "too little can be freed: all unused images together give at most 1.0 GiB of the 3.0 GiB that /data needs, so crigc removes none; something else fills the disk",
  ],
];

test.each(blocks.map(([block, words]) => [words, block] as const))("%s", (words, block) => {
  expect(imageBlock.text(block)).toBe(words);
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
    imageName(image(1, { repoTags: [evil] })),
    shortId(evil),
  ];
  expect(sentences.join("")).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
});

test("a pressure trigger names its signal", () => {
  expect(imageTrigger.text({ kind: "pressure", signal: "imagefs.available" })).toBe(
    "disk pressure: imagefs.available is below its eviction threshold",
  );
});

describe("containers, sandboxes and logs", () => {
  test("the reason of a removal over a limit names the limit", () => {
    expect(containerReasons.text({ kind: "over-total-limit", limit: 1 })).toBe(
      "dead, over the node's limit of 1 dead container",
    );
  });

  test("a reason about a container in JSON has its code, its sentence and its data with units", () => {
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
    ["image", "age", "unused for longer than the maximum age"],
    ["container", "pod-gone", "its pod was deleted"],
    ["image", "moon-full", "moon-full"],
    ["volume", "age", "age"],
  ])("a removal of kind %s with the code %s is titled %s", (kind, code, title) => {
    expect(removalTitle(kind, code)).toBe(title);
  });

  test("the reason of a kept sandbox says how many containers it has", () => {
    expect(sandboxReasons.text({ kind: "has-containers", containers: [containerId("a")] })).toBe(
      "still has 1 container",
    );
  });

  test("a pod source that is not ready is worded with its reason", () => {
    expect(podSourceWords({ kind: "not-ready", source: "kubelet-api", why: "status 401" })).toBe(
      "pod source kubelet-api is not ready: status 401",
    );
  });
});

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

describe("events", () => {
  const shortfall = {
    capacityBytes: 10n * GIB,
    availableBytes: (10n * GIB) / 20n,
    wantedBytes: 1_610_612_736n,
    freedBytes: 500n * MIB,
  };

  test("9.1-19: a shortfall says the percentage, the capacity and what was freed", () => {
    expect(freeDiskSpaceFailedWords(shortfall, "")).toBe(
      "The image filesystem (10.0 GiB) is 95% full: freed 500.0 MiB of the 1.5 GiB needed; check what else uses the disk",
    );
  });

  test("a shortfall for which images are only too young says when they become removable", () => {
    const young = "3 images (1.0 GiB) become removable within 1m40s";
    const text = freeDiskSpaceFailedWords(shortfall, young);
    expect(text).toEndWith(`needed; ${young}`);
  });

  test("a shortfall of the budget speaks of the images and of no disk", () => {
    expect(
      budgetShortfallWords({ maximumBytes: 10n * GIB, wantedBytes: GIB, freedBytes: 500n * MIB }),
    ).toBe(
      "Images take 11.0 GiB of a budget of 10.0 GiB: freed 500.0 MiB of the 1.0 GiB needed; the rest is in use or kept",
    );
  });

  test("the event of invalid figures says which they are", () => {
    expect(invalidDiskCapacityWords("the runtime names no image filesystem")).toBe(
      "The runtime names no image filesystem, so crigc removes no image",
    );
  });

  test("the breakdown of a disk names the parts that are known", () => {
    expect(
      breakdownWords({
        capacityBytes: 10n * GIB,
        availableBytes: GIB,
        imagesBytes: 2n * GIB,
        imagesAtLeastBytes: 0n,
        containersBytes: null,
        logsBytes: GIB,
        otherBytes: 6n * GIB,
      }),
    ).toBe("images up to 2.0 GiB, pod logs 1.0 GiB, other data 6.0 GiB of 9.0 GiB used");
  });
});
