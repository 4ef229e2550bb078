import { describe, expect, test } from "bun:test";

import { chainId } from "../../../src/model/ids.ts";
import type { ImageLimits } from "../../../src/model/limits.ts";
import type { ImageTarget } from "../../../src/model/plan.ts";
import type { Filesystem, Snapshot } from "../../../src/model/snapshot.ts";
import { hours, type Instant, instant, minutes, watched } from "../../../src/model/time.ts";
import { estimate } from "../../../src/policy/image/images.ts";
import {
  aCandidate,
  aContainer,
  aFilesystem,
  anImage,
  GIB,
  idOf,
  inodeTarget,
  MIB,
  NOW,
  spaceTarget,
} from "../../support/build/values.ts";
import { fateOf, planOf, WATCHED, words } from "../judging.ts";

const HELD = { kind: "held", until: null, since: null, reason: "" } as const;
const gib = (name: string, size = 1n) => anImage(name, { sizeBytes: size * GIB });
const three = [gib("a"), gib("b"), gib("c")];
/** 100 GiB, of which so many are available. */
const disk = (availableGib: bigint, imageUsedGib: bigint | null = 60n) =>
  aFilesystem({
    availableBytes: availableGib * GIB,
    imageUsedBytes: imageUsedGib === null ? null : imageUsedGib * GIB,
  });
const onDisk = (availableGib: bigint): Partial<Snapshot> => ({ filesystems: [disk(availableGib)] });

describe("space", () => {
  test("below the high threshold every image is kept because no trigger is met", () => {
    const plan = planOf({ images: three, snapshot: onDisk(16n) });
    expect(plan).toMatchObject({ triggers: [], targets: [], candidates: [], blocks: [] });
    expect(three.map((image) => fateOf(plan, image))).toEqual(Array(3).fill("no-trigger"));
    expect(plan.usage[0]).toMatchObject({ usedPercent: 84, highPercent: 85, lowPercent: 80 });
  });

  test("below the high threshold no image is judged before somebody reads why it stays, and then once", () => {
    let judged = 0;
    const image = {
      ...anImage("a"),
      // The rule after the uses reads it.
      get pinned() {
        judged += 1;
        return false;
      },
    };
    const plan = planOf({ images: [image], snapshot: onDisk(16n) });
    expect(plan.candidates).toEqual([]);
    expect(judged).toBe(0);
    expect(plan.kept).toHaveLength(1);
    expect(plan.kept).toBe(plan.kept);
    expect(judged).toBe(1);
  });

  test("each image filesystem is judged, with compat kubelet only the first", () => {
    const filesystems = [
      disk(50n),
      aFilesystem({ device: "8:2", path: "/b", availableBytes: 10n * GIB }),
    ];
    expect(planOf({ images: three, snapshot: { filesystems } }).targets).toMatchObject([
      { device: "8:2" },
    ]);
    expect(
      planOf({ images: three, snapshot: { filesystems }, limits: { compat: "kubelet" } }).targets,
    ).toEqual([]);
  });
});

test("a high threshold of 100 turns it off unless a maximum age is set", () => {
  const met = (limits: Partial<ImageLimits>) =>
    planOf({ images: three, snapshot: onDisk(0n), limits: { highPercent: 100, ...limits } })
      .triggers;
  expect(met({})).toEqual([]);
  expect(met({ maximumAge: hours(9_000) })).toEqual([{ kind: "space" }]);
});

describe("other triggers", () => {
  test("several at once: each is named, and the strictest decides how far", () => {
    const plan = planOf({
      images: three,
      limits: { storeBudgetBytes: 57n * GIB },
      snapshot: onDisk(15n),
    });
    expect(plan.triggers).toEqual([{ kind: "space" }, { kind: "budget" }]);
    expect(
      plan.candidates.every(({ expected, triggers }) => expected && triggers.length === 2),
    ).toBeTrue();
  });
});

test("the evaluated rules are listed, the deciding one last, and none that is off", () => {
  const always = ["in-use", "pinned", "sandbox-image", "keep-rule", "ghost"] as const;
  const images = [{ ...gib("pinned"), pinned: true }, gib("free")];
  const kept = planOf({ images, snapshot: onDisk(50n) }).kept.map((one) => one.tried);
  const idle = [...always, "too-young", "no-trigger"] as const;
  expect(new Set(kept)).toEqual(new Set<(typeof kept)[number]>([["in-use", "pinned"], idle]));
  const triedWith = (compat: ImageLimits["compat"]) =>
    planOf({ images, limits: { storeBudgetBytes: 0n, compat } }).candidates[0]?.tried;
  expect(triedWith("none")).toEqual([...always, "too-young"]);
  expect(triedWith("kubelet")).toEqual([...always, "just-used", "too-young"]);
});

describe("age", () => {
  const limits = { maximumAge: hours(24) };
  const usedBefore = (span: bigint) => ({
    lastUsedAt: NOW,
    lastUsedWatched: watched(WATCHED - span),
  });

  test("images over the maximum age are removed at any disk usage; protected and younger ones are kept", () => {
    const plan = planOf({
      images: [gib("old"), gib("edge"), anImage("pinned", { pinned: true })],
      records: [usedBefore(hours(24) + 1n), usedBefore(hours(24)), usedBefore(hours(99))],
      limits,
      snapshot: onDisk(50n),
    });
    expect(words(plan.candidates)).toEqual(["old"]);
    expect(plan).toMatchObject({ triggers: [{ kind: "age" }], targets: [] });
    expect(plan.candidates[0]).toMatchObject({
      triggers: [{ kind: "age" }],
      expected: true,
      unusedFor: hours(24) + 1n,
    });
    expect(fateOf(plan, gib("edge"))).toBe("no-trigger");
  });

  test.each([
    ["none", "nothing", "goes"],
    ["none", "a hold", "blocked"],
    ["none", "a capacity of 0", "blocked"],
    ["kubelet", "a hold", "blocked"],
    ["kubelet", "a capacity of 0", "goes"],
    ["kubelet", "a hold and a capacity of 0", "blocked"],
  ] as const)("with compat %s, what is too old meets %s and %s", (compat, stops, fate) => {
    const plan = planOf({
      images: [gib("old")],
      limits: { ...limits, compat },
      snapshot: {
        filesystems: [stops.includes("capacity") ? aFilesystem({ capacityBytes: 0n }) : disk(50n)],
      },
      facts: {
        startedAt: instant(0n),
        hold: stops.includes("hold") ? HELD : { kind: "none" },
      },
    });
    expect(fateOf(plan, gib("old"))).toBe(fate);
  });

  test.each([
    ["periodic", "none", [{ kind: "space-off" }]],
    ["periodic", "kubelet", [{ kind: "space-off" }]],
    ["all-unused", "none", []],
    ["all-unused", "kubelet", []],
  ] as const)(
    "a %s plan with compat %s and nothing to watch says so where it matters",
    (kind, compat, notes) => {
      const off = { compat, highPercent: 100, lowPercent: 80 } as const;
      expect(planOf({ images: three, limits: off, facts: { purpose: { kind } } }).notes).toEqual([
        ...notes,
      ]);
      const aged = { images: three, limits: { ...limits, compat } };
      const note = { kind: "maximum-age-needs-agent" } as const;
      expect(planOf(aged).notes).toEqual(compat === "kubelet" ? [note] : []);
      expect(planOf({ ...aged, facts: { startedAt: NOW } }).notes).toEqual([]);
    },
  );
});

test.each([
  ["none", NOW, []],
  ["none", null, []],
  ["kubelet", null, []],
  // Only a loop that has something to do runs a pass.
  ["kubelet", NOW, ["space"]],
] as const)(
  "a high threshold of 100 triggers no pass with compat %s, and with an agent since %p %j",
  (compat, startedAt, triggers) => {
    const off = { compat, highPercent: 100, lowPercent: 80 } as const;
    const full = { images: three, limits: off, snapshot: onDisk(0n), facts: { startedAt } };
    expect(planOf(full).triggers.map(({ kind }) => kind)).toEqual([...triggers]);
  },
);

describe("pressure", () => {
  const trigger = { kind: "pressure", signal: "imagefs.available" } as const;
  const target = { ...spaceTarget(15n * GIB, GIB), trigger };
  const elsewhere: ImageTarget = { ...target, device: "8:2", path: "/other" };
  const pressed = (
    pressureTargets: readonly ImageTarget[],
    filesystems: readonly Filesystem[] = [disk(14n)],
  ) =>
    planOf({
      images: three,
      snapshot: { filesystems },
      limits: { storeBudgetBytes: 0n },
      facts: {
        purpose: { kind: "pressure", signals: ["imagefs.available"] },
        pressureTargets,
      },
    });

  test("removes images as far as its targets need, names each of its signals, and ignores the other thresholds", () => {
    const other = { kind: "pressure", signal: "nodefs.available" } as const;
    const targets = [target, { ...target, trigger: other }];
    const plan = pressed(targets);
    expect(plan).toMatchObject({ targets, triggers: [trigger, other] });
    expect(plan.candidates.map(({ expected }) => expected)).toEqual([true, false, false]);
    expect(plan.candidates[0]?.triggers).toEqual([trigger, other]);
  });

  test("removes no image for a disk that no longer exists", () => {
    expect(pressed([elsewhere])).toMatchObject({ candidates: [], targets: [], triggers: [] });
  });

  test("reports the largest need of a disk with several unreachable thresholds, in bytes and in inodes", () => {
    const inodes = (relieved: bigint) => ({ ...inodeTarget(relieved, 1n), trigger });
    const stricter: ImageTarget = { ...target, relievedBytes: 40n * GIB };
    const full = { ...disk(1n, 1n), inodesFree: 10n, imageInodesUsed: 1n };
    const targets = [stricter, inodes(600n), target, inodes(700n)];
    for (const those of [targets, targets.toReversed()]) {
      const { blocks } = pressed(those, [full]);
      expect(blocks).toHaveLength(2);
      expect(blocks).toContainEqual(
        expect.objectContaining({ kind: "futile", neededBytes: 39n * GIB }),
      );
      expect(blocks).toContainEqual(
        expect.objectContaining({ inodes: { bound: expect.anything(), needed: 690n } }),
      );
    }
  });

  test("removes no image for a reachable threshold if a stricter one on the same disk is unreachable", () => {
    const milder: ImageTarget = { ...target, availableBytes: 3n * GIB, relievedBytes: 3n * GIB };
    const full = disk(1n, 1n);
    const other = { ...disk(0n, 1n), device: "8:2", path: "/other" };
    expect(pressed([milder, target], [full])).toMatchObject({
      candidates: [],
      targets: [],
      blocks: [{ kind: "futile" }],
    });
    expect(pressed([milder], [full]).targets).toEqual([milder]);
    // Another disk has a pressure of its own.
    expect(pressed([milder, elsewhere], [full, other]).targets).toEqual([milder]);
  });
});

describe("futility", () => {
  describe("removals that gave no space back", () => {
    const paused = (retryWatched: bigint) =>
      new Map([
        [
          "/var/lib/containerd",
          {
            knownSharers: 3,
            removals: 3,
            availableBytes: 14n * GIB,
            capacityBytes: 100n * GIB,
            pauses: 1,
            retryWatched: watched(retryWatched),
          },
        ],
      ]);
    const minute: bigint = minutes(1);
    const at = (retryWatched: bigint, change: Partial<Parameters<typeof planOf>[0]> = {}) =>
      planOf({
        images: three,
        snapshot: onDisk(14n),
        ...change,
        ledger: { watched: watched(10n * minute), nothingFreed: paused(retryWatched) },
      });

    test("keep every image until the pause is over, whatever triggers, and announce none to be tried", () => {
      const block = {
        kind: "nothing-freed" as const,
        filesystem: "/var/lib/containerd",
        remaining: minutes(2),
      };
      expect(at(12n * minute)).toMatchObject({ candidates: [], blocks: [block], notes: [] });
      const counted = at(12n * minute, { limits: { storeBudgetBytes: GIB } });
      expect(counted).toMatchObject({ candidates: [], blocks: [block] });
      const aged = at(12n * minute, { snapshot: onDisk(50n), limits: { maximumAge: minutes(5) } });
      expect(aged).toMatchObject({ triggers: [{ kind: "age" }], candidates: [], blocks: [block] });
    });

    test("keep no image from its maximum age while another disk that holds images gives space back", () => {
      const other = { ...disk(50n), device: "8:2", path: "/other" };
      const snapshot = { filesystems: [disk(50n), other] };
      const plan = at(12n * minute, { snapshot, limits: { maximumAge: minutes(5) } });
      expect(plan.blocks).toEqual([]);
      expect(plan.candidates).not.toEqual([]);
    });

    test("are noted while another disk costs images", () => {
      const other = { ...disk(10n, 4n), device: "8:2", path: "/other" };
      const filesystems = [disk(14n, 50n), other];
      const free = [disk(50n, 50n), other];
      const notesOn = (those: typeof filesystems) =>
        at(12n * minute, { snapshot: { filesystems: those }, limits: { whenFutile: "collect" } });
      expect(notesOn(filesystems)).toMatchObject({
        targets: [{ path: "/other" }],
        notes: [{ kind: "out-of-reach", block: { kind: "nothing-freed" } }],
      });
      expect(notesOn(free)).toMatchObject({ targets: [{ path: "/other" }], notes: [] });
      const snapshot = { filesystems: [disk(50n), { ...other, availableBytes: 3n * GIB }] };
      expect(at(12n * minute, { snapshot, limits: { storeBudgetBytes: GIB } }).notes).toMatchObject(
        [{ kind: "out-of-reach", block: { kind: "futile", filesystem: "/other" } }],
      );
      // With `collect` images are removed anyway, so nothing is futile.
      expect(notesOn([disk(3n, 4n), other]).notes).toMatchObject([
        { block: { kind: "nothing-freed" } },
      ]);
    });

    test("let one image be expected when the pause is over", () => {
      const plan = at(10n * minute);
      expect(plan.blocks).toEqual([]);
      expect(plan.notes).toEqual([{ kind: "one-tried", path: "/var/lib/containerd" }]);
      expect(plan.candidates.map(({ expected }) => expected)).toEqual([true, false, false]);
      const snapshot = { filesystems: [disk(3n, 4n)] };
      const kindsAt = (retry: bigint, whenFutile: "keep" | "collect") =>
        at(retry, { snapshot, limits: { whenFutile } }).blocks.map(({ kind }) => kind);
      expect(kindsAt(10n * minute, "keep")).toEqual(["futile"]);
      expect(kindsAt(12n * minute, "keep")).toEqual(["futile", "nothing-freed"]);
      expect(kindsAt(12n * minute, "collect")).toEqual(["nothing-freed"]);
    });

    test("pause nothing that is removed by hand, nothing without a trigger, and no reported sizes", () => {
      const byHand = at(12n * minute, { facts: { purpose: { kind: "all-unused" } } });
      expect(byHand.candidates).toHaveLength(3);
      expect(at(12n * minute, { snapshot: onDisk(50n) }).blocks).toEqual([]);
      expect(at(12n * minute, { limits: { accounting: "reported" } }).candidates).toHaveLength(3);
    });
  });

  const filled = { filesystems: [disk(3n, 4n)] };

  test("a disk filled by other data costs no image without compat kubelet, and the plan reports what fills it", () => {
    const plan = planOf({ images: three, snapshot: filled });
    expect(plan.candidates).toEqual([]);
    expect(plan.blocks).toEqual([
      {
        kind: "futile",
        filesystem: "/var/lib/containerd",
        boundBytes: 7n * GIB,
        neededBytes: 13n * GIB,
      },
    ]);
    expect(plan.kept.map(({ reason }) => reason)).toEqual(
      three.map(() => ({ kind: "blocked", block: "futile" })),
    );
    expect(plan.futility[0]).toMatchObject({ futile: true, breakdown: { otherBytes: 90n * GIB } });
    // The hold comes first, but a threshold is still exceeded.
    const held = planOf({ images: three, snapshot: filled, facts: { hold: HELD } });
    expect(held.blocks.map(({ kind }) => kind)).toEqual(["on-hold", "futile"]);
    expect(held.kept.map(({ reason }) => reason)).toEqual(
      three.map(() => ({ kind: "blocked", block: "on-hold" })),
    );
    const all = planOf({ images: three, snapshot: filled, limits: { whenFutile: "collect" } });
    expect(all).toMatchObject({
      candidates: [{}, {}, {}],
      futility: [{ futile: true }],
      notes: [],
    });
    const counted = planOf({ images: three, snapshot: filled, limits: { storeBudgetBytes: GIB } });
    expect(counted).toMatchObject({ blocks: [], targets: [{ kind: "store-bytes" }] });
    expect(counted.notes).toEqual([{ kind: "out-of-reach", block: plan.blocks[0] as never }]);
  });
});

test.each([
  ["a capacity of 0", { capacityBytes: 0n, availableBytes: 0n }, "/var/lib/containerd"],
  ["more available than there is", { availableBytes: 200n * GIB }, "/var/lib/containerd"],
  ["no role of images", { roles: ["nodefs"] }, ""],
] as const)(
  "a filesystem whose figures cannot be judged and has %s stops every image, for every purpose",
  (_, change, path) => {
    for (const kind of ["periodic", "all-unused"] as const) {
      const plan = planOf({
        images: three,
        snapshot: { filesystems: [aFilesystem(change)] },
        facts: { purpose: { kind } },
      });
      expect(plan).toMatchObject({ candidates: [], blocks: [{ kind: "invalid-capacity", path }] });
      expect(fateOf(plan, gib("a"))).toBe("blocked");
    }
  },
);

test("for the kubelet an image, however young, is too old once its last use and the agent's start are, without an image filesystem too", () => {
  const at = (
    ran: bigint,
    unused: bigint | null,
    { startedAt = instant(0n), from = 0n }: { startedAt?: Instant | null; from?: bigint } = {},
  ) => {
    const used = { lastUsedAt: instant(0n), lastUsedWatched: watched(ran - (unused ?? 0n)) };
    const seen = { firstSeenAt: NOW, firstSeenWatched: watched(ran) };
    return planOf({
      images: [gib("a")],
      records: [{ ...seen, ...(unused !== null && used) }],
      ledger: { watched: watched(ran) },
      limits: { compat: "kubelet", maximumAge: hours(1) },
      snapshot: { filesystems: [] },
      facts: { startedAt, ...(from > 0n && { agesFrom: { watched: watched(from), at: NOW } }) },
    }).candidates.map(({ tried }) => tried.at(-1));
  };
  expect([at(hours(1), null), at(hours(1) + 1n, null)]).toEqual([[], ["ghost"]]);
  expect([at(hours(2), hours(1)), at(hours(2), hours(1) + 1n)]).toEqual([[], ["ghost"]]);
  expect(at(hours(2), null, { startedAt: null })).toEqual([]);
  const since = { from: hours(9) };
  expect([at(hours(10), null, since), at(hours(10) + 1n, null, since)]).toEqual([[], ["ghost"]]);
});

test("containers removed first do not make their images count as just used for the kubelet", () => {
  const container = aContainer("c", { imageId: idOf("a"), state: "exited" });
  const plan = planOf({
    images: three,
    snapshot: { ...onDisk(15n), containers: [container] },
    records: [{ lastUsedAt: NOW, lastUsedWatched: WATCHED }],
    limits: { compat: "kubelet" },
    without: new Set([container.id]),
  });
  expect(words(plan.candidates)).toEqual(["b", "c", "a"]);
});

test("all unused images go in their order, with what each frees by its layers", () => {
  const [base, child] = [chainId("base"), chainId("base/child")];
  const ledger = {
    origins: new Map([
      [idOf("a"), { chain: base, builtAt: null }],
      [idOf("b"), { chain: child, builtAt: null }],
    ]),
    layers: new Map([[child, { below: null, chain: [base, child] }]]),
  };
  const all = { images: [gib("a"), gib("b")], ledger, snapshot: onDisk(10n) };
  const unused = (limits: Partial<ImageLimits>) =>
    planOf({ ...all, limits, facts: { purpose: { kind: "all-unused" } } });
  // Whatever their age.
  const { candidates, triggers } = unused({ maximumAge: hours(1) });
  expect(words(candidates)).toEqual(["a", "b"]);
  expect(triggers).toEqual([{ kind: "all-unused" }]);
  for (const one of candidates) expect(one.triggers).toEqual(triggers);
  const summed = unused({ accounting: "reported" });
  expect(summed.candidates.map(({ frees }) => frees)).toEqual([undefined, undefined]);
  expect(
    candidates.map(({ unscaled, sharersKnown }) => [unscaled?.estimateBytes, sharersKnown]),
  ).toEqual([
    [0n, true],
    [GIB, true],
  ]);
});

describe("the estimated stop", () => {
  const five = ["a", "b", "c", "d", "e"].map((name) =>
    aCandidate(name, { image: anImage(name, { sizeBytes: 100n * MIB }) }),
  );
  const unlimited = { compat: "none", maxRemovals: null } as const;
  const reached = (...input: Parameters<typeof estimate>): number =>
    estimate(...input).filter(({ expected }) => expected).length;

  test.each([
    [1n, 5],
    [0n, 0],
  ])(
    "counts no inodes, so that of five images with %p wanted %p are expected",
    (wantedInodes, images) => {
      expect(reached(five, [inodeTarget(1n, wantedInodes)], unlimited)).toBe(images);
    },
  );

  test.each([
    [0n, 2, 3],
    [250n, 3, 5],
  ])(
    "with %p MiB wanted is behind all that go for their age, which the kubelet counts towards nothing",
    (wanted, ours, kubelets) => {
      const triggers = [{ kind: "age" }, { kind: "space" }] as const;
      const aged = five.map((one, at) => (at < 2 ? { ...one, triggers } : one));
      const targets = [spaceTarget(1_000n * MIB, wanted * MIB)];
      expect(reached(aged, targets, unlimited)).toBe(ours);
      expect(reached(aged, targets, { ...unlimited, compat: "kubelet" })).toBe(kubelets);
    },
  );
});
