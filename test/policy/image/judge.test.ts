import { describe, expect, test } from "bun:test";

import { chainId, podUid } from "../../../src/model/ids.ts";
import type { HoldState } from "../../../src/model/pass.ts";
import type { ImageCandidate, Purpose } from "../../../src/model/plan.ts";
import type { RemovalBlock } from "../../../src/model/reason.ts";
import type { Image, Snapshot } from "../../../src/model/snapshot.ts";
import { instant, minutes, seconds, totalUptime } from "../../../src/model/time.ts";
import type { Facts } from "../../../src/policy/facts.ts";
import { isRecreated, recheckImages } from "../../../src/policy/image/judge.ts";
import { rememberImageConfigs } from "../../../src/policy/layers.ts";
import { aContainer, anImage, aRecord, GIB, keepOf, NOW } from "../../support/build/values.ts";
import { fateOf, inputOf, kubeletPlanOf, type Node, planOf, WATCHED } from "../judging.ts";

const image = anImage("app", { sizeBytes: 4n * GIB });
const held = (reason: string): HoldState => ({ kind: "held", until: null, since: null, reason });

describe("each block stops every image and says why", () => {
  const graceUntil = totalUptime(WATCHED + minutes(3));
  const problems = [{ source: "/k/a.list:3", message: "bad" }];
  const starting = { podDirectories: [{ uid: podUid("u"), bornAt: NOW, files: [] }] };
  const unknown = [{ subject: "container container-c (c)" }];
  const rows: readonly [string, Node, object][] = [
    ["on-hold", { facts: { hold: held("upgrade") } }, { until: null, reason: "upgrade" }],
    [
      "boot-grace",
      { ledger: { graceUntil, graceReason: "boot", images: new Map() } },
      { because: "boot", remaining: minutes(3) },
    ],
    ["keep-rules-invalid", { snapshot: { keep: keepOf([], problems) } }, { problems }],
    [
      "keep-rules-invalid",
      { snapshot: { keep: keepOf([{ pattern: "a b", source: "--keep" }]) } },
      { problems: [{ source: "--keep" }] },
    ],
    [
      "usage-unknown",
      { snapshot: { containers: [aContainer("c", { imageName: "a/gone:1" })] } },
      { unknown },
    ],
    [
      "pod-starting",
      { snapshot: starting },
      { pods: [{ uid: podUid("u"), container: "" }], remaining: seconds(150) },
    ],
  ];
  for (const [kind, node, fields] of rows) {
    test(`${kind}, under crigc's rules and the kubelet's`, () => {
      for (const plan of [planOf, kubeletPlanOf])
        expect(plan({ images: [image], ...node })).toMatchObject({
          blocks: [{ kind, ...fields }],
          candidates: [],
          triggers: [{ kind: "space" }],
        });
    });
  }
});

test("directories of pods none of which starts block nothing, and of several the longest wait counts", () => {
  const born = (count: number) => ({
    uid: podUid(`u${count}`),
    bornAt: instant(NOW - seconds(count)),
    files: [],
  });
  const blocks = (...ages: readonly number[]) =>
    planOf({ images: [image], snapshot: { podDirectories: ages.map(born) } }).blocks;
  expect(blocks(200)).toEqual([]);
  for (const ages of [
    [50, 20],
    [20, 50],
  ])
    expect(blocks(...ages)).toMatchObject([
      { remaining: seconds(130), until: instant(NOW + seconds(130)) },
    ]);
});

test("an image is another one once its first look or its restart differs", () => {
  const of = (change: object) => ({ images: new Map([[image.id, aRecord(change)]]) });
  const isAnother = (now: object) => isRecreated({ image }, of({}), of(now));
  expect([{}, { lastUsedUptime: totalUptime(9n) }].map(isAnother)).toEqual([false, false]);
  expect(
    [{ firstSeenUptime: totalUptime(9n) }, { ageRestartedUptime: totalUptime(9n) }].map(isAnother),
  ).toEqual([true, true]);
  expect(isRecreated({ image }, of({}), { images: new Map() })).toBe(true);
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

test("the grace period ends in uptime", () => {
  const grace = { graceUntil: WATCHED, graceReason: "boot" as const };
  expect(planOf({ images: [image], ledger: grace }).blocks).toEqual([]);
});

test("a grace period without a recorded reason counts as that of a boot", () => {
  const ledger = { graceUntil: totalUptime(WATCHED + minutes(1)), graceReason: null };
  expect(planOf({ images: [image], ledger }).blocks).toEqual([
    { kind: "boot-grace", because: "boot", remaining: minutes(1) },
  ]);
});

describe("pods that cannot be read", () => {
  const blocksOf = (node: Node): readonly RemovalBlock["kind"][] =>
    planOf({ images: [image], ...node }).blocks.map(({ kind }) => kind);

  test("do not block images, whose specifications only add uses", () => {
    expect(
      blocksOf({
        snapshot: { pods: { kind: "failed", source: "kubelet-dir", message: "no such directory" } },
      }),
    ).toEqual([]);
    expect(blocksOf({ snapshot: { pods: { kind: "none", why: "asked for" } } })).toEqual([]);
  });
});

describe("just before a removal", () => {
  const app = anImage("app", { sizeBytes: 4n * GIB });
  const other = anImage("other", { sizeBytes: 4n * GIB });

  const changed = { kind: "changed" };
  const pinned = { pinned: true };
  const PERIODIC: Purpose = { kind: "periodic" };

  /** The facts of a plan with its first candidate. */
  function planned(node: Node = {}): readonly [Facts, ImageCandidate] {
    const whole: Node = { images: [app, other], ...node };
    const [candidate] = planOf(whole).candidates;
    if (candidate?.image !== app) throw new Error("the image under test is no candidate");
    return [inputOf(whole), candidate];
  }

  function again(fresh: Partial<Snapshot>, node: Node = {}): unknown {
    const [input, candidate] = planned(node);
    return recheckImages({ ...input, snapshot: { ...input.snapshot, ...fresh } })(
      candidate,
      new Set(),
    );
  }

  const gone = (tag: string) => aContainer(tag, { imageName: `registry.example/gone:${tag}` });
  const source = "/keep.d/site.list:2";
  const invalid = [{ source, message: "it is no pattern" }];
  const bothNamed = expect.stringMatching(
    / "registry.example\/gone:a".*; .* "registry.example\/gone:b"/,
  );
  const retagged = (...repoTags: readonly string[]) => ({ images: [{ ...app, repoTags }, other] });
  const blockedBy = (block: RemovalBlock["kind"], change: object = {}) => ({
    kind: "blocked",
    block,
    ...change,
  });
  test.each<[string, Partial<Snapshot>, object]>([
    ["a tag that moved from the image", retagged(), changed],
    ["a tag that moved to the image", retagged(...app.repoTags, "r.example/app:v2"), changed],
    ["the image's disappearance", { images: [other] }, changed],
    [
      "a keep rule that became invalid, with its file and line",
      { keep: keepOf([], invalid) },
      blockedBy("keep-rules-invalid", { detail: `${source}: it is no pattern` }),
    ],
    [
      "a pod that began to start",
      { podDirectories: [{ uid: podUid("u"), bornAt: NOW, files: [] }] },
      blockedBy("pod-starting"),
    ],
    [
      "containers whose image is unknown",
      { containers: ["a", "b"].map(gone) },
      blockedBy("usage-unknown", { detail: bothNamed }),
    ],
  ])("%s stops a removal", (_, fresh, reason) => {
    expect(again(fresh)).toMatchObject(reason);
    expect(again(fresh)).not.toHaveProperty("detail", "");
  });

  test.each<[string, Partial<Image>, readonly Image["id"][], Purpose, string | null]>([
    ["keeps an image whose layers a pinned image has", pinned, [], PERIODIC, "other"],
    ["allows one whose layers a removable image has", {}, [], PERIODIC, null],
    [
      "allows one whose layers only an image had that the pass removed",
      pinned,
      [other.id],
      PERIODIC,
      null,
    ],
    [
      "allows one that the operator named, whoever has its layers",
      pinned,
      [],
      { kind: "all-unused", isByName: true },
      null,
    ],
  ])("a recheck %s", (_, change, removed, purpose, sharer) => {
    const [input, candidate] = planned({ facts: { purpose } });
    const images = [app, { ...other, ...change }];
    const known = rememberImageConfigs(
      { imageConfigs: new Map(), layers: new Map() },
      images.map(({ id }) => id),
      new Map(images.map(({ id }) => [id, { chain: [chainId("b")], builtAt: null }])),
    );
    const ledger = { ...input.ledger, ...known };
    const facts = { ...input, ledger, snapshot: { ...input.snapshot, images } };
    const reason = recheckImages(facts)(candidate, new Set(removed));
    expect(reason).toEqual(
      sharer === null
        ? null
        : {
            kind: "shares-all-layers",
            images: [{ id: other.id, name: `registry.example/${sharer}:v1` }],
          },
    );
    // Its age has nothing to do with its layers.
    const aged: ImageCandidate = { ...candidate, triggers: [{ kind: "age" }] };
    expect(recheckImages(facts)(aged, new Set(removed))).toBeNull();
  });
});
