// The kubelet's rules, where its recorded decisions in test/conformance do not tell them apart.

import { describe, expect, test } from "bun:test";

import { podUid, sandboxId } from "../../../src/model/ids.ts";
import type { ContainerPlan } from "../../../src/model/plan.ts";
import type { Container, Filesystem } from "../../../src/model/snapshot.ts";
import { duration, hours, minutes, totalUptime } from "../../../src/model/time.ts";
import type { ContainerInput } from "../../../src/policy/container/container-rules.ts";
import { decideContainers } from "../../../src/policy/kubelet/container-gc.ts";
import { judgePressure } from "../../../src/policy/kubelet/eviction-manager.ts";
import { stopRule } from "../../../src/policy/kubelet/image-manager.ts";
import { kubeletPolicy } from "../../../src/policy/kubelet/kubelet.ts";
import { noPressure } from "../../../src/policy/pressure/thresholds.ts";
import {
  ago,
  danglingLink,
  dead,
  goingContainers,
  goingLogs,
  goingSandboxes,
  inputOf as containerInput,
  judged,
  logsOf,
  type Node as ContainerNode,
  noLogs,
  reasonOf,
  sandboxOf,
} from "../../support/build/pods.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aSnapshot,
  containerLimits,
  GIB,
  idOf,
  ledgerLimits,
  NOW,
  spaceTarget,
} from "../../support/build/values.ts";
import {
  fateOf,
  inputOf,
  type KubeletNode,
  kubeletOn,
  kubeletPlanOf,
  WATCHED,
  words,
} from "../judging.ts";

const full = { filesystems: [aFilesystem({ availableBytes: 10n * GIB })] };
const empty = { filesystems: [aFilesystem({ availableBytes: 60n * GIB })] };
const noDisk = { filesystems: [aFilesystem({ capacityBytes: 0n })] };
const app = anImage("app");
/** Seen and used so long before. */
const seen = (first: bigint, used: bigint | null = null) => ({
  firstSeenUptime: totalUptime(WATCHED - first),
  lastUsedUptime: used === null ? null : totalUptime(WATCHED - used),
});
const pinned = { ...app, pinned: true };
const held = { hold: { kind: "held", until: null, since: null, reason: "" } } as const;

describe("an image", () => {
  const old = { beganAt: duration(0n), limits: { maximumAge: hours(1) } };
  test.each<[string, string, KubeletNode]>([
    ["is kept while the disk is idle", "no-trigger", { snapshot: empty }],
    ["is removed for space", "goes", {}],
    ["as old as the minimum age is removed", "goes", { records: [seen(minutes(2))] }],
    ["younger than the minimum age is kept", "too-young", { records: [seen(minutes(2) - 1n)] }],
    ["without a record is new", "too-young", { ledger: { images: new Map() } }],
    ["used in this pass is kept", "just-used", { records: [seen(hours(9), 0n)] }],
    ["used just before this pass is removed", "goes", { records: [seen(hours(9), 1n)] }],
    ["pinned only in its first entry is removed", "goes", { images: [pinned, app] }],
    ["pinned in its last entry is kept", "pinned", { images: [app, pinned] }],
    ["is removed for its age on an idle disk", "goes", { ...old, snapshot: empty }],
    ["is removed for its age without a disk", "goes", { ...old, snapshot: { filesystems: [] } }],
    ["is removed for its age on a disk without capacity", "goes", { ...old, snapshot: noDisk }],
    ["is kept from a space pass on a disk without capacity", "blocked", { snapshot: noDisk }],
    ["over the maximum age is kept during a hold", "blocked", { ...old, facts: held }],
    [
      "is removed for its age even below the minimum age",
      "goes",
      { ...old, snapshot: empty, records: [seen(0n)] },
    ],
    [
      "unused for exactly the maximum age is kept",
      "no-trigger",
      { ...old, snapshot: empty, records: [seen(hours(9), hours(1))] },
    ],
    [
      "unused for longer than the maximum age is removed",
      "goes",
      { ...old, snapshot: empty, records: [seen(hours(9), hours(1) + 1n)] },
    ],
    [
      "is not removed for its age before the agent has run for the maximum age",
      "no-trigger",
      { ...old, snapshot: empty, beganAt: hours(47) },
    ],
    [
      "is removed for its age once the agent has run that long",
      "goes",
      { ...old, snapshot: empty, beganAt: duration(hours(47) - 1n) },
    ],
    [
      "is never removed for its age in a single pass",
      "no-trigger",
      { ...old, snapshot: empty, beganAt: null },
    ],
    [
      "is removed by hand at any disk usage",
      "goes",
      { snapshot: empty, facts: { purpose: { kind: "all-unused" } } },
    ],
    [
      "is removed under pressure at any disk usage",
      "goes",
      { snapshot: empty, facts: { purpose: { kind: "pressure", signals: ["imagefs.available"] } } },
    ],
    [
      "is removed if --free asks for more than is available",
      "goes",
      { snapshot: empty, facts: { purpose: { kind: "periodic", freeBytes: 61n * GIB } } },
    ],
    [
      "is kept if what --free asks for is available",
      "no-trigger",
      { snapshot: empty, facts: { purpose: { kind: "periodic", freeBytes: 60n * GIB } } },
    ],
  ])("%s", (_, fate, node) => {
    expect(fateOf(kubeletPlanOf({ images: [app], snapshot: full, ...node }), app)).toBe(fate);
  });

  test("that was never used goes first, then the one used longest ago, then the one seen first", () => {
    const images = ["recent", "earlier", "late", "never"].map((word) => anImage(word));
    const records = [
      seen(hours(9), hours(1)),
      seen(hours(9), hours(2)),
      seen(hours(3)),
      seen(hours(4)),
    ];
    const plan = kubeletPlanOf({ images, records, snapshot: full });
    expect(words(plan.candidates)).toEqual(["never", "late", "earlier", "recent"]);
  });

  test("of a container that the plan removes first does not count as just used", () => {
    const container = aContainer("c", { imageId: idOf("app"), state: "exited" });
    const node = {
      images: [app],
      records: [seen(hours(9), 0n)],
      snapshot: { ...full, containers: [container] },
    };
    expect(fateOf(kubeletPlanOf(node), app)).toBe("in-use");
    const plan = kubeletPlanOf({ ...node, without: new Set([container.id]) });
    expect(fateOf(plan, app)).toBe("goes");
    // It has gone, unless the image was used once more since.
    const recheck = (used: bigint) => {
      const now = inputOf({ ...node, records: [seen(hours(9), used)], snapshot: full });
      return kubeletOn(now).recheck(now)(plan.candidates[0]!, new Set())?.kind;
    };
    expect([recheck(0n), recheck(-1n)]).toEqual([undefined, "just-used"]);
  });

  test("is checked again before its removal, and changed names do not keep it", () => {
    const node = { images: [app], snapshot: full };
    const [candidate] = kubeletPlanOf(node).candidates;
    const now = inputOf({ ...node, images: [{ ...app, repoTags: [] }] });
    const recheck = (facts = now) => kubeletOn(now).recheck(facts)(candidate!, new Set());
    expect(recheck()).toBeNull();
    const container = aContainer("c", { imageId: app.id });
    const { snapshot } = now;
    expect(recheck({ ...now, snapshot: { ...snapshot, containers: [container] } })?.kind).toBe(
      "in-use",
    );
    expect(recheck({ ...now, snapshot: { ...snapshot, images: [] } })?.kind).toBe("changed");
    expect(recheck({ ...now, ...held })?.kind).toBe("blocked");
  });
});

test("only the first image filesystem counts, and more available than its capacity counts as all of it", () => {
  const second = aFilesystem({ device: "8:2", path: "/b", availableBytes: GIB });
  const on = (...filesystems: Filesystem[]) =>
    kubeletPlanOf({ images: [app], snapshot: { filesystems } });
  expect(on(...empty.filesystems, second).targets).toEqual([]);
  expect(on(second).targets).toMatchObject([{ path: "/b", wantedBytes: 19n * GIB }]);
  const beyond = on(aFilesystem({ availableBytes: 101n * GIB }));
  expect(beyond).toMatchObject({ targets: [], usage: [{ usedPercent: 0 }] });
});

test("a high threshold of 100 watches space only in an agent, which began when it had something to do", () => {
  const off = { images: [app], limits: { highPercent: 100, lowPercent: 80 } };
  const full100 = { filesystems: [aFilesystem({ availableBytes: 0n })] };
  const alone = kubeletPlanOf({ ...off, snapshot: full100 });
  expect(alone).toMatchObject({ triggers: [], notes: [{ kind: "space-off" }] });
  const agent = kubeletPlanOf({ ...off, snapshot: full100, beganAt: hours(1) });
  expect(agent.triggers).toEqual([{ kind: "space" }]);
  const aged = kubeletPlanOf({ images: [app], limits: { maximumAge: hours(1) } });
  expect(aged.notes).toEqual([{ kind: "maximum-age-needs-agent" }]);
});

test("a pass ends once the sizes that it removed add up to what the disk lacked after the age pass", () => {
  const target = spaceTarget(20n * GIB, 10n * GIB);
  const rule = stopRule({ targets: [target] });
  const reading = aFilesystem({ availableBytes: 15n * GIB });
  const verdict = (sizes: bigint[], isEnd = false) =>
    rule.verdict({
      readings: new Map([[target.device, reading]]),
      storeBytes: 0n,
      estimatedBytes: 0n,
      sizes,
      isEnd,
    });
  expect([verdict([]), verdict([4n * GIB]), verdict([4n * GIB, GIB])]).toEqual([
    "go-on",
    "go-on",
    "reached",
  ]);
});

describe("the memory of a process", () => {
  const remembering = (policy = kubeletPolicy(null)) => ({
    policy,
    look: (
      uptime: bigint,
      images = [app],
      parts = { containers: "none", images: true } as const,
    ) => {
      const clocks = { wall: NOW, uptime: duration(uptime), bootId: "boot-1" };
      const snapshot = aSnapshot({ ...full, images, clocks });
      policy.remember({ ledger: aLedger(), snapshot, limits: ledgerLimits, parts });
      const facts = inputOf({ images, snapshot: { ...full, clocks } });
      return fateOf(
        policy.decide({ ...facts, parts: { containers: "none", images: true } }).images!,
        app,
      );
    },
  });

  test("begins with its first look, whatever the ledger says", () => {
    const { look } = remembering();
    expect([look(hours(5)), look(hours(5) + minutes(2))]).toEqual(["too-young", "goes"]);
  });

  test("forgets what is removed, and what is no longer listed", () => {
    const { look, policy } = remembering();
    look(hours(5));
    policy.imageRemoved(app.id);
    expect(look(hours(6))).toBe("too-young");
    look(hours(7), []);
    expect(look(hours(8))).toBe("too-young");
  });
});

const limits = (perContainer: number, total = -1) => ({
  ...containerLimits,
  maximumPerPodContainer: perContainer,
  maximumContainers: total,
});

describe("container GC", () => {
  const planOf = (node: ContainerNode, change: Partial<ContainerInput> = {}): ContainerPlan =>
    decideContainers(containerInput(node, { limits: limits(1), ...change }));
  const instance = (seconds: number, pod = "a"): Container =>
    dead(pod, "c", { createdAt: ago(seconds) });
  const [at10, at20, at30] = [instance(10), instance(20), instance(30)];
  const gone = judged({ gone: ["uid-a"] });

  test("takes an equal share of the total limit, which may be more than required, and all for 0", () => {
    const containers = [at10, at20, at30, ...[15, 25, 35].map((at) => instance(at, "b"))];
    const going = (total: number) =>
      goingContainers(planOf({ containers }, { limits: limits(-1, total) }));
    expect(going(5)).toEqual([instance(35, "b").id, at30.id]);
    expect(going(0)).toHaveLength(6);
  });

  test.each([
    ["counts from the creation", instance(3600), hours(1), "pod-gone"],
    ["keeps a younger one", instance(3599), hours(1), "too-young"],
    ["keeps one from the future, before the clock was set back", instance(-1), 0n, "too-young"],
  ] as const)("its minimum age %s", (_, container, minimumAge, reason) => {
    const change = { limits: { ...limits(0), minimumAge: duration(minimumAge) }, pods: gone };
    expect(reasonOf(planOf({ containers: [container] }, change), container.id)).toBe(reason);
  });

  test("counts a container that never started as dead, and removes even the newest of a name", () => {
    const created = dead("a", "c", { state: "created", createdAt: ago(1) });
    const going = (perContainer: number) =>
      goingContainers(planOf({ containers: [created, at10] }, { limits: limits(perContainer) }));
    expect([going(1), going(0)]).toEqual([[at10.id], [at10.id, created.id]]);
  });

  test("while the pod source is not ready goes on by the limits and with links, and deletes no log", () => {
    const node = {
      containers: [at10, at20, at30],
      logs: { ...logsOf("a"), danglingLinks: [danglingLink({ podUid: podUid("uid-x") })] },
    };
    const pods = judged({ gone: ["uid-a"], notReady: "it is another node's" });
    const plan = planOf(node, { pods });
    expect(goingContainers(plan)).toEqual([at30.id, at20.id]);
    expect([goingLogs(plan), plan.links.length]).toEqual([[], 1]);
  });

  test("knows nothing foreign: without labels a container is of the pod without a UID", () => {
    const bare = sandboxOf("f", {
      podUid: podUid(""),
      metadataUid: podUid("uid-f"),
      state: "not-ready",
    });
    const inBare = dead("f", "c", { podUid: podUid(""), sandboxId: bare.id });
    const pods = judged({ gone: ["", "uid-f"] });
    const plan = planOf({ containers: [inBare], sandboxes: [bare] }, { pods });
    expect(reasonOf(plan, inBare.id)).toBe("pod-gone");
    expect(goingSandboxes(plan)).toEqual([bare.id]);
  });

  test("keeps a sandbox of a live pod with a container, unless the pass removes that", () => {
    const [old, newer] = ["old", "newer"].map((name, at) => ({
      ...sandboxOf("a", { state: "not-ready" as const, createdAt: ago(20 - at) }),
      id: sandboxId(name),
    }));
    const inOld = dead("a", "c", { sandboxId: old!.id });
    const going = (perContainer: number) =>
      goingSandboxes(
        planOf(
          { sandboxes: [newer!, old!], containers: [inOld] },
          { limits: limits(perContainer) },
        ),
      );
    expect([going(1), going(0)]).toEqual([[], ["old"]]);
  });

  test("takes a bare name in the log directory for a UID if it can be one", () => {
    const strays = ["12345678", "lost+found"];
    const plan = planOf({ logs: { ...noLogs, strays } }, { pods: judged({ gone: strays }) });
    expect(goingLogs(plan)).toEqual(["12345678"]);
    expect(plan.strays).toEqual(["lost+found"]);
    expect(planOf({ logs: null }).podLogs).toEqual([]);
  });
});

test("the eviction manager knows one filesystem of each role, deletes no logs and has no target", () => {
  const roles = ["imagefs", "containerfs"] as const;
  const judge = (first: bigint, second: bigint, node = 60n * GIB) =>
    judgePressure({
      limits: {
        thresholds: (["imagefs.available", "nodefs.available"] as const).map((signal) => ({
          signal,
          amount: { kind: "quantity", value: 10n * GIB },
          grace: duration(0n),
          minimumReclaim: null,
        })),
        transitionPeriod: duration(0n),
      },
      filesystems: [
        aFilesystem({ roles, path: "/images", device: "8:2", availableBytes: first }),
        aFilesystem({ roles: ["nodefs"], path: "/node", device: "8:1", availableBytes: node }),
        aFilesystem({ roles, path: "/second", device: "8:3", availableBytes: second }),
      ],
      state: noPressure,
      uptime: duration(0n),
    });
  expect(judge(60n * GIB, 0n).due).toEqual([]);
  const ofImages = judge(0n, 0n);
  expect(new Set(ofImages.due.map(({ filesystem }) => filesystem.path))).toEqual(
    new Set(["/images"]),
  );
  expect(ofImages).toMatchObject({
    targets: [],
    reclaim: { containers: true, images: true, logs: false },
  });
  const ofNode = judge(60n * GIB, 60n * GIB, 0n);
  expect(ofNode.reclaim).toEqual({ containers: false, images: false, logs: false });
});
