// The kubelet's own unit tests of its container collector, by their numbers 24 to 46 and 50, under --compat kubelet.
import { describe, expect, test } from "bun:test";

import { podUid } from "../../src/model/ids.ts";
import type { ContainerLimits } from "../../src/model/limits.ts";
import type { Container, Sandbox } from "../../src/model/snapshot.ts";
import { duration, hours, type Instant, instant, minutes, seconds } from "../../src/model/time.ts";
import type { ContainerInput } from "../../src/policy/container/container-rules.ts";
import { decideContainersAgain } from "../../src/policy/container/containers.ts";
import {
  dead,
  goingContainers,
  goingLogs,
  inputOf,
  judged,
  noLogs,
  planOf,
  sandboxOf,
  stayingContainers,
  stayingSandboxes,
} from "../support/build/pods.ts";
import { containerLimits, NOW } from "../support/build/values.ts";

const at = (ns: bigint): Instant => instant(ns);
const limitsOf = (minimumAge: bigint, perContainer: number, total: number): ContainerLimits => ({
  ...containerLimits,
  compat: "kubelet",
  minimumAge: duration(minimumAge),
  maximumPerPodContainer: perContainer,
  maximumContainers: total,
  stopGraceMax: seconds(30),
});
const usual = limitsOf(hours(1), 2, 6);

const named = (id: string, pod: string, change: Partial<Sandbox>): Sandbox => ({
  ...sandboxOf(pod, change),
  id: id as Sandbox["id"],
});

const exitedIn = (sandbox: string): Container =>
  dead("P", "c", { sandboxId: sandbox as Sandbox["id"], podUid: podUid("uid-P") });

describe("sandboxes", () => {
  const stay = (
    sandboxes: readonly Sandbox[],
    containers: readonly Container[] = [],
    change: Partial<ContainerInput> = {},
  ): readonly string[] => {
    const input = inputOf(
      { sandboxes, containers },
      { limits: usual, pods: judged({ gone: ["uid-PD"] }), ...change },
    );
    // Upstream judges sandboxes alone: the containers are those that are there.
    const plan = decideContainersAgain(input, { sandboxes, containers, pods: input.pods });
    return stayingSandboxes(plan).toSorted();
  };
  const N = (id: string, pod: string, created = 0n): Sandbox =>
    named(id, pod, { state: "not-ready", createdAt: at(created) });
  const R = (id: string, pod: string, created = 0n): Sandbox =>
    named(id, pod, { createdAt: at(created) });

  test("24: a sandbox of a deleted pod that is not ready is removed", () => {
    expect(stay([N("a", "PD")])).toEqual([]);
  });

  test("25: a ready sandbox of a deleted pod is kept", () => {
    expect(stay([R("a", "PD")])).toEqual(["a"]);
  });

  test("26: the only sandboxes of two existing pods are kept", () => {
    expect(stay([R("a", "P0"), N("b", "P1")])).toEqual(["a", "b"]);
  });

  test("27: the newer of two sandboxes that are not ready is kept", () => {
    expect(stay([N("new", "P0", 1n), N("old", "P0", 0n)])).toEqual(["new"]);
  });

  test("28: an older sandbox with an exited container is kept too", () => {
    expect(stay([N("new", "P0", 1n), N("old", "P0", 0n)], [exitedIn("old")])).toEqual([
      "new",
      "old",
    ]);
  });

  test("29: reclaim removes the sandboxes of terminated pods unless they are ready", () => {
    const pods = judged({ terminated: ["uid-P0", "uid-P1"] });
    const kept = stay([R("a", "P0"), N("b", "P1")], [], { pods, purpose: "all-unused" });
    expect(kept).toEqual(["a"]);
  });

  test("30: a sandbox with an exited container is kept", () => {
    expect(stay([N("a", "P0")], [exitedIn("a")])).toEqual(["a"]);
  });

  test("31: sandboxes of three pods at once are judged by pod", () => {
    const sandboxes = [
      R("P0@1", "P0", 1n),
      N("P0@0", "P0", 0n),
      N("P1@1", "P1", 1n),
      N("P1@0", "P1", 0n),
      N("PD@0", "PD", 0n),
    ];
    expect(stay(sandboxes, [exitedIn("P1@1")])).toEqual(["P0@1", "P1@1"]);
  });
});

describe("containers", () => {
  const E = (
    pod: string,
    name: string,
    created: bigint,
    change: Partial<Container> = {},
  ): Container => dead(pod, name, { createdAt: at(created), ...change });
  const label = (container: Container): string =>
    `${container.podName.slice(4)}/${container.name}@${container.createdAt}`;
  const stay = (
    containers: readonly Container[],
    change: Partial<ContainerInput> = {},
  ): readonly string[] => {
    const plan = planOf({ containers }, { limits: usual, ...change });
    const kept = new Set(stayingContainers(plan));
    return containers.filter((one) => kept.has(one.id)).map(label);
  };
  const all = (containers: readonly Container[]): readonly string[] => containers.map(label);

  test("32: a total limit of 0 removes all containers", () => {
    expect(stay([E("foo", "bar", 0n)], { limits: limitsOf(minutes(1), 1, 0) })).toEqual([]);
  });

  test("33: without a limit per container the total limit removes the oldest", () => {
    const containers = [4n, 3n, 2n, 1n, 0n].map((created) => E("foo", "bar", created));
    expect(stay(containers, { limits: limitsOf(minutes(1), -1, 4) })).toEqual(
      all(containers.slice(0, 4)),
    );
  });

  test("34: without limits all containers are kept", () => {
    const containers = [2n, 1n, 0n].map((created) => E("foo", "bar", created));
    expect(stay(containers, { limits: limitsOf(minutes(1), -1, -1) })).toEqual(all(containers));
  });

  test("35: a container created just now is kept", () => {
    const containers = [0n, 1n, 2n].map((before) => E("foo", "bar", NOW - before));
    expect(stay(containers)).toEqual(all(containers));
  });

  test("36: the newest two of three are kept", () => {
    const containers = [2n, 1n, 0n].map((created) => E("foo", "bar", created));
    expect(stay(containers)).toEqual(["foo/bar@2", "foo/bar@1"]);
  });

  test("37: a running container does not count and is kept", () => {
    const containers = [
      E("foo", "bar", 2n),
      E("foo", "bar", 1n),
      E("foo", "bar", 0n, { state: "running" }),
    ];
    expect(stay(containers)).toEqual(all(containers));
  });

  test("38: two containers are within the limit", () => {
    const containers = [E("foo", "bar", 1n), E("foo", "bar", 0n)];
    expect(stay(containers)).toEqual(all(containers));
  });

  test("39: the limit counts for each name of each pod", () => {
    const containers = [
      ["foo", "bar"],
      ["foo1", "baz"],
      ["foo2", "bar"],
    ].flatMap(([pod = "", name = ""]) => [2n, 1n, 0n].map((created) => E(pod, name, created)));
    expect(stay(containers)).toEqual(all(containers.filter((one) => one.createdAt > 0n)));
  });

  test("40: the equal share of a total limit may remove more than the limit requires", () => {
    const containers = [0, 1, 2, 3, 4].flatMap((pod) =>
      [1n, 0n].map((created) => E(`foo${pod}`, "bar", created)),
    );
    expect(stay(containers)).toEqual(all(containers.filter((one) => one.createdAt === 1n)));
  });

  test("41: after the shares, the oldest of the node are removed", () => {
    const containers = [
      E("foo", "bar", 2n),
      E("foo", "bar", 1n),
      E("foo1", "baz", 2n),
      E("foo1", "baz", 1n),
      E("foo2", "bar", 1n),
      E("foo3", "bar", 0n),
      E("foo4", "bar", 1n),
      E("foo5", "bar", 0n),
      E("foo6", "bar", 2n),
      E("foo7", "bar", 1n),
    ];
    const kept = [
      "foo/bar@2",
      "foo1/baz@2",
      "foo2/bar@1",
      "foo4/bar@1",
      "foo6/bar@2",
      "foo7/bar@1",
    ];
    expect(stay(containers)).toEqual(kept);
  });

  test("42: reclaim removes all containers of terminated pods", () => {
    const containers = [
      E("foo", "bar", 2n),
      E("foo", "bar", 1n),
      E("foo1", "bar1", 2n),
      E("foo1", "bar1", 1n),
      E("running", "bar2", 1n),
      E("foo3", "bar3", 0n, { state: "running" }),
    ];
    const pods = judged({ terminated: ["uid-foo", "uid-foo1", "uid-foo3"] });
    expect(stay(containers, { pods, purpose: "all-unused" })).toEqual([
      "running/bar2@1",
      "foo3/bar3@0",
    ]);
  });

  test("43: a container of a deleted pod created just now is kept", () => {
    const containers = [
      E("foo", "bar", 1n),
      E("foo", "bar", 0n),
      E("deleted", "bar1", NOW),
      E("deleted", "bar1", 1n),
      E("deleted", "bar1", 0n),
    ];
    const kept = stay(containers, { pods: judged({ gone: ["uid-deleted"] }) });
    expect(kept).toEqual(all(containers.slice(0, 3)));
  });

  test("44: a deleted pod's container is kept while the source is not ready", () => {
    const pods = { ...judged({ gone: ["uid-deleted"], notReady: "a test" }) };
    const containers = [E("deleted", "bar1", 0n)];
    expect(stay(containers, { pods, purpose: "all-unused" })).toEqual(all(containers));
  });

  test("45: an unknown container is stopped first, then removed", () => {
    const plan = planOf(
      { containers: [E("foo", "bar", 0n, { state: "unknown" })] },
      { limits: limitsOf(hours(1), 0, 0) },
    );
    expect(plan.containers.map((one) => [one.decision.kind, one.stopFirst])).toEqual([
      ["remove", true],
    ]);
  });

  // 50 tests the kubelet's deleter that waits for events. What it would keep of one name is what the limit keeps here.
  test.each([
    [0, ["foo/bar@3", "foo/bar@2", "foo/bar@1"]],
    [1, ["foo/bar@2", "foo/bar@1"]],
    [2, ["foo/bar@1"]],
  ] as const)("50: the newest %d dead containers of a running name are kept", (keep, gone) => {
    const containers = [3n, 2n, 1n].map((created) => E("foo", "bar", created));
    const withRunning = [...containers, E("foo", "bar", 4n, { state: "running" })];
    const kept = stay(withRunning, { limits: limitsOf(0n, keep, -1) });
    expect(all(containers).filter((one) => !kept.includes(one))).toEqual([...gone]);
  });

  test("containers are removed oldest first", () => {
    const containers = [1n, 3n, 0n, 2n].map((created) => E("foo", "bar", created));
    const going = goingContainers(planOf({ containers }, { limits: limitsOf(0n, 1, -1) }));
    const created = going.map((id) => containers.find((one) => one.id === id)?.createdAt);
    expect(created).toEqual([at(0n), at(1n), at(2n)]);
  });
});

describe("log directories", () => {
  const entries = ["name_namespace_321", "name_namespace_654"];
  const logs = {
    ...noLogs,
    podLogs: entries.map((entry) => ({ entry, uid: podUid(entry.slice(-3)) })),
    strays: ["123", "456", "789", "012"],
  };
  const gone = ["012", "789", "654"];

  test("46: log directories of removed pods are deleted, in both layouts", () => {
    const plan = planOf({ logs }, { limits: usual, pods: judged({ gone }) });
    expect(goingLogs(plan)).toEqual(["789", "012", "name_namespace_654"]);
  });

  test("46: no log directory is deleted while the source is not ready", () => {
    const plan = planOf({ logs }, { limits: usual, pods: judged({ gone, notReady: "a test" }) });
    expect(goingLogs(plan)).toEqual([]);
  });
});
