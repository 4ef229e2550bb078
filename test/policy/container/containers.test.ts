import { describe, expect, test } from "bun:test";

import { podUid, sandboxId } from "../../../src/model/ids.ts";
import type { Container, Sandbox } from "../../../src/model/snapshot.ts";
import { duration, hours, minutes } from "../../../src/model/time.ts";
import { unjudged } from "../../../src/policy/container/containers.ts";
import {
  againOn,
  ago,
  danglingLink,
  dead,
  goingContainers,
  goingLogs,
  goingSandboxes,
  inputOf,
  judged,
  logsOf,
  noLogs,
  planOf,
  reasonOf,
  sandboxOf,
} from "../../support/build/pods.ts";
import { aContainer, containerLimits } from "../../support/build/values.ts";

/** An exited instance of container c of pod a that was made and ended so many seconds ago. */
const instance = (secondsAgo: number): Container => dead("a", "c", { createdAt: ago(secondsAgo) });
const [at10, at20, at30] = [instance(10), instance(20), instance(30)];
const runningC = dead("a", "c", { state: "running", createdAt: ago(1) });
const limits = (perContainer: number, total = -1) => ({
  ...containerLimits,
  maximumPerPodContainer: perContainer,
  maximumContainers: total,
});
const gone = judged({ gone: ["uid-a"] });

describe("in a live pod", () => {
  test("the newest dead instance is the newest by creation, even if a newer one never started", () => {
    const created = dead("a", "c", { state: "created", createdAt: ago(1) });
    const plan = planOf({ containers: [created, at10, at20] }, { limits: limits(0, 0) });
    expect(goingContainers(plan)).toEqual([at20.id]);
    const reasons = [created, at10].map(({ id }) => reasonOf(plan, id));
    expect(reasons).toEqual(["not-dead", "newest-of-name"]);
  });

  test("what is over its own limit does not count in the total, and a total that is met takes nothing", () => {
    const other = dead("b", "c", { createdAt: ago(90) });
    const over = planOf({ containers: [at10, at20, at30, other] }, { limits: limits(1, 2) });
    expect(goingContainers(over)).toEqual([at30.id, at20.id]);
    expect(reasonOf(over, at30.id)).toBe("over-per-container-limit");
    for (const total of [3, 4]) {
      const met = planOf({ containers: [at10, at20, other] }, { limits: limits(-1, total) });
      expect(goingContainers(met)).toEqual([]);
    }
  });

  test("containers over the total go last, at any age", () => {
    const runs = dead("b", "c", { state: "running", createdAt: ago(1) });
    const ancient = dead("b", "c", { createdAt: ago(90) });
    const plan = planOf({ containers: [at10, at20, runs, ancient] }, { limits: limits(1, 1) });
    expect(goingContainers(plan)).toEqual([at20.id, ancient.id]);
  });
});

test("a UID and a name with slashes do not make one container of two", () => {
  const pods = [
    ["x", "y/z"],
    ["x/y", "z"],
  ] as const;
  const containers = pods.map(([uid, name]) => dead("a", name, { podUid: podUid(uid) }));
  expect(goingContainers(planOf({ containers }, { limits: limits(1) }))).toEqual([]);
});

describe("of a deleted pod", () => {
  test.each(["exited", "created", "unknown"] as const)(
    "a container that is %s is removed",
    (state) => {
      const container = dead("a", "c", { state });
      const plan = planOf({ containers: [container] }, { pods: gone });
      expect(reasonOf(plan, container.id)).toBe("pod-gone");
    },
  );

  test("containers of deleted pods are removed first, oldest first, then those over the limits", () => {
    const first = dead("gone", "c", { createdAt: ago(5) });
    const plan = planOf(
      { containers: [at10, at20, at30, first] },
      { limits: limits(1), pods: judged({ gone: ["uid-gone"] }) },
    );
    expect(goingContainers(plan)).toEqual([first.id, at30.id, at20.id]);
  });
});

describe("the minimum age of an hour", () => {
  const created = (secondsAgo: number, state: Container["state"] = "exited") =>
    dead("a", "c", { state, createdAt: ago(secondsAgo) });

  test.each([
    ["keeps a dead container created later", created(3599), "too-young"],
    ["does not keep one created an hour ago", created(3600), "pod-gone"],
    ["counts from the creation of one that never ran", created(3599, "created"), "too-young"],
  ] as const)("%s", (_, container, reason) => {
    const change = { limits: { ...limits(0), minimumAge: hours(1) }, pods: gone };
    expect(reasonOf(planOf({ containers: [container] }, change), container.id)).toBe(reason);
  });

  test.each([
    ["is too young without a minimum age", 0n, "too-young"],
    ["is too young for any", 1n, "too-young"],
  ] as const)(
    "a container from the future, before the clock was set back, %s",
    (_, minimumAge, reason) => {
      const later = created(-1);
      const change = { limits: { ...limits(0), minimumAge: duration(minimumAge) } };
      const plan = planOf({ containers: [later] }, { ...change, pods: gone });
      expect(reasonOf(plan, later.id)).toBe(reason);
    },
  );

  test("fails an assertion if negative, because configuration refuses it", () => {
    const negative = { ...containerLimits, minimumAge: minutes(-1) };
    expect(() => planOf({}, { limits: negative })).toThrow("negative minimum age");
  });
});

const deadNode = {
  containers: [at10, at20, at30, dead("b", "c", { state: "created" })],
  sandboxes: [sandboxOf("a", { state: "not-ready" }), sandboxOf("b", { state: "not-ready" })],
  logs: { ...logsOf("a"), danglingLinks: [danglingLink({ podUid: podUid("uid-x") })] },
};

describe("while the pod source is not ready, nothing is removed", () => {
  const pods = judged({ gone: ["uid-a", "uid-b"], notReady: "it is another node's" });

  test.each(["periodic", "all-unused", "pressure"] as const)("in a pass that is %s", (purpose) => {
    const plan = planOf(deadNode, { pods, purpose, limits: limits(0, 0) });
    expect([...goingContainers(plan), ...goingSandboxes(plan), ...goingLogs(plan)]).toEqual([]);
    expect(plan.links).toEqual([]);
    expect(reasonOf(plan, at10.id)).toBe("source-not-ready");
  });

  test("and links go where it is ready", () => {
    expect(planOf(deadNode, { pods: gone }).links).toHaveLength(1);
  });
});

describe("a hold or the grace period after a boot", () => {
  const blocks = [{ kind: "on-hold", until: null, reason: "an upgrade" }] as const;

  test("keeps everything, and reports candidates as blocked", () => {
    const sandboxes = [sandboxOf("e", { state: "not-ready" })];
    const empty = { ...deadNode, sandboxes, logs: logsOf("f") };
    const pods = judged({ gone: ["uid-a", "uid-b", "uid-e", "uid-f"] });
    const plan = planOf(empty, { blocks, pods });
    const decisions = [...plan.containers, ...plan.sandboxes, ...plan.podLogs].map(
      ({ decision: { kind, reason } }) => `${kind} ${reason.kind}`,
    );
    expect(new Set(decisions)).toEqual(new Set(["keep blocked"]));
    expect(plan.links).toEqual([]);
    expect(plan.containers[0]?.decision.tried.slice(-2)).toEqual(["pod-gone", "blocked"]);
  });

  test("does not change the reason of what is kept anyway", () => {
    const both = planOf({ containers: [runningC, at10] }, { blocks, pods: gone });
    expect([runningC, at10].map(({ id }) => reasonOf(both, id))).toEqual(["running", "blocked"]);
  });
});

describe("a foreign container or sandbox", () => {
  const bare = sandboxOf("f", {
    podUid: podUid(""),
    metadataUid: podUid("uid-f"),
    state: "not-ready",
  });
  /** In this sandbox, with the label of this pod. */
  const exitedIn = (sandbox: string, label: string): Container =>
    aContainer("f", { sandboxId: sandboxId(sandbox), podUid: podUid(label), state: "exited" });
  const inBare = exitedIn(bare.id, "");

  test.each([
    ["without a label, whose sandbox is not listed", exitedIn("?", "")],
    ["without a label in a sandbox of a pod", exitedIn("sandbox-a", "")],
    ["with a label in a sandbox without one", exitedIn(bare.id, "uid-f")],
    ["with the label of another pod than its sandbox's", exitedIn("sandbox-a", "uid-b")],
  ])("is kept: a container %s", (_, container) => {
    const pods = judged({ gone: ["uid-a", "uid-b", "uid-f", ""] });
    const plan = planOf(
      { containers: [container], sandboxes: [sandboxOf("a"), bare] },
      { pods, limits: limits(0, 0) },
    );
    expect(reasonOf(plan, container.id)).toBe("foreign");
  });

  test.each([
    ["created", "not-dead"],
    ["unknown", "not-dead"],
    ["exited", "newest-of-name"],
  ] as const)(
    "that is %s is removed with --collect-foreign only once it counts as dead, else kept as %s",
    (state, kept) => {
      const node = { containers: [{ ...inBare, state }], sandboxes: [bare] };
      const reason = (foreignDead: readonly string[]) =>
        reasonOf(
          planOf(node, {
            limits: { ...limits(0, 0), collectForeign: true },
            pods: judged({ foreignDead }),
          }),
          inBare.id,
        );
      expect([reason([]), reason(["uid-f"])]).toEqual([kept, "foreign-dead"]);
    },
  );

  test.each([[], [dead("f", "labelled", { sandboxId: sandboxId("?") })]])(
    "keeps its log directory, which no pod source knows",
    (...containers) => {
      const node = { containers, sandboxes: [bare], logs: logsOf("f") };
      expect(goingLogs(planOf(node, { pods: judged({ gone: ["uid-f"] }) }))).toEqual([]);
    },
  );
});

describe("a sandbox", () => {
  /** A stopped one of pod a. */
  const stopped = (name: string, change: Partial<Sandbox> = {}): Sandbox => ({
    ...sandboxOf("a", { state: "not-ready", ...change }),
    id: sandboxId(name),
  });
  const old = stopped("old", { createdAt: ago(20) });
  const newer = stopped("newer", { createdAt: ago(10) });
  const inOld = dead("a", "c", { sandboxId: old.id });

  test("of a live pod with a container is kept, unless the pass removes that container", () => {
    const running = dead("a", "c", { sandboxId: newer.id, state: "running" });
    const going = (perContainer: number, ...containers: readonly Container[]) =>
      goingSandboxes(
        planOf(
          { sandboxes: [newer, old], containers: [inOld, ...containers] },
          { limits: limits(perContainer) },
        ),
      );
    expect([going(1), going(0, running)]).toEqual([[], ["old"]]);
  });

  test("of the same instant as another is the newest by its attempt", () => {
    const first = stopped("b-first", { attempt: 0 });
    const second = stopped("a-second", { attempt: 1 });
    expect(goingSandboxes(planOf({ sandboxes: [second, first] }))).toEqual(["b-first"]);
  });

  test("of a deleted pod is kept if its container could not be removed", () => {
    const node = { sandboxes: [old], containers: [inOld] };
    const input = inputOf(node, { pods: gone });
    expect(goingSandboxes(planOf(node, input))).toEqual(["old"]);
    const [again] = againOn(node, input).sandboxes;
    expect(again?.decision.reason).toEqual({ kind: "has-containers", containers: [inOld.id] });
  });

  test("of a terminated pod is removed by reclaim, even the newest", () => {
    const pods = judged({ terminated: ["uid-a"] });
    const reason = (purpose: "pressure" | "periodic") =>
      planOf({ sandboxes: [newer] }, { pods, purpose }).sandboxes[0]?.decision.reason.kind;
    expect([reason("pressure"), reason("periodic")]).toEqual(["pod-terminated", "newest-of-pod"]);
  });
});

describe("the plan", () => {
  test("lists the evaluated rules, the deciding one last", () => {
    const plan = planOf({ containers: [at10] }, { pods: gone });
    expect(plan.containers[0]?.decision.tried).toEqual([
      "running",
      "foreign",
      "source-not-ready",
      "not-dead",
      "too-young",
      "pod-gone",
    ]);
    const kept = planOf({ containers: [at10, at20] }, { limits: limits(2) });
    expect(kept.containers[0]?.decision.tried.slice(-3)).toEqual([
      "pod-gone",
      "newest-of-name",
      "within-limits",
    ]);
    const sandboxes = [1, 2].map((at) =>
      sandboxOf("a", { id: sandboxId(`s${at}`), state: "not-ready", createdAt: ago(90 - at) }),
    );
    expect(planOf({ sandboxes }).sandboxes[0]?.decision.tried).toEqual([
      "ready",
      "foreign",
      "source-not-ready",
      "has-containers",
      "pod-gone",
      "newest-of-pod",
      "superseded",
    ]);
  });

  test("lists stray entries of the log directory and deletes none", () => {
    const strays = ["lost+found", "audit", "12345678"];
    const plan = planOf({ logs: { ...noLogs, strays } }, { pods: judged({ gone: strays }) });
    expect(plan).toMatchObject({ strays, podLogs: [] });
    expect(planOf({}).strays).toEqual([]);
  });

  test.each([
    ["is known", "where the source knows its pod", false, ["pod-known", "pod-known"]],
    ["is not deleted yet", "without a pod source", true, ["pod-known", "pod-not-gone-yet"]],
  ] as const)(
    "says that a log directory without other traces of its pod %s %s",
    (_, __, none, reasons) => {
      const node = { sandboxes: [sandboxOf("a")], logs: logsOf("a", "b") };
      const { podLogs } = planOf(node, { pods: judged({ none }) });
      expect(podLogs.map(({ decision }) => decision.reason.kind)).toEqual([...reasons]);
    },
  );

  test("reports that logs or pods could not be judged, if so", () => {
    const logs = { kind: "failed", message: "cannot open /l" } as const;
    expect(unjudged(planOf({ logs }, { pods: judged({ notReady: "it is empty" }) }))).toEqual([
      "the pod source kubelet-dir is not ready: it is empty",
      "no log is deleted: cannot open /l",
    ]);
    expect(unjudged(planOf({ logs: noLogs }))).toEqual([]);
  });
});
