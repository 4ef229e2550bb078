// One pass from the lock to the record: what it waits for, what stops it, and that it does nothing beyond its plan.

import { describe, expect, test } from "bun:test";

import { exit, passExit } from "../../src/cli/exit.ts";
import type { PassEnd, PassRequest } from "../../src/gc/pass.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import { podUid, sandboxId } from "../../src/model/ids.ts";
import type { ImageRecord } from "../../src/model/ledger.ts";
import type { Limits } from "../../src/model/limits.ts";
import type { Container } from "../../src/model/snapshot.ts";
import { duration, instant, minutes, seconds, totalUptime } from "../../src/model/time.ts";
import { kubeletPolicy } from "../../src/policy/kubelet/kubelet.ts";
import { aPodRecord, noLogs, reading } from "../support/build/pods.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aSandbox,
  defaultLimits,
  GIB,
  idOf,
  listedBefore,
  NOW,
  spaceTarget,
  withLimits,
} from "../support/build/values.ts";
import { aNodeOf, type FakeEngine, type FakeWorld, runFakePass } from "../support/fake-engine.ts";

const WORDS = ["a", "b", "c", "d"] as const;

const aNode = (change: Partial<FakeWorld> = {}): FakeEngine => aNodeOf(WORDS, change);

const run = (
  fake: FakeEngine,
  change: Partial<PassRequest> = {},
  signal?: AbortSignal,
): Promise<PassEnd> => runFakePass(fake, { containers: "none", ...change }, signal);

const removed = (...words: readonly string[]): readonly string[] =>
  words.map((word) => `RemoveImage ${idOf(word)}`);

const never = new AbortController().signal;

/** The same, which also notes the result of each removal in the journal. */
function telling({ engine, ...fake }: FakeEngine, told: string[]): FakeEngine {
  const journal = engine.journal.with({ done: (_, { result }) => void told.push(result.kind) });
  return { ...fake, engine: { ...engine, journal } };
}

const ALL = { purpose: { kind: "all-unused" } } as const;

describe("a pass", () => {
  test("frees down to the low threshold, and says so in its record", async () => {
    const fake = aNode();
    const told: string[] = [];
    const { pass } = await run(telling(fake, told));
    expect(told).toEqual(Array(3).fill("removed"));
    // 10 GiB are free and 20 wanted: three images of 4 GiB.
    expect(fake.writes).toHaveLength(3);
    expect(pass).toMatchObject({ error: null, images: { end: "target-reached" } });
    expect(fake.passes).toEqual([pass]);
  });

  test("as a dry run removes nothing, records nothing and raises no event", async () => {
    const fake = aNode();
    const before = fake.world.ledger;
    const { pass } = await run(fake, { dryRun: true });
    expect(pass.plan.images?.candidates).toHaveLength(4);
    // 10 GiB are free and 20 wanted.
    expect(pass.images).toMatchObject({ end: "dry-run", wantedBytes: 10n * GIB });
    expect(fake.writes).toEqual([]);
    expect(fake.world.ledger).toBe(before);
    expect(fake.events).toEqual([]);
  });

  test("as a dry run plans to delete the log directory of a deleted pod with what is listed of it", async () => {
    const [gone, a] = ["default_gone_uid-gone", "default_a_uid-a"];
    const absent = aPodRecord({ absentSinceUptime: totalUptime(0n) });
    const its = { sandboxId: aSandbox("gone").id, podUid: podUid("uid-gone") };
    const used = anImage("used");
    const containers = [
      aContainer("dead", { imageId: used.id, state: "exited", ...its }),
      aContainer("web", { imageId: used.id, sandboxId: aSandbox("a").id, podUid: podUid("uid-a") }),
    ];
    const fake = aNode({
      containers,
      sandboxes: [aSandbox("gone", { state: "not-ready" }), aSandbox("a")],
      logs: {
        ...noLogs,
        podLogs: [
          { entry: gone, uid: podUid("uid-gone") },
          { entry: a, uid: podUid("uid-a") },
        ],
      },
      pods: reading("kubelet-dir", "uid-a"),
      ledger: aLedger({ pods: new Map([[podUid("uid-gone"), absent]]) }),
    });
    const { pass } = await run(fake, { containers: "all", dryRun: true });
    expect(pass.plan.containers?.podLogs.map(({ decision }) => decision.reason.kind)).toEqual([
      "pod-gone",
      "pod-known",
    ]);
  });

  const back = aSandbox("back", { podUid: podUid("uid-gone"), metadataUid: podUid("uid-gone") });
  const failed = { kind: "failed", source: "kubelet-dir", message: "it vanished" } as const;
  test.each<[string, Pick<Partial<FakeWorld>, "sandboxes" | "pods">, readonly string[]]>([
    ["a sandbox of the pod came", { sandboxes: [back] }, []],
    ["the kubelet has the pod again", { pods: reading("kubelet-dir", "uid-a", "uid-gone") }, []],
    ["the pod source failed", { pods: failed }, [expect.stringContaining("it vanished")]],
  ])("keeps a log directory if, while a container was removed, %s", async (_, later, errors) => {
    const uid = podUid("uid-gone");
    const dead = aContainer("dead", {
      sandboxId: aSandbox("gone").id,
      podUid: uid,
      state: "exited",
    });
    const fake = aNode({
      containers: [dead],
      logs: { ...noLogs, podLogs: [{ entry: "default_gone_uid-gone", uid }] },
      pods: reading("kubelet-dir", "uid-a"),
      ledger: aLedger({
        pods: new Map([[uid, aPodRecord({ absentSinceUptime: totalUptime(0n) })]]),
      }),
    });
    fake.world.before = (method) => {
      if (method !== "RemoveContainer") return;
      const sandboxes = [...fake.world.sandboxes, ...(later.sandboxes ?? [])];
      Object.assign(fake.world, later, { sandboxes });
    };
    const { pass } = await run(fake, { containers: "all", images: false });
    expect(fake.writes).toEqual([
      `RemoveContainer ${dead.id}`,
      expect.stringMatching(/^RemoveLogs /),
    ]);
    expect(pass.containers?.errors).toEqual([...errors]);
  });

  test("as a dry run has no outcome for a half that was not requested", async () => {
    const { pass } = await run(aNode(), { containers: "all", images: false, dryRun: true });
    expect(pass).toMatchObject({ containers: { end: "dry-run" }, images: null });
    expect((await run(aNode(), { dryRun: true })).pass.containers).toBeNull();
  });

  test("that is stopped while it observes the node is stopped in each requested half, not failed", async () => {
    const fake = aNode({ fails: new Set(["ListImages"]) });
    const stopped = async (change: Partial<PassRequest>) =>
      (await run(fake, change, AbortSignal.abort())).pass;
    const both = await stopped({ containers: "all" });
    expect(both).toMatchObject({
      error: null,
      containers: { end: "stopped", errors: [] },
      images: { end: "stopped" },
    });
    expect((await stopped({})).containers).toBeNull();
    expect((await stopped({ containers: "all", images: false })).images).toBeNull();
    expect(fake.writes).toEqual([]);
  });

  describe("at a pod's old sandbox", () => {
    const living = aSandbox("pod");
    const old = aSandbox("pod", {
      id: sandboxId("old"),
      state: "not-ready",
      createdAt: instant(living.createdAt - 1n),
    });
    const sandboxes = [living, old];
    test.each<readonly [string, Partial<FakeWorld>]>([
      ["removes it", {}],
      [
        "keeps it for a while if the node was booted",
        { uptime: minutes(1), ledger: aLedger({ bootId: "boot-0" }) },
      ],
      [
        "keeps it for a while if the node lost all its containers",
        { containers: [], ledger: aLedger({ containers: listedBefore }) },
      ],
    ])("%s", async (claim, change) => {
      const fake = aNode({ sandboxes, ...change });
      const { pass } = await run(fake, { containers: "all", images: false });
      const isKept = claim !== "removes it";
      expect(pass.containers?.end).toBe(isKept ? "blocked" : "done");
      expect(fake.writes.includes(`RemovePodSandbox ${old.id}`)).toBe(!isKept);
    });
  });

  test("with invalid keep rules removes no image, and names the file and the line", async () => {
    const problems = [{ source: "/etc/crigc/keep.d/base.list:3", message: "it is no pattern" }];
    const fake = aNode({ keep: { rules: [], problems } });
    await run(fake, ALL);
    expect(fake.writes).toEqual([]);
    expect(fake.events).toMatchObject([
      { reason: "KeepRulesInvalid", message: expect.stringContaining("base.list:3") },
    ]);
  });

  test("reports an image that is still listed after its second removal, once, whatever comes of a later one, and tries it last", async () => {
    const fake = aNode({ ghosts: new Set([idOf("a")]) });
    await run(fake, ALL);
    expect(fake.events).toEqual([]);
    await run(fake, ALL);
    const { before } = fake.world;
    fake.world.before = async (method) => {
      if (method === "RemoveImage") throw new RuntimeError("failed", "device is busy");
    };
    await run(fake, ALL);
    fake.world.before = before;
    await run(fake, ALL);
    expect(fake.events.map(({ reason }) => reason)).toEqual(["GhostImage"]);
    expect(fake.writes.at(-1)).toBe(removed("a")[0]);
  });
});

describe("the record of an image during its removal", () => {
  /** Runs a pass of all unused images, and something at the call for the image. */
  async function removing(fake: FakeEngine, word: string, meanwhile: (own: ImageRecord) => void) {
    const own = fake.world.ledger.images.get(idOf(word));
    if (own === undefined) throw new Error("the node remembers no such image");
    const { before } = fake.world;
    fake.world.before = async (method, id) => {
      await before(method, id);
      if (method === "RemoveImage" && id === idOf(word)) meanwhile(own);
    };
    return (await run(fake, ALL)).pass;
  }
  const recordOf = (fake: FakeEngine, word: string) => fake.world.ledger.images.get(idOf(word));
  const replace = ({ engine: { memory } }: FakeEngine, word: string, record: ImageRecord): void => {
    const images = new Map(memory.current().images).set(idOf(word), record);
    memory.replace({ ...memory.current(), images });
  };

  test("is dropped, so that a killed process leaves no old record for an image that comes back, even if the node is observed meanwhile", async () => {
    const fake = aNode();
    const seen: unknown[] = [];
    fake.world.before = (method) => {
      if (method === "RemoveImage") seen.push(recordOf(fake, "a"));
    };
    await removing(fake, "a", (own) => replace(fake, "a", own));
    expect(seen).toEqual(WORDS.map(() => undefined));
    expect(recordOf(fake, "a")).toBeUndefined();
  });

  test.each([
    ["comes back after a removal that failed", "fails", true],
    ["does not after one without an answer, which may still take effect", "silent", false],
  ] as const)("%s", async (_, how, isKept) => {
    const fake = aNode({ [how]: new Set([`RemoveImage ${idOf("a")}`]) });
    const seenAt = recordOf(fake, "a")?.firstSeenUptime;
    await run(fake, ALL);
    expect(recordOf(fake, "a")?.firstSeenUptime).toBe(isKept ? seenAt : undefined);
  });
});

test("a container that runs by its own status makes its pod live, so the rest of the pod is kept", async () => {
  const { id: pod, podUid: uid } = aSandbox("deleted");
  const [web, init] = [0, 1].map((at) =>
    aContainer(`c${at}`, { name: `c${at}`, state: "exited", podUid: uid, sandboxId: pod }),
  ) as [Container, Container];
  const live = aContainer("live", { podUid: podUid("uid-live") });
  const fake = aNode({
    containers: [web, init, live],
    sandboxes: [aSandbox("deleted", { state: "not-ready" })],
    pods: reading("kubelet-dir", "uid-live"),
    ledger: aLedger({
      totalUptime: totalUptime(minutes(10)),
      pods: new Map([[uid, aPodRecord({ absentSinceUptime: totalUptime(0n) })]]),
    }),
  });
  fake.world.before = (method, about) => {
    if (method === "ContainerStatus" && about === web.id)
      fake.world.containers = [{ ...web, state: "running" }, init, live];
  };
  const { pass } = await run(fake, { containers: "all" });
  expect(fake.writes).toEqual([]);
  expect(pass.containers?.containers[0]?.result).toMatchObject({ what: "it is running now" });
});

describe("containers first, then images", () => {
  const dead = (image: string): Container =>
    aContainer(`dead-${image}`, {
      name: "web",
      state: "exited",
      imageId: idOf(image),
      createdAt: instant(NOW - minutes(50)),
    });
  const running = aContainer("web", { name: "web", imageId: idOf("used") });
  const limits: Limits = {
    ...withLimits({ minimumAge: seconds(0) }),
    containers: { ...defaultLimits.containers, maximumPerPodContainer: 0 },
  };
  const both = { containers: "all", ...ALL } as const;

  test("an image that came after the plan is kept, although nothing protects it", async () => {
    const fake = aNode({ containers: [running, dead("a")], limits });
    fake.world.before = (method) => {
      if (method === "RemoveContainer") fake.world.images = [...fake.world.images, anImage("new")];
    };
    const { pass } = await run(fake, both);
    expect(fake.writes).not.toContain(removed("new")[0] ?? "");
    expect(fake.writes).toContain(removed("a")[0] ?? "");
    const planned = (pass.plan.images?.candidates ?? []).map(({ image }) => image.id);
    expect(planned).not.toContain(idOf("new"));
  });

  test.each([true, false])(
    "no grace period begins if the pass removed all containers of the node; with images: %p",
    async (images) => {
      // Dead for longer than a day, as watched.
      const record = aPodRecord({ deadSinceUptime: totalUptime(0n) });
      const fake = aNode({
        containers: [dead("a")],
        sandboxes: [aSandbox("a", { state: "not-ready" })],
        pods: { kind: "ready", source: "cri", pods: [] },
        limits,
      });
      fake.world.ledger = {
        ...fake.world.ledger,
        pods: new Map([[running.podUid, record]]),
      };
      fake.engine.memory.replace(fake.world.ledger);
      const { pass } = await run(fake, { ...both, images });
      expect(fake.writes).toContain("RemoveContainer container-dead-a");
      expect(fake.world.ledger).toMatchObject({ graceUntil: null, containers: new Map() });
      expect(pass.images?.end).toBe(images ? "candidates-exhausted" : undefined);
    },
  );
});

const dead = (attempt: number): Container =>
  aContainer(`dead-${attempt}`, { name: "job", state: "exited", attempt, imageId: idOf("used") });

describe("the containers of a pass", () => {
  const four = [1, 2, 3, 4].map((attempt) => dead(attempt));
  const onlyContainers = { containers: "all", images: false } as const;

  test("are kept from the moment a hold begins", async () => {
    const fake = aNode({ containers: four });
    fake.world.before = (method) => {
      if (method === "RemoveContainer")
        fake.world.hold = { kind: "held", until: null, since: null, reason: "an upgrade" };
    };
    const { pass } = await run(fake, onlyContainers);
    expect(pass.containers?.end).toBe("blocked");
    expect(fake.writes).toEqual(["RemoveContainer container-dead-1"]);
  });

  test("are dropped from the ledger once removed, and each one is journaled, failed or not", async () => {
    const living = aSandbox("pod");
    const olds = ["old", "older"].map((id, at) => ({
      ...living,
      id: sandboxId(id),
      state: "not-ready" as const,
      createdAt: instant(living.createdAt - BigInt(at + 1)),
    }));
    const fake = aNode({ containers: four, sandboxes: [living, ...olds] });
    fake.world.before = (method, about) => {
      if (["container-dead-2", "older"].includes(about) && method.startsWith("Remove"))
        throw new RuntimeError("failed", "device is busy");
    };
    const told: string[] = [];
    await run(telling(fake, told), onlyContainers);
    const { containers, sandboxes } = fake.world.ledger;
    expect([...containers.keys()].map(String)).toEqual(["container-dead-2", "container-dead-4"]);
    expect(sandboxes.map(String)).toEqual(["older", living.id].map(String));
    expect(told.toSorted()).toEqual(["failed", "failed", "removed", "removed", "removed"]);
  });
});

describe("events of passes", () => {
  const full = aFilesystem({ availableBytes: 3n * GIB, imageUsedBytes: 2n * GIB });

  test("with --all-unused images are removed even so", async () => {
    const fake = aNode({ filesystem: full, images: [anImage("a"), anImage("used")] });
    await run(fake, ALL);
    expect(fake.writes).toEqual([...removed("a")]);
    expect(fake.events).toEqual([]);
  });

  test("a shortfall is reported with what fills the disk", async () => {
    const fake = aNode({ filesystem: aFilesystem({ availableBytes: GIB }) });
    const { pass } = await run(fake);
    expect(pass.images?.end).toBe("candidates-exhausted");
    expect(fake.events).toMatchObject([
      { reason: "FreeDiskSpaceFailed", message: expect.stringContaining("other data") },
    ]);
  });

  test("a capacity of 0 is reported, and nothing is removed", async () => {
    const fake = aNode({ filesystem: aFilesystem({ capacityBytes: 0n, availableBytes: 0n }) });
    await run(fake);
    await run(fake);
    expect(fake.writes).toEqual([]);
    expect(fake.events.map(({ reason }) => reason)).toEqual(["InvalidDiskCapacity"]);
  });

  test("a condition is an event once, also across a hold, ends when the disk is relieved, and may begin again", async () => {
    const fake = aNode({ filesystem: full, images: [anImage("a"), anImage("used")] });
    const problems = [{ source: "a.list:1", message: "it is no pattern" }];
    const changes: readonly Partial<FakeWorld>[] = [
      {},
      { hold: { kind: "held", until: null, since: null, reason: "" } },
      { hold: { kind: "none" } },
      { keep: { rules: [], problems } },
      { keep: { rules: [], problems: [] } },
      { filesystem: aFilesystem({ availableBytes: 60n * GIB }) },
      { filesystem: full },
    ];
    for (const change of changes) {
      Object.assign(fake.world, change);
      await run(fake);
      fake.elapse(60_000);
    }
    const [futile, invalid] = ["ImageGCFutile", "KeepRulesInvalid"] as const;
    expect(fake.events.map(({ reason }) => reason)).toEqual([futile, invalid, futile]);
    expect(fake.said.filter((line) => line.includes(" is over"))).toEqual([
      "KeepRulesInvalid is over after 1m",
      "ImageGCFutile is over after 5m",
    ]);
  });

  test("futility is an event again after a pass that was not futile, the shortage that lasts is not", async () => {
    const fake = aNode();
    const { images, ledger } = fake.world;
    const short = aFilesystem({ availableBytes: GIB });
    for (const filesystem of [full, short, full, short, full]) {
      Object.assign(fake.world, { images, filesystem });
      fake.engine.memory.replace(ledger);
      await run(fake);
    }
    const [futile, failed] = ["ImageGCFutile", "FreeDiskSpaceFailed"] as const;
    expect(fake.events.map(({ reason }) => reason)).toEqual([futile, failed, futile, futile]);
  });

  test("too large a store and too little space are events of their own, each once", async () => {
    const fake = aNode({ limits: withLimits({ storeBudgetBytes: 1n }) });
    const { images, ledger } = fake.world;
    for (const availableBytes of [60n * GIB, GIB, 60n * GIB, GIB]) {
      Object.assign(fake.world, { images, filesystem: aFilesystem({ availableBytes }) });
      fake.engine.memory.replace(ledger);
      await run(fake);
    }
    expect(fake.events.map(({ message }) => message.slice(0, 11))).toEqual([
      "Images take",
      "The image f",
    ]);
  });

  test("keep rules that are valid for one pass and invalid again are an event again, though its removals failed", async () => {
    const fake = aNode();
    fake.world.before = async (method) => {
      if (method === "RemoveImage") throw new Error("busy");
    };
    const problems = [{ source: "a.list:1", message: "it is no pattern" }];
    for (const keep of [problems, [], problems]) {
      fake.world.keep = { rules: [], problems: keep };
      await run(fake, ALL);
    }
    const invalid = { reason: "KeepRulesInvalid" };
    expect(fake.events).toMatchObject([invalid, invalid]);
  });

  test("a root directory that cannot be measured fails the pass, which has removed what it should", async () => {
    const fake = aNode();
    const unmeasured = "cannot measure the filesystem of /var/lib/kubelet";
    const root = { roles: ["nodefs"], capacityBytes: 0n, device: "none", unmeasured } as const;
    fake.engine.observe.disk.filesystems = async () => [fake.world.filesystem, aFilesystem(root)];
    const { pass, failure } = await run(fake, ALL);
    expect(fake.writes).not.toBeEmpty();
    expect([pass.images?.error, pass.error]).toEqual([null, unmeasured]);
    expect(passExit(pass, failure)).toBe(exit.runtime);
  });
});

/** A container may go, and the runtime answers for it after ten seconds. */
function aSlowNode(change: Partial<FakeWorld> = {}): FakeEngine {
  const fake = aNode(change);
  fake.world.containers = [...fake.world.containers, dead(1), dead(2)];
  fake.world.before = async (method) => {
    if (method !== "RemoveContainer") return;
    for (let waits = 0; waits < 10; waits += 1) await fake.engine.timer.sleep(1_000, never);
    fake.writes.push("answered");
  };
  return fake;
}

const pressing = {
  ...spaceTarget(17n * GIB, 7n * GIB),
  trigger: { kind: "pressure", signal: "imagefs.available" },
} as const;
const underPressure = {
  purpose: { kind: "pressure", signals: ["imagefs.available"] },
  containers: "all",
  pressureTargets: [pressing],
} as const;

test("a pass that is not under pressure removes its first image after its last container, however long that takes", async () => {
  const fake = aSlowNode();
  await run(fake, { ...ALL, containers: "all" });
  expect(fake.writes.slice(0, 3)).toEqual([
    "RemoveContainer container-dead-1",
    "answered",
    expect.stringContaining("RemoveImage"),
  ]);
});

test("under pressure the kubelet's rules collect containers first", async () => {
  const limits = withLimits({ minimumAge: duration(0n) });
  const fake = aSlowNode({ policy: kubeletPolicy(null), limits });
  await run(fake, underPressure);
  expect(fake.writes.slice(0, 2)).toEqual([
    "RemoveContainer container-dead-1",
    expect.stringContaining("RemoveImage"),
  ]);
});
