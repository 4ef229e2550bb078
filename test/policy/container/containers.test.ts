import { describe, expect, test } from "bun:test";

import { podUid, sandboxId } from "../../../src/model/ids.ts";
import type { Container } from "../../../src/model/snapshot.ts";
import { hours, minutes } from "../../../src/model/time.ts";
import { unjudged } from "../../../src/policy/container/containers.ts";
import {
  ago,
  dead,
  goingContainers,
  goingLogs,
  goingSandboxes,
  judged,
  noLogs,
  planOf,
  reasonOf,
  sandboxOf,
} from "../../support/build/pods.ts";
import { aContainer, containerLimits } from "../../support/build/values.ts";

/** Exited instances of container c of pod a, by how many seconds ago they were made and ended. */
const instances = (...secondsAgo: readonly number[]): readonly Container[] =>
  secondsAgo.map((seconds) => dead("a", "c", { createdAt: ago(seconds) }));
const runningC = dead("a", "c", { state: "running", createdAt: ago(1) });
const limits = (perContainer: number, total = -1) => ({
  ...containerLimits,
  maximumPerPodContainer: perContainer,
  maximumContainers: total,
});
const gone = judged({ gone: ["uid-a"] });
const idsOf = (containers: readonly Container[]): readonly string[] =>
  containers.map(({ id }) => id);

describe("in a live pod", () => {
  test.each([
    ["a limit of 0", { limits: limits(0) }],
    ["a total limit of 0", { limits: limits(-1, 0) }],
    ["both limits of 0", { limits: limits(0, 0) }],
    ["reclaim", { limits: limits(0, 0), purpose: "all-unused" }],
    ["reclaim under pressure", { limits: limits(0, 0), purpose: "pressure" }],
  ] as const)("the newest dead instance of each name survives %s", (_, change) => {
    const init = dead("a", "init", { createdAt: ago(5000) });
    const [newest, old] = instances(10, 20);
    const containers = [init, newest, old].filter((one) => one !== undefined);
    const plan = planOf({ containers, sandboxes: [sandboxOf("a")] }, change);
    expect(goingContainers(plan)).toEqual([String(old?.id)]);
    expect(reasonOf(plan, init.id)).toBe("newest-of-name");
    expect(reasonOf(plan, String(newest?.id))).toBe("newest-of-name");
  });

  test("the newest dead instance is the newest by creation, even if a newer one never started", () => {
    const created = dead("a", "c", { state: "created", createdAt: ago(1) });
    const [newest, old] = instances(10, 20);
    const containers = [created, newest, old].filter((one) => one !== undefined);
    const plan = planOf({ containers }, { limits: limits(0, 0) });
    expect(goingContainers(plan)).toEqual([String(old?.id)]);
    expect(reasonOf(plan, created.id)).toBe("not-dead");
  });

  test("what is over its own limit does not count in the total, and a total that is met takes nothing", () => {
    const other = dead("b", "c", { createdAt: ago(90) });
    const [, middle, oldest] = instances(10, 20, 30);
    const over = planOf(
      { containers: [...instances(10, 20, 30), other] },
      { limits: limits(1, 2) },
    );
    expect(goingContainers(over)).toEqual([String(oldest?.id), String(middle?.id)]);
    expect(reasonOf(over, String(oldest?.id))).toBe("over-per-container-limit");
    for (const total of [3, 4]) {
      const met = planOf(
        { containers: [...instances(10, 20), other] },
        { limits: limits(-1, total) },
      );
      expect(goingContainers(met)).toEqual([]);
    }
  });

  test("what is over the total goes last, however old it is", () => {
    const runs = dead("b", "c", { state: "running", createdAt: ago(1) });
    const ancient = dead("b", "c", { createdAt: ago(90) });
    const plan = planOf(
      { containers: [...instances(10, 20), runs, ancient] },
      { limits: limits(1, 1) },
    );
    expect(goingContainers(plan)).toEqual([...idsOf(instances(20)), ancient.id]);
  });

  test("a running container is always kept", () => {
    const plan = planOf({ containers: [runningC] }, { limits: limits(0, 0), pods: gone });
    expect(reasonOf(plan, runningC.id)).toBe("running");
  });
});

describe("of a deleted pod", () => {
  test.each(["exited", "created", "unknown"] as const)(
    "a container that is %s is removed",
    (state) => {
      const container = dead("a", "c", { state });
      const plan = planOf({ containers: [container] }, { pods: gone });
      expect(reasonOf(plan, container.id)).toBe("pod-gone");
      expect(plan.containers[0]?.stopFirst).toBe(state === "unknown");
    },
  );

  test("all containers of an evicted pod are removed", () => {
    const [container] = instances(10);
    const plan = planOf({ containers: instances(10) }, { pods: judged({ evicted: ["uid-a"] }) });
    expect(reasonOf(plan, String(container?.id))).toBe("pod-evicted");
  });

  test("containers of deleted pods are removed first, oldest first, then those over the limits", () => {
    const first = dead("gone", "c", { createdAt: ago(5) });
    const containers = [...instances(10, 20, 30), first];
    const plan = planOf(
      { containers },
      { limits: limits(1), pods: judged({ gone: ["uid-gone"] }) },
    );
    expect(goingContainers(plan)).toEqual([first.id, ...idsOf(instances(30, 20))]);
  });
});

describe("the minimum age", () => {
  const atLeastAnHour = { limits: { ...limits(0), minimumAge: hours(1) }, pods: gone };

  test("counts from the container's end, not from its creation", () => {
    const container = dead("a", "c", { createdAt: ago(100_000) });
    const ended = (secondsAgo: number) => new Map([[container.id, ago(secondsAgo)]]);
    const young = planOf({ containers: [container], containerEnds: ended(3599) }, atLeastAnHour);
    expect(reasonOf(young, container.id)).toBe("too-young");
    const old = planOf({ containers: [container], containerEnds: ended(3600) }, atLeastAnHour);
    expect(reasonOf(old, container.id)).toBe("pod-gone");
  });

  test("keeps a container whose end could not be read", () => {
    const [container] = instances(100_000);
    const plan = planOf(
      { containers: instances(100_000), containerEnds: new Map() },
      atLeastAnHour,
    );
    expect(reasonOf(plan, String(container?.id))).toBe("end-unknown");
  });

  test("of one that never ended counts from its creation", () => {
    const created = dead("a", "c", { state: "created", createdAt: ago(3600) });
    const plan = planOf({ containers: [created], containerEnds: new Map() }, atLeastAnHour);
    expect(reasonOf(plan, created.id)).toBe("pod-gone");
  });

  test("fails an assertion if negative, because configuration refuses it", () => {
    const negative = { ...containerLimits, minimumAge: minutes(-1) };
    expect(() => planOf({}, { limits: negative })).toThrow("negative minimum age");
  });
});

describe("while the pod source is not ready, nothing is removed", () => {
  const pods = judged({ gone: ["uid-a", "uid-b"], notReady: "it is another node's" });
  const node = {
    containers: [...instances(10, 20, 30), dead("b", "c", { state: "created" })],
    sandboxes: [sandboxOf("a", { state: "not-ready" }), sandboxOf("b", { state: "not-ready" })],
    logs: {
      ...noLogs,
      podLogs: [{ entry: "default_a_uid-a", uid: podUid("uid-a") }],
      danglingLinks: [{ entry: "x", containerId: "x" }],
    },
  };

  test.each(["periodic", "all-unused", "pressure"] as const)("in a pass that is %s", (purpose) => {
    const plan = planOf(node, { pods, purpose, limits: limits(0, 0) });
    expect(goingContainers(plan)).toEqual([]);
    expect(goingSandboxes(plan)).toEqual([]);
    expect(goingLogs(plan)).toEqual([]);
    expect(plan.links).toEqual([]);
    expect(reasonOf(plan, String(instances(10)[0]?.id))).toBe("source-not-ready");
  });

  test("except by the limits with compat kubelet", () => {
    const kubelet = { ...limits(1), compat: "kubelet" } as const;
    const plan = planOf(node, { pods, limits: kubelet });
    expect(goingContainers(plan)).toEqual(idsOf(instances(30, 20)));
    expect(goingLogs(plan)).toEqual([]);
    expect(plan.links).toHaveLength(1);
  });

  test("and links go where it is ready", () => {
    expect(planOf(node, { pods: gone }).links).toHaveLength(1);
  });
});

describe("a hold or the grace period after a boot", () => {
  const blocks = [{ kind: "on-hold", until: null, reason: "an upgrade" }] as const;
  const node = {
    containers: instances(10, 20),
    sandboxes: [sandboxOf("b", { state: "not-ready" })],
    logs: {
      ...noLogs,
      podLogs: [{ entry: "default_b_uid-b", uid: podUid("uid-b") }],
      danglingLinks: [{ entry: "x", containerId: "x" }],
    },
  };

  test("keeps everything, and reports candidates as blocked", () => {
    const plan = planOf(node, { blocks, pods: judged({ gone: ["uid-a", "uid-b"] }) });
    expect([...goingContainers(plan), ...goingSandboxes(plan), ...goingLogs(plan)]).toEqual([]);
    expect(plan.links).toEqual([]);
    const reasons = [...plan.containers, ...plan.sandboxes, ...plan.podLogs].map(
      (each) => each.decision.reason.kind,
    );
    expect(new Set(reasons)).toEqual(new Set(["blocked"]));
    expect(plan.containers[0]?.decision.tried.slice(-2)).toEqual(["pod-gone", "blocked"]);
  });

  test("does not change the reason of what is kept anyway", () => {
    const both = planOf({ containers: [runningC, ...instances(10)] }, { blocks, pods: gone });
    expect(reasonOf(both, runningC.id)).toBe("running");
    expect(reasonOf(both, String(instances(10)[0]?.id))).toBe("blocked");
  });
});

describe("a foreign container or sandbox", () => {
  const bare = sandboxOf("f", {
    podUid: podUid(""),
    metadataUid: podUid("uid-f"),
    state: "not-ready",
  });
  const inBare = aContainer("f", { sandboxId: bare.id, podUid: podUid(""), state: "exited" });
  const collect = { ...limits(0, 0), collectForeign: true };

  test("is kept: a container and its sandbox without labels", () => {
    const plan = planOf(
      { containers: [inBare], sandboxes: [bare] },
      { limits: limits(0, 0), purpose: "all-unused" },
    );
    expect(reasonOf(plan, inBare.id)).toBe("foreign");
    expect(plan.sandboxes[0]?.decision.reason.kind).toBe("foreign");
  });

  test.each([
    [
      "without a label, whose sandbox is not listed",
      aContainer("x", { podUid: podUid(""), sandboxId: sandboxId("?"), state: "exited" }),
    ],
    [
      "without a label in a sandbox of a pod",
      aContainer("x", { podUid: podUid(""), sandboxId: sandboxId("sandbox-a"), state: "exited" }),
    ],
    [
      "with a label in a sandbox without one",
      aContainer("x", { podUid: podUid("uid-f"), sandboxId: bare.id, state: "exited" }),
    ],
    [
      "with the label of another pod than its sandbox's",
      aContainer("x", {
        podUid: podUid("uid-b"),
        sandboxId: sandboxId("sandbox-a"),
        state: "exited",
      }),
    ],
  ])("is kept: a container %s", (_, container) => {
    const pods = judged({ gone: ["uid-a", "uid-b", "uid-f", ""] });
    const plan = planOf(
      { containers: [container], sandboxes: [sandboxOf("a"), bare] },
      { pods, limits: limits(0, 0) },
    );
    expect(reasonOf(plan, container.id)).toBe("foreign");
  });

  test.each(["created", "unknown"] as const)(
    "that is %s is removed with --collect-foreign only once it counts as dead",
    (state) => {
      const container = { ...inBare, state };
      const reason = (foreignDead: readonly string[]) =>
        reasonOf(
          planOf(
            { containers: [container], sandboxes: [bare] },
            { limits: collect, pods: judged({ foreignDead }) },
          ),
          container.id,
        );
      expect(reason([])).toBe("not-dead");
      expect(reason(["uid-f"])).toBe("foreign-dead");
    },
  );

  test("keeps the newest container of each name with --collect-foreign while it is alive", () => {
    const ready = { ...bare, state: "ready" } as const;
    const plan = planOf({ containers: [inBare], sandboxes: [ready] }, { limits: collect });
    expect(reasonOf(plan, inBare.id)).toBe("newest-of-name");
  });

  test("counts as an unknown pod with compat kubelet", () => {
    const kubelet = { ...limits(1), compat: "kubelet" } as const;
    const plan = planOf(
      { containers: [inBare], sandboxes: [bare] },
      { limits: kubelet, pods: judged({ gone: ["", "uid-f"] }) },
    );
    expect(reasonOf(plan, inBare.id)).toBe("pod-gone");
    expect(goingSandboxes(plan)).toEqual([bare.id]);
  });

  test.each([[], [dead("f", "labelled", { sandboxId: sandboxId("?") })]])(
    "keeps its log directory, which no pod source knows",
    (...containers) => {
      const logs = { ...noLogs, podLogs: [{ entry: "default_f_uid-f", uid: podUid("uid-f") }] };
      const pods = judged({ gone: ["uid-f"] });
      expect(goingLogs(planOf({ containers, sandboxes: [bare], logs }, { pods }))).toEqual([]);
    },
  );
});

describe("the plan", () => {
  test("lists the evaluated rules, the deciding one last", () => {
    const plan = planOf({ containers: instances(10) }, { pods: gone });
    expect(plan.containers[0]?.decision.tried).toEqual([
      "running",
      "foreign",
      "source-not-ready",
      "not-dead",
      "end-unknown",
      "too-young",
      "pod-gone",
    ]);
    const kept = planOf({ containers: instances(10, 20) }, { limits: limits(2) });
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
    const everything = judged({ gone: strays });
    expect(planOf({ logs: { ...noLogs, strays } }, { pods: everything }).strays).toEqual(strays);
    expect(planOf({ logs: { ...noLogs, strays } }, { pods: everything }).podLogs).toEqual([]);
    expect(planOf({}).strays).toEqual([]);
  });

  test("says of a log directory whose pod the source knows that it is known, although nothing else is here", () => {
    const logs = { ...noLogs, podLogs: [{ entry: "default_a_uid-a", uid: podUid("uid-a") }] };
    expect(planOf({ logs }).podLogs[0]?.decision.reason.kind).toBe("pod-known");
  });

  test("without a pod source marks a log directory without other traces of its pod as not deleted yet", () => {
    const logs = {
      ...noLogs,
      podLogs: [
        { entry: "default_a_uid-a", uid: podUid("uid-a") },
        { entry: "default_b_uid-b", uid: podUid("uid-b") },
      ],
    };
    const plan = planOf({ sandboxes: [sandboxOf("a")], logs }, { pods: judged({ none: true }) });
    expect(plan.podLogs.map(({ decision }) => decision.reason.kind)).toEqual([
      "pod-known",
      "pod-not-gone-yet",
    ]);
  });

  test("with compat kubelet takes a stray entry for a UID only if it is a possible UID", () => {
    const strays = ["12345678", "lost+found"];
    const plan = planOf(
      { logs: { ...noLogs, strays } },
      { limits: { ...containerLimits, compat: "kubelet" }, pods: judged({ gone: strays }) },
    );
    expect(goingLogs(plan)).toEqual(["12345678"]);
    expect(plan.strays).toEqual(["lost+found"]);
  });

  test("reports that logs or pods could not be judged, if so", () => {
    const logs = { kind: "failed", message: "cannot open /l" } as const;
    expect(unjudged(planOf({ logs }, { pods: judged({ notReady: "it is empty" }) }))).toEqual([
      "the pod source kubelet-dir is not ready: it is empty",
      "no log is deleted: cannot open /l",
    ]);
    expect(unjudged(planOf({ logs: noLogs }))).toEqual([]);
  });
});
