import { describe, expect, test } from "bun:test";

import { type ImageId, podUid, sandboxId } from "../../../src/model/ids.ts";
import type { OriginRecord } from "../../../src/model/ledger.ts";
import type { HoldState } from "../../../src/model/pass.ts";
import type { Plan } from "../../../src/model/plan.ts";
import type { ImageBlock } from "../../../src/model/reason.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import { hours, instant, minutes, seconds, watched } from "../../../src/model/time.ts";
import { judgeImages, recheckImages, waitsForCreations } from "../../../src/policy/image/judge.ts";
import {
  aContainer,
  anImage,
  anImagePlan,
  aSandbox,
  keepOf,
  NOW,
} from "../../support/build/values.ts";
import { fateOf, inputOf, type Node, planOf, WATCHED } from "../judging.ts";

const image = anImage("app");
const held = (reason: string): HoldState => ({ kind: "held", until: null, since: null, reason });
const failedApi: Snapshot["pods"] = { kind: "failed", source: "kubelet-api", message: "401" };

describe("each block stops every image and says why", () => {
  const rows: readonly [string, Node, object][] = [
    ["on-hold", { facts: { hold: held("upgrade") } }, { until: null, reason: "upgrade" }],
    [
      "boot-grace",
      {
        ledger: {
          graceUntil: watched(WATCHED + minutes(3)),
          graceReason: "boot",
          images: new Map(),
        },
      },
      { because: "boot", remaining: minutes(3) },
    ],
    [
      "keep-rules-invalid",
      { snapshot: { keep: keepOf([], [{ source: "/k/a.list:3", message: "bad" }]) } },
      { problems: [{ source: "/k/a.list:3", message: "bad" }] },
    ],
    [
      "keep-rules-invalid",
      { snapshot: { keep: keepOf([{ pattern: "a b", source: "--keep" }]) } },
      { problems: [{ source: "--keep" }] },
    ],
    ["pods-unknown", { snapshot: { pods: failedApi } }, { message: "401" }],
    [
      "usage-unknown",
      { snapshot: { containers: [aContainer("c", { imageName: "a/gone:1" })] } },
      { unknown: [{ subject: "container container-c (c)" }] },
    ],
    [
      "pod-starting",
      {
        snapshot: {
          creations: {
            clocks: { wall: NOW, uptime: hours(48), bootId: "boot-1" },
            inProgress: [
              { podUid: podUid("u"), sandboxId: sandboxId("s"), name: "web", markedAt: NOW },
            ],
          },
        },
      },
      { containers: [{ sandboxId: sandboxId("s"), name: "web" }], remaining: seconds(150) },
    ],
  ];
  for (const [kind, node, fields] of rows) {
    for (const compat of kind === "boot-grace"
      ? (["none"] as const)
      : (["none", "kubelet"] as const)) {
      test(`${kind}, compat ${compat}`, () => {
        const plan = planOf({ images: [image], ...node, limits: { compat } });
        expect(plan.blocks).toMatchObject([{ kind, ...fields }]);
        expect(plan.candidates).toEqual([]);
        expect(plan.triggers).toEqual([{ kind: "space" }]);
      });
    }
  }
});

test("an unprotected image has the first block as its reason, a protected one its own", () => {
  const pinned = anImage("pinned", { pinned: true });
  const plan = planOf({ images: [image, pinned], facts: { hold: held("") } });
  expect([fateOf(plan, image), fateOf(plan, pinned)]).toEqual(["blocked", "pinned"]);
});

test("without a trigger the reason is no-trigger, and the block is reported too", () => {
  const plan = planOf({
    images: [image],
    facts: { hold: held("") },
    limits: { highPercent: 99, lowPercent: 98 },
  });
  expect(fateOf(plan, image)).toBe("no-trigger");
  expect(plan.blocks.map(({ kind }) => kind)).toEqual(["on-hold"]);
});

test("the grace period ends in observed time, and compat kubelet has none", () => {
  const grace = { graceUntil: WATCHED, graceReason: "boot" as const };
  expect(planOf({ images: [image], ledger: { ...grace } }).blocks).toEqual([]);
  const running = { ...grace, graceUntil: watched(WATCHED + 1n) };
  expect(
    planOf({ images: [image], ledger: running, limits: { compat: "kubelet" } }).blocks,
  ).toEqual([]);
});

test("a grace period without a recorded reason counts as that of a boot", () => {
  const ledger = { graceUntil: watched(WATCHED + minutes(1)), graceReason: null };
  expect(planOf({ images: [image], ledger }).blocks).toEqual([
    { kind: "boot-grace", because: "boot", remaining: minutes(1) },
  ]);
});

describe("pods that cannot be read", () => {
  const blocksOf = (node: Node): readonly ImageBlock["kind"][] =>
    planOf({ images: [image], ...node }).blocks.map(({ kind }) => kind);

  test("matter only where their specifications count as use", () => {
    expect(
      blocksOf({
        snapshot: { pods: { kind: "failed", source: "kubelet-dir", message: "no such directory" } },
      }),
    ).toEqual([]);
    expect(blocksOf({ snapshot: { pods: { kind: "none", why: "asked for" } } })).toEqual([]);
  });

  test("of a kubelet with an incomplete list block images with their own reason", () => {
    const snapshot: Node["snapshot"] = { pods: { kind: "ready", source: "kubelet-api", pods: [] } };
    expect(blocksOf({ snapshot })).toEqual([]);
    const unknown = aSandbox("living", { createdAt: instant(NOW - hours(1)) });
    expect(
      blocksOf({
        snapshot: { ...snapshot, sandboxes: [unknown], containers: [aContainer("living")] },
      }),
    ).toContain("pods-incomplete");
  });

  test("of a kubelet that lists only static pods block images, which a healthy node may show too", () => {
    const uid = podUid("0123456789abcdef0123456789abcdef");
    const listed = { uid, origin: "static" as const, finished: false, evicted: false, images: [] };
    const createdAt = instant(NOW - hours(1));
    const { blocks } = planOf({
      images: [image],
      snapshot: {
        pods: { kind: "ready", source: "kubelet-api", pods: [listed] },
        sandboxes: [aSandbox("s", { podUid: uid, metadataUid: uid, createdAt })],
        containers: [aContainer("job", { podUid: podUid("uid-c"), state: "exited", createdAt })],
      },
    });
    expect(blocks[0]).toMatchObject({ kind: "pods-incomplete", passes: true });
  });
});

describe("a pass waits for containers that are being created", () => {
  const starting: ImageBlock = {
    kind: "pod-starting",
    containers: [],
    remaining: minutes(1),
    until: NOW,
  };
  const onHold: ImageBlock = { kind: "on-hold", until: null, reason: "" };
  const waits = (...change: Parameters<typeof anImagePlan>): boolean =>
    waitsForCreations({ containers: null, images: anImagePlan(...change) });

  test("if no block applies to images and a trigger is met", () => {
    expect(waits([], { blocks: [starting] })).toBeTrue();
    expect(waits([], { blocks: [starting], triggers: [] })).toBeFalse();
    expect(waits([], { blocks: [starting, onHold] })).toBeFalse();
    expect(waits([], { blocks: [] })).toBeFalse();
  });

  test("and never if its plan has no images", () => {
    const plan: Plan = { containers: null, images: null };
    expect(waitsForCreations(plan)).toBeFalse();
  });
});

describe("just before a removal", () => {
  const app = anImage("app");
  const other = anImage("other");

  function again(fresh: Partial<Snapshot>, node: Node = {}): unknown {
    const whole: Node = { images: [app, other], ...node };
    const candidate = planOf(whole).candidates.find((one) => one.image.id === app.id);
    if (candidate === undefined)
      throw new Error("the image under test is no candidate of its plan");
    const input = inputOf(whole);
    return recheckImages({ ...input, snapshot: { ...input.snapshot, ...fresh } })(candidate);
  }

  test("images are not put in order again: the plan's order counts", () => {
    const whole: Node = { images: [app, other] };
    const [candidate] = planOf(whole).candidates;
    if (candidate === undefined) throw new Error("the plan has no candidate");
    const input = inputOf(whole);
    // Images that are as old as one another are ordered by when they were built.
    class Origins extends Map<ImageId, OriginRecord> {
      override get(): never {
        throw new Error("images are compared");
      }
    }
    const ordered = { ...input, ledger: { ...input.ledger, origins: new Origins() } };
    expect(recheckImages(ordered)(candidate)).toBeNull();
    expect(() => judgeImages(ordered).images()).toThrow("images are compared");
  });

  describe("a change since the plan stops a removal", () => {
    test("a tag that moved to or from the image", () => {
      for (const repoTags of [[], ["registry.example/app:v1", "registry.example/app:v2"]]) {
        expect(again({ images: [{ ...app, repoTags }, other] })).toMatchObject({ kind: "changed" });
      }
    });

    test("the image's disappearance", () =>
      expect(again({ images: [other] })).toMatchObject({ kind: "changed" }));

    test("a keep rule that became invalid, with its file and line", () => {
      const problems = [{ source: "/keep.d/site.list:2", message: "it is no pattern" }];
      expect(again({ keep: keepOf([], problems) })).toEqual({
        kind: "blocked",
        block: "keep-rules-invalid",
        detail: "/keep.d/site.list:2: it is no pattern",
      });
    });

    test("pods that can no longer be read", () => {
      const pods = { kind: "failed", source: "kubelet-api", message: "timeout" } as const;
      expect(again({ pods })).toEqual({ kind: "blocked", block: "pods-unknown" });
    });

    test("a container whose image is unknown", () => {
      const containers = ["a", "b"].map((name) =>
        aContainer(name, { imageName: `registry.example/gone:${name}` }),
      );
      expect(again({ containers })).toEqual({
        kind: "blocked",
        block: "usage-unknown",
        detail: expect.stringMatching(
          / "registry.example\/gone:a".*; .* "registry.example\/gone:b"/,
        ),
      });
    });
  });

  test("with compat kubelet names do not matter, and an image removed for age may be young", () => {
    const node: Node = { limits: { compat: "kubelet" } };
    expect(again({ images: [{ ...app, repoTags: [] }, other] }, node)).toBeNull();
  });
});
