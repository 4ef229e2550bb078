import { describe, expect, test } from "bun:test";

import { sandboxId } from "../../../src/model/ids.ts";
import type { ImageRecord, Ledger } from "../../../src/model/ledger.ts";
import type { ImageLimits } from "../../../src/model/limits.ts";
import type { ImageKeepReason } from "../../../src/model/reason.ts";
import type { Image, Snapshot } from "../../../src/model/snapshot.ts";
import { hours, instant, minutes, type ObservedTime, watched } from "../../../src/model/time.ts";
import { judgeImages } from "../../../src/policy/image/judge.ts";
import {
  type Protection,
  PROTECTION_ORDER,
  protectionOf,
  type RemovalFor,
  sandboxImageReason,
  sandboxNames,
} from "../../../src/policy/image/protect.ts";
import { aContainer, aGhost, anImage, aSnapshot, NOW } from "../../support/build/values.ts";
import { inputOf, WATCHED } from "../judging.ts";

interface Case {
  readonly image?: Partial<Image>;
  readonly record?: Partial<ImageRecord>;
  readonly snapshot?: Partial<Snapshot>;
  readonly limits?: Partial<ImageLimits>;
  readonly others?: readonly Image[];
  readonly purpose?: RemovalFor;
  readonly ledger?: Partial<Ledger>;
}

const ago = (span: number): ObservedTime => watched(WATCHED - minutes(span));

function protection({
  image = {},
  record = {},
  snapshot = {},
  limits = {},
  others = [],
  purpose,
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
  return protectionOf(ranked, context(), purpose);
}

const young: Partial<ImageRecord> = {
  firstSeenWatched: watched(WATCHED - minutes(1)),
  firstSeenAt: instant(NOW - minutes(1)),
};

const preloaded: Partial<ImageLimits> = { keepPreloaded: true };
const pulling = (image: string): Snapshot["pulls"] => ({
  kind: "read",
  directory: "/k",
  recorded: new Map(),
  unreadable: [],
  unlisted: [],
  intents: [{ image, markedAt: NOW }],
});

describe("each rule keeps its image and names the cause", () => {
  const keep = {
    rules: [{ pattern: "**/app:v*", source: "/k/a.list:2" }],
    problems: [],
    directoriesRead: [],
  };
  const rows: readonly [string, Case, object][] = [
    [
      "in-use",
      {
        snapshot: {
          containers: [aContainer("c", { imageId: anImage("app").id, state: "exited" })],
        },
      },
      { users: [{ kind: "container", state: "exited" }] },
    ],
    ["pinned", { image: { pinned: true } }, {}],
    [
      "sandbox-image",
      { image: { repoTags: ["registry.k8s.io/pause:3.10"] } },
      { by: "pattern", name: "registry.k8s.io/pause:3.10" },
    ],
    ["sandbox-image", { limits: { infraImages: ["registry.example/app:v1"] } }, { by: "flag" }],
    [
      "keep-rule",
      { snapshot: { keep } },
      { pattern: "**/app:v*", source: "/k/a.list:2", name: "registry.example/app:v1" },
    ],
    ["keep-loaded", { image: { repoDigests: [] }, limits: { keepLoaded: true } }, {}],
    [
      "keep-per-repository",
      { limits: { keepPerRepository: 1 } },
      { repository: "registry.example/app", place: 1, limit: 1 },
    ],
    [
      "ghost",
      { record: { ghost: aGhost({ attempts: 2, retryWatched: watched(WATCHED + 1n) }) } },
      { since: NOW, attempts: 2, isFinal: false },
    ],
    ["ghost", { record: { ghost: aGhost({ isFinal: true }) } }, { isFinal: true }],
    ["too-young", { record: young }, { age: minutes(1), minimumAge: minutes(2) }],
    ["pulling", { snapshot: { pulls: pulling("registry.example/app:v1") } }, {}],
    // A short name that a runtime may complete in another way.
    ["pulling", { snapshot: { pulls: pulling("app:v1") } }, { name: "app:v1" }],
    ["keep-preloaded", { limits: preloaded, record: { pull: "no-record" } }, { pull: "no-record" }],
    ["keep-preloaded", { limits: preloaded, record: { pull: "pulling" } }, { pull: "pulling" }],
    ["keep-preloaded", { limits: preloaded }, { pull: "unknown", message: "a test" }],
    // An image that stays does not become removable with age.
    ["keep-preloaded", { limits: preloaded, record: young }, { pull: "unknown" }],
    [
      "keep-preloaded",
      { limits: preloaded, snapshot: { pulls: pulling("other") } },
      { pull: "unknown" },
    ],
  ];
  for (const [kind, given, fields] of rows) {
    test(`${kind} ${JSON.stringify(Object.keys(given))}`, () => {
      expect(protection(given).reason).toMatchObject({ kind, ...fields });
    });
  }
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
    "ghost",
    "too-young",
  ]);
  const all = protection({
    limits: { keepLoaded: true, keepPreloaded: true, keepPerRepository: 0 },
    record: { pull: "pulled" },
    snapshot: { pulls: pulling("other:1") },
    others: [anImage("other", { repoTags: ["other:1"] })],
  }).tried;
  expect(all).toEqual(
    PROTECTION_ORDER.filter(
      (code) =>
        !(["not-selected", "keep-per-repository", "just-used", "shares-all-layers"] as const).some(
          (other) => other === code,
        ),
    ),
  );
});

test("keepPreloaded keeps no image that was pulled, and a pull keeps none with compat kubelet", () => {
  expect(protection({ limits: preloaded, record: { pull: "pulled" } }).reason).toBeNull();
  const snapshot = { pulls: pulling("registry.example/app:v1") };
  expect(protection({ snapshot, limits: { compat: "kubelet" } }).reason).toBeNull();
  const both = { ...preloaded, compat: "kubelet" } as const;
  expect(protection({ snapshot, limits: both }).reason).toMatchObject({ kind: "keep-preloaded" });
});

test("a pull keeps images of its name for an hour of observed time", () => {
  const kept = (since: number, change: object = {}) =>
    protection({
      snapshot: { pulls: { kind: "failed", message: "unmounted", intents: null } },
      ledger: {
        pullIntents: new Map([
          [
            "registry.example/app:v1",
            { markedAt: NOW, firstSeenWatched: ago(since), endedWatched: null, ...change },
          ],
        ]),
      },
    }).reason;
  expect(kept(59)).toMatchObject({ kind: "pulling" });
  expect(kept(60)).toBeNull();
  expect(kept(59, { endedWatched: ago(1) })).toBeNull();
});

test("keep-per-repository keeps the most recent tags of each repository, and no other image", () => {
  const newer = anImage("newer", { repoTags: ["registry.example/app:v2"] });
  const kept = (keepPerRepository: number, change: Case = {}) =>
    protection({ others: [newer], limits: { keepPerRepository }, ...change }).reason;
  const old: Case = { record: { firstSeenWatched: watched(-5n) } };
  expect(kept(1, old)).toBeNull();
  expect(kept(2, old)).toMatchObject({ kind: "keep-per-repository", place: 2, limit: 2 });
  expect(kept(2, { image: { repoTags: [] } })).toBeNull();
});

test("a ghost becomes a candidate again once its pause is over", () => {
  const ghost = aGhost({ retryWatched: WATCHED });
  expect(protection({ record: { ghost } }).reason).toBeNull();
});

describe("the minimum age", () => {
  test("is reached when the age equals it", () => {
    const at = (age: bigint): Case => ({ record: { firstSeenWatched: watched(WATCHED - age) } });
    expect(protection(at(minutes(2) - 1n)).reason?.kind).toBe("too-young");
    expect(protection(at(minutes(2))).reason).toBeNull();
  });

  test.each([
    [
      "an image",
      "restarted by changed names",
      { record: { ageRestartedWatched: ago(1) } },
      2,
      true,
    ],
    ["every image", "restarted", { ledger: { ageRestartedWatched: ago(1) } }, 2, true],
    [
      "an image",
      "2 minutes after its restart",
      { record: { ageRestartedWatched: ago(2) } },
      2,
      false,
    ],
    [
      "an image",
      "59 minutes after a restart",
      { record: { ageRestartedWatched: ago(59) } },
      90,
      true,
    ],
    [
      "every image",
      "an hour after a restart",
      { ledger: { ageRestartedWatched: ago(60) } },
      90,
      false,
    ],
  ] as const)("keeps %s %s, for an hour at most: %#", (_, __, it, age, isKept) => {
    const minimumAge = minutes(age);
    const { reason } = protection({ ...it, limits: { minimumAge } });
    if (!isKept) expect(reason).toBeNull();
    else
      expect(reason).toMatchObject({
        kind: "too-young",
        minimumAge: age > 60 ? hours(1) : minimumAge,
        restarted: true,
      });
  });

  test("of an image that came when every age was restarted is its own, without that hour", () => {
    const { reason } = protection({
      record: { firstSeenWatched: ago(30) },
      ledger: { ageRestartedWatched: ago(30) },
      limits: { minimumAge: hours(2) },
    });
    expect(reason).toEqual({ kind: "too-young", age: minutes(30), minimumAge: hours(2) });
  });

  test("overrides the maximum age, but not with compat kubelet", () => {
    expect(protection({ record: young, purpose: "age" }).reason?.kind).toBe("too-young");
    expect(
      protection({ record: young, purpose: "age", limits: { compat: "kubelet" } }).reason,
    ).toBeNull();
  });
});

describe("compat kubelet", () => {
  const compat = { compat: "kubelet" } as const;

  test("an image used at or after the instant of the pass is skipped", () => {
    const at = (ns: bigint, lastUsedWatched: ObservedTime | null = WATCHED): Case => ({
      record: { lastUsedAt: instant(ns), lastUsedWatched },
      limits: compat,
    });
    expect(protection(at(NOW)).reason).toEqual({ kind: "just-used" });
    expect(protection(at(NOW - 1n)).reason).toBeNull();
    expect(protection({ ...at(NOW), purpose: "age" }).reason).toBeNull();
    // The wall clock was set back since then.
    expect(protection(at(NOW + 1n, watched(WATCHED - 1n))).reason).toBeNull();
    // Without the time of observation, that cannot be known.
    expect(protection(at(NOW + 1n, null)).reason).toEqual({ kind: "just-used" });
  });
});

test("an image listed twice is kept if one of its entries is pinned", () => {
  const twice = anImage("app", { pinned: true });
  expect(protection({ others: [twice] }).reason?.kind).toBe("pinned");
  const pinnedFirst = { image: { pinned: true }, others: [anImage("app")] } as const;
  expect(protection(pinnedFirst).reason?.kind).toBe("pinned");
  // The kubelet goes by the last entry.
  expect(protection({ ...pinnedFirst, limits: { compat: "kubelet" } }).reason).toBeNull();
});

describe("a keep rule, if the image lost the matching name,", () => {
  const base = "localhost:5000/base";
  const digest = `sha256:${"b".repeat(64)}`;
  /** As CRI-O lists an image whose tag another one has now. */
  const image = { repoTags: [], repoDigests: [`localhost@${digest}`] };
  const record = { earlierNames: [`${base}:v1`, `${base}@${digest}`] };
  const kept = (pattern: string, change: Case = {}) =>
    protection({
      image,
      record,
      ...change,
      snapshot: {
        keep: { rules: [{ pattern, source: "--keep" }], problems: [], directoriesRead: [] },
      },
    }).reason;

  test.each([base, `${base}:v1`, "localhost:5000/**", `${base}@sha256:bbbbbbbbbbbb`])(
    "of the form %s keeps it by an earlier one, and says so",
    (pattern) => {
      expect(kept(pattern)).toMatchObject({ kind: "keep-rule", pattern, earlier: true });
    },
  );
});

describe("the sandbox image", () => {
  interface Named {
    readonly runtime?: readonly string[];
    readonly sandbox?: string;
    readonly flag?: readonly string[];
  }

  function reasonOf(tag: string, named: Named): ImageKeepReason | null {
    const plain = aSnapshot();
    const snapshot = {
      runtime: { ...plain.runtime, sandboxImages: named.runtime ?? [] },
      sandboxImages: new Map([[sandboxId("s"), named.sandbox ?? ""]]),
    };
    return sandboxImageReason(
      sandboxNames(snapshot, named.flag ?? []),
      anImage("x", { repoTags: [tag] }),
    );
  }

  test("is what the runtime, a sandbox or the flag names, in this order", () => {
    const tag = "r.example/infra:1";
    const by = (named: Named) => reasonOf(tag, named);
    expect(by({ runtime: [tag], flag: [tag] })).toMatchObject({ by: "runtime", name: tag });
    expect(by({ sandbox: tag, flag: [tag] })).toMatchObject({ by: "runtime", name: tag });
    expect(by({ flag: [tag] })).toMatchObject({ by: "flag", name: tag });
  });

  describe("pause images are known by their names", () => {
    for (const tag of [
      "registry.k8s.io/pause:3.10",
      "k8s.gcr.io/pause-amd64:3.1",
      "docker.io/rancher/mirrored-pause:3.6",
      "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/pause:3.5",
      "mcr.microsoft.com/oss/kubernetes/pause:3.9",
      "localhost/kubernetes/pause:latest",
      "host:5000/pause:3.9",
      "pause:3.9",
    ]) {
      test(tag, () =>
        expect(reasonOf(tag, {})).toEqual({ kind: "sandbox-image", by: "pattern", name: tag }),
      );
    }

    for (const tag of [
      "registry.example/unpause:1",
      "registry.example/pause/app:1",
      "registry.example/app:pause",
    ]) {
      test(`${tag} is none`, () => expect(reasonOf(tag, {})).toBeNull());
    }
  });
});
