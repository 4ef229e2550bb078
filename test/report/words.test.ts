// Sentences: one for each code, and no control characters in any of them.

import { describe, expect, test } from "bun:test";

import { containerId, podUid, sandboxId } from "../../src/model/ids.ts";
import type { ImageBlock, ImageKeepReason, ImageUser } from "../../src/model/reason.ts";
import { hours, minutes, seconds } from "../../src/model/time.ts";
import {
  containerKeepTitle,
  containerKeepWords,
  containerRemoveWords,
  logKeepWords,
  podSourceWords,
  sandboxKeepWords,
} from "../../src/report/container-words.ts";
import { imageName, shortId } from "../../src/report/image-names.ts";
import {
  breakdownWords,
  budgetShortfallWords,
  freeDiskSpaceFailedWords,
  imageResultWords,
  invalidDiskCapacityWords,
} from "../../src/report/pass-words.ts";
import { blockWords, keepWords, triggerWords } from "../../src/report/words.ts";
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
    "in use by container web (000100010001), as a volume, the specification of pod u1, sandbox 000200020002",
  ],
  [{ kind: "pinned" }, "pinned in the runtime"],
  [
    { kind: "sandbox-image", by: "runtime", name: "pause:3.9" },
    "the sandbox image: the runtime names it (pause:3.9)",
  ],
  [
    { kind: "keep-rule", pattern: "nginx", source: "--keep", name: "docker.io/library/nginx:1" },
    "keep rule nginx (--keep) matches docker.io/library/nginx:1",
  ],
  [
    { kind: "keep-per-repository", repository: "app", place: 2, limit: 3 },
    "number 2 of the 3 most recently used of app, which are kept",
  ],
  [
    { kind: "ghost", since: at("2026-01-15T12:00:00Z"), attempts: 1 },
    "still listed after 1 removal that the runtime called a success or did not answer in time, the first at 2026-01-15T12:00:00Z; not tried again yet",
  ],
  [
    { kind: "too-young", age: seconds(40), minimumAge: minutes(2) },
    "first seen 40s ago, kept until it is 2m old",
  ],
  [{ kind: "blocked", block: "futile" }, "unused, but no image is removed now: it would be futile"],
];

test.each(keeps.map(([reason, words]) => [words, reason] as const))("%s", (words, reason) => {
  expect(keepWords(reason)).toBe(words);
});

const blocks: readonly (readonly [ImageBlock, string])[] = [
  [
    { kind: "on-hold", until: at("2026-01-15T12:00:00Z"), reason: "release night" },
    "collection is on hold until 2026-01-15T12:00:00Z (release night); crigc release ends it",
  ],
  [
    { kind: "on-hold", until: null, reason: "" },
    "collection is on hold until it is released; crigc release ends it",
  ],
  [
    { kind: "boot-grace", because: "boot", remaining: minutes(3) },
    "the node is only watched for another 3m (--boot-grace), because it booted",
  ],
  [
    {
      kind: "keep-rules-invalid",
      problems: [
        { source: "a.list:3", message: "is no pattern" },
        { source: "b.list", message: "is empty" },
      ],
    },
    "the keep rules are invalid, so no image is safe to remove: a.list:3: is no pattern; and 1 more",
  ],
  [
    {
      kind: "pod-starting",
      sandboxes: [sandboxId(hex(1)), sandboxId(hex(2))],
      remaining: seconds(80),
    },
    "a pod is starting and has no container yet (sandbox 000100010001 and 1 more), so images wait for at most 1m20s",
  ],
  [
    { kind: "futile", filesystem: "/data", boundBytes: GIB, neededBytes: 3n * GIB },
    "removing every unused image would free at most 1.0 GiB of the 3.0 GiB that /data needs, so the images stay: something else fills the disk",
  ],
];

test.each(blocks.map(([block, words]) => [words, block] as const))("%s", (words, block) => {
  expect(blockWords(block)).toBe(words);
});

test("text of the runtime cannot bring control characters into a sentence", () => {
  const evil = "x\u001b[2J\u202e\u009b";
  const sentences = [
    keepWords({ kind: "keep-rule", pattern: evil, source: evil, name: evil }),
    keepWords({ kind: "changed", what: evil }),
    blockWords({ kind: "usage-unknown", unknown: [{ subject: evil, message: evil }] }),
    containerKeepWords({ kind: "end-unknown", message: evil }),
    logKeepWords({ kind: "unreadable", message: evil }),
    imageResultWords({ kind: "failed", message: evil, code: "1" }),
    invalidDiskCapacityWords(evil),
    imageName(image(1, { repoTags: [evil] })),
    shortId(evil),
  ];
  expect(sentences.join("")).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
});

test("a pressure trigger names its signal", () => {
  expect(triggerWords({ kind: "pressure", signal: "imagefs.available" })).toBe(
    "disk pressure: imagefs.available is below its eviction threshold",
  );
});

describe("containers, sandboxes and logs", () => {
  test("a limit is named where it removes", () => {
    expect(containerRemoveWords({ kind: "over-total-limit", limit: 1 })).toBe(
      "dead, and the node has more than the limit of 1 dead container",
    );
  });

  test("containers of different ages share a title", () => {
    const young = (minutesDead: number): string =>
      containerKeepTitle({ kind: "too-young", age: minutes(minutesDead), minimumAge: hours(1) });
    expect(young(1)).toBe(young(7));
  });

  test("a sandbox says how many containers hold it", () => {
    expect(sandboxKeepWords({ kind: "has-containers", containers: [containerId("a")] })).toBe(
      "it still has 1 container",
    );
  });

  test("a pod source that cannot be believed is said with its reason", () => {
    expect(podSourceWords({ kind: "not-ready", source: "kubelet-api", why: "status 401" })).toBe(
      "kubelet-api cannot say yet which pods are gone: status 401",
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
  test("9.1-19: a shortfall says the percentage, the capacity and the bytes freed", () => {
    const text = freeDiskSpaceFailedWords({
      capacityBytes: 10n * GIB,
      availableBytes: (10n * GIB) / 20n,
      wantedBytes: 1_610_612_736n,
      freedBytes: 500n * MIB,
    });
    expect(text).toContain("95%");
    expect(text).toContain("10.0 GiB");
    expect(text).toContain("524288000 bytes");
  });

  test("a shortfall of the budget speaks of the images and of no disk", () => {
    expect(
      budgetShortfallWords({ maximumBytes: 10n * GIB, wantedBytes: GIB, freedBytes: 500n * MIB }),
    ).toBe(
      "Images take 11.0 GiB and may take 10.0 GiB: 1073741824 bytes had to be freed and only 524288000 bytes could be, since the rest is in use or kept",
    );
  });

  test("a capacity of zero names the path", () => {
    expect(invalidDiskCapacityWords("/data")).toBe(
      "The image filesystem at /data reports a capacity of 0 bytes, so its use cannot be judged and no image is removed",
    );
  });

  test("what fills the disk is broken down as far as it is known", () => {
    expect(
      breakdownWords({
        capacityBytes: 10n * GIB,
        availableBytes: GIB,
        imagesBytes: 2n * GIB,
        containersBytes: null,
        logsBytes: GIB,
        otherBytes: 6n * GIB,
      }),
    ).toBe("of 9.0 GiB used: images 2.0 GiB, pod logs 1.0 GiB, something else 6.0 GiB");
  });
});
