import { describe, expect, test } from "bun:test";

import type { ImageRecord, Ledger } from "../../../src/model/ledger.ts";
import type { ImageLimits } from "../../../src/model/limits.ts";
import type { ImageKeepReason } from "../../../src/model/reason.ts";
import type { Image, Snapshot } from "../../../src/model/snapshot.ts";
import {
  type Duration,
  hours,
  instant,
  minutes,
  type TotalUptime,
  totalUptime,
} from "../../../src/model/time.ts";
import { judgeImages } from "../../../src/policy/image/judge.ts";
import {
  type Protection,
  PROTECTION_ORDER,
  protectionOf,
  sandboxImageReason,
  sandboxNames,
} from "../../../src/policy/image/protect.ts";
import { aContainer, anImage, aSnapshot, idOf, keepOf, NOW } from "../../support/build/values.ts";
import { inputOf, WATCHED } from "../judging.ts";

interface Case {
  readonly image?: Partial<Image>;
  readonly record?: Partial<ImageRecord>;
  readonly snapshot?: Partial<Snapshot>;
  readonly limits?: Partial<ImageLimits>;
  readonly others?: readonly Image[];
  readonly ledger?: Partial<Ledger>;
}

const ago = (span: number): TotalUptime => totalUptime(WATCHED - minutes(span));

function protection({
  image = {},
  record = {},
  snapshot = {},
  limits = {},
  others = [],
  ledger = {},
}: Case): Protection {
  const subject = anImage("app", {
    repoDigests: [`registry.example/app@sha256:${"d1".repeat(32)}`],
    ...image,
  });
  const input = inputOf({ images: [subject, ...others], records: [record], snapshot, limits });
  const facts = { ...input, ledger: { ...input.ledger, ...ledger } };
  const { images, context } = judgeImages(facts);
  const ranked = images().find((one) => one.image.id === subject.id);
  if (ranked === undefined) throw new Error("the image under test is not among those judged");
  return protectionOf(ranked, context());
}

const young: Partial<ImageRecord> = {
  firstSeenUptime: totalUptime(WATCHED - minutes(1)),
  firstSeenAt: instant(NOW - minutes(1)),
};

describe("each rule", () => {
  const PAUSE = "registry.k8s.io/pause:3.10";
  const containers = [aContainer("c", { imageId: idOf("app"), state: "exited" })];
  const rule = { pattern: "**/app:v*", source: "/k/a.list:2" };
  test.each<[string, Case, object]>([
    ["in-use", { snapshot: { containers } }, { users: [{ kind: "container", state: "exited" }] }],
    ["pinned", { image: { pinned: true } }, {}],
    ["sandbox-image", { image: { repoTags: [PAUSE] } }, { by: "pattern", name: PAUSE }],
    ["sandbox-image", { limits: { infraImages: ["registry.example/app:v1"] } }, { by: "flag" }],
    [
      "keep-rule",
      { snapshot: { keep: keepOf([rule]) } },
      { ...rule, name: "registry.example/app:v1" },
    ],
    ["keep-loaded", { image: { repoDigests: [] }, limits: { keepLoaded: true } }, {}],
    [
      "keep-loaded",
      { image: { repoDigests: ["<none>@<none>"] }, limits: { keepLoaded: true } },
      {},
    ],
    [
      "keep-per-repository",
      { limits: { keepPerRepository: 1 } },
      { repository: "registry.example/app", place: 1, limit: 1 },
    ],
    ["too-young", { record: young }, { age: minutes(1), minimumAge: minutes(2) }],
  ])("keeps its image and names the cause: %s", (kind, given, fields) => {
    expect(protection(given).reason).toMatchObject({ kind, ...fields });
  });
});

test("rules are tried in order and the deciding one is last", () => {
  expect(protection({ image: { pinned: true }, record: young }).tried).toEqual([
    "in-use",
    "pinned",
  ]);
  expect(protection({ record: young }).tried).toEqual([
    "in-use",
    "pinned",
    "sandbox-image",
    "keep-rule",
    "too-young",
  ]);
  const all = protection({
    limits: { keepLoaded: true, keepPerRepository: 0 },
  }).tried;
  const off = ["not-selected", "keep-per-repository", "just-used", "shares-all-layers"];
  expect(all).toEqual(PROTECTION_ORDER.filter((code) => !off.includes(code)));
});

const seenBefore = (age: bigint): Case => ({
  record: { firstSeenUptime: totalUptime(WATCHED - age) },
});
/** Of this image, or of every one, so many minutes ago under this minimum age. */
const restarted = (span: number, age: number, of: "record" | "ledger" = "record"): Case => ({
  [of]: { ageRestartedUptime: ago(span) },
  limits: { minimumAge: minutes(age) },
});
const pinned = { pinned: true };

const youngFor = (minimumAge: Duration) => ({ kind: "too-young", minimumAge, restarted: true });
const cases: readonly [string, Case, object | null][] = [
  ["younger than the minimum age", seenBefore(minutes(2) - 1n), { kind: "too-young" }],
  ["as old as the minimum age", seenBefore(minutes(2)), null],
  ["whose names changed a minute ago", restarted(1, 2), youngFor(minutes(2))],
  ["whose names changed two minutes ago", restarted(2, 2), null],
  ["whose names changed 59 minutes ago", restarted(59, 90), youngFor(hours(1))],
  ["a minute after every age was restarted", restarted(1, 2, "ledger"), youngFor(minutes(2))],
  ["an hour after every age was restarted", restarted(60, 90, "ledger"), null],
  ["whose second entry is pinned", { others: [anImage("app", pinned)] }, { kind: "pinned" }],
  ["whose first entry is pinned", { image: pinned, others: [anImage("app")] }, { kind: "pinned" }],
];
for (const [what, given, reason] of cases)
  test(`an image ${what} is ${reason === null ? "not kept" : "kept"}`, () => {
    expect(protection(given).reason).toEqual(reason && expect.objectContaining(reason));
  });

test("an image that came when every age was restarted has its own age, without that hour", () => {
  const { reason } = protection({
    record: { firstSeenUptime: ago(30) },
    ledger: { ageRestartedUptime: ago(30) },
    limits: { minimumAge: hours(2) },
  });
  expect(reason).toEqual({ kind: "too-young", age: minutes(30), minimumAge: hours(2) });
});

test("keep-per-repository keeps the most recent tags of each repository, and no other image", () => {
  const newer = anImage("newer", { repoTags: ["registry.example/app:v2"] });
  const kept = (keepPerRepository: number, change: Case = {}) =>
    protection({ others: [newer], limits: { keepPerRepository }, ...change }).reason;
  const old: Case = { record: { firstSeenUptime: totalUptime(-5n) } };
  expect(kept(1, old)).toBeNull();
  expect(kept(2, old)).toMatchObject({ kind: "keep-per-repository", place: 2, limit: 2 });
  expect(kept(2, { image: { repoTags: [] } })).toBeNull();
});

describe("the sandbox image", () => {
  interface Named {
    readonly runtime?: readonly string[];
    readonly flag?: readonly string[];
  }

  function reasonOf(tag: string, named: Named): ImageKeepReason | null {
    const plain = aSnapshot();
    const snapshot = {
      runtime: { ...plain.runtime, sandboxImages: named.runtime ?? [] },
    };
    return sandboxImageReason(
      sandboxNames(snapshot, named.flag ?? []),
      anImage("x", { repoTags: [tag] }),
    );
  }

  test("is what the runtime or the flag names, in this order", () => {
    const tag = "r.example/infra:1";
    const by = (named: Named) => reasonOf(tag, named);
    expect(by({ runtime: [tag], flag: [tag] })).toMatchObject({ by: "runtime", name: tag });
    expect(by({ flag: [tag] })).toMatchObject({ by: "flag", name: tag });
  });

  test.each([
    ["registry.k8s.io/pause:3.10", true],
    ["k8s.gcr.io/pause-amd64:3.1", true],
    ["docker.io/rancher/mirrored-pause:3.6", true],
    ["602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/pause:3.5", true],
    ["mcr.microsoft.com/oss/kubernetes/pause:3.9", true],
    ["localhost/kubernetes/pause:latest", true],
    ["host:5000/pause:3.9", true],
    ["pause:3.9", true],
    ["registry.example/unpause:1", false],
    ["registry.example/pause/app:1", false],
    ["registry.example/app:pause", false],
  ])("is known by the name %s: %p", (name, isPause) => {
    const reason = { kind: "sandbox-image", by: "pattern", name } as const;
    expect(reasonOf(name, {})).toEqual(isPause ? reason : null);
  });
});
